"""The chapter's exercises in other conventions."""

from attncourse.bank.positions.mistakes import PAIRS_OF_HALVES, WRONG_ORDER
from attncourse.checks.variants.adapter import Adapter
from attncourse.checks.variants.rewriting import BOTH_AXES, IN_HALVES
from attncourse.checks.variants.variant import Variant, rewordings

VARIANTS = (
    Variant(
        "halves",
        "A pair stands in **two halves** here: features i and i + d/2 are pair i, where in the "
        "book they are the neighbours 2i and 2i + 1. So in the encoding all sines come first, then "
        "all cosines.",
        "pairs stand in two halves here",
        "Your answer has neighbours for pairs, as the book and its published answers have. In this "
        "assignment features i and i + d/2 are pair i: all sines come first, then all cosines, and "
        "feature i is turned together with feature i + d/2, as `transformers` does for Llama.",
        {
            "sinusoidal_encoding": Adapter(
                result=IN_HALVES, drops=("all sines, then all cosines", WRONG_ORDER.name)
            ),
            "rotation_matrix": Adapter(result=BOTH_AXES, drops=(PAIRS_OF_HALVES.name,)),
            "apply_rope": Adapter(
                {"x": IN_HALVES}, IN_HALVES, drops=(PAIRS_OF_HALVES.name, WRONG_ORDER.name)
            ),
        },
        rewordings(r"""
            \mathrm{PE}_{t,\,2i} = → \mathrm{PE}_{t,\,i} =
            \mathrm{PE}_{t,\,2i+1} = → \mathrm{PE}_{t,\,i+d/2} =
            sines and cosines take turns → all sines first, then all cosines
            [[0, 1, 0, 1], [0.8415, 0.5403, 0.0100, 0.9999]]
            → [[0, 0, 1, 1], [0.8415, 0.0100, 0.5403, 0.9999]]
            so that it has blocks of 2 by 2 on its diagonal and zeros⏎elsewhere
            → so that entry (i, j) is 0 unless features i and j are one pair
            Features 2i and 2i + 1 are a pair; with → Features i and i + d/2 are a pair; with
            $$x'_{2i} = x_{2i} \cos a - x_{2i+1} \sin a, \qquad x'_{2i+1} = x_{2i} \sin a + x_{2i+1}
                \cos a .$$
            → $$x'_{i} = x_{i} \cos a - x_{i+d/2} \sin a, \qquad x'_{i+d/2} = x_{i} \sin a +
                x_{i+d/2} \cos a .$$
            Two results of shape (n, d/2) take turns by `torch.stack([…, …], dim=-1).flatten(-2)`,
                or by writing into `PE[:, 0::2]` and `PE[:, 1::2]`.
            → Two results of shape (n, d/2) stand side by side by `torch.cat([…, …], dim=-1)`.
            One block of 2 by 2 for each pair → Four entries for each pair
            `torch.block_diag` puts blocks along a diagonal; a loop that fills `R[2*i : 2*i + 2, 2*i
                : 2*i + 2]` does as well.
            → They stand at (i, i), (i, i + d/2), (i + d/2, i) and (i + d/2, i + d/2).
            `x[..., 0::2]` and `x[..., 1::2]`, each (..., n, d/2), are the two features of all
                pairs.
            → `x[..., :d // 2]` and `x[..., d // 2:]`, each (..., n, d/2), are the two features of
                all pairs.
            `torch.stack([…, …], dim=-1).flatten(-2)` lets two results take turns
            → `torch.cat([…, …], dim=-1)` joins two results
            Features 2i and 2i + 1 share base^(−2i/d): halve the feature's number first, `j // 2`.
            → Features i and i + d/2 share base^(−2i/d).
            You repeat the angles as a block, `torch.cat([a, a], -1)`, so the two features of a pair
                get different ones: neighbours are a pair. Repeat each in place:
                `a.repeat_interleave(2, dim=-1)`.
            → The two features of a pair get different angles in your answer. Features i and i + d/2
                are a pair: `torch.cat([a, a], -1)`.
            row 0 is 0, 1, 0, 1, …, and R(0) → row 0 is 0, 0, …, 1, 1, …, and R(0)
            Column 2i is the sine, column 2i + 1 the cosine, in every row: row 0 is 0, 1, 0, 1.
            → Column i is the sine, column i + d/2 the cosine, in every row: row 0 is 0, 0, 1, 1.
            so its block is [[cos, sin], [−sin, cos]]
            → so its four entries are [[cos, sin], [−sin, cos]]
            Your block i begins in row i, so each writes over a part of the one before. It begins in
                row 2i: `R[2*i : 2*i + 2, 2*i : 2*i + 2]`.
            → Your pairs share a row, so that one writes over a part of another. Pair i has rows and
                columns i and i + d/2.
            You cut x into even and odd features and join half by half, or the other way round, so
                that features change places. Both in turns: `x[..., 0::2]` and `x[..., 1::2]`, then
                `torch.stack([…, …], dim=-1).flatten(-2)`.
            → You cut x in one way and join it in another, so that features change places. Cut by
                halves, `x.chunk(2, dim=-1)`, and join by `torch.cat([…, …], dim=-1)`.
        """),
    ),
)
