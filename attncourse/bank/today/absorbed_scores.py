"""The exercise ``absorbed_scores``: scores against keys that are never made.

The tensors are watched that an answer makes, in cases of their own: scores against keys that were
made are right scores.
"""

from collections.abc import Callable
from functools import partial

from torch.nn import functional as F

from attncourse import today
from attncourse.bank.today.mistakes import normed_rows
from attncourse.checks import callers
from attncourse.checks.exercise import Case, composition, exercise, unchanged
from attncourse.checks.writing.cases import FLOATS_ONLY, CaseTable, once_more, row, standard
from attncourse.checks.writing.decisions import as_it_is
from attncourse.checks.writing.modules import tensor
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------

CASES = CaseTable(
    {
        "q_content": "... h m d_c",
        "q_turned": "... h m d_r",
        "latent": "... n d_latent",
        "k_turned": "... n d_r",
        "W_uk": "h d_latent d_c",
    }
)
ROWS = standard(CASES)
ROW = row("h=3 m=5 n=7 d_c=4 d_r=2 d_latent=6")
BY_HAND = Case(
    (
        tensor([[[1, 0], [0, 1]], [[2, 0], [1, 1]]]),
        tensor([[[1, 0], [0, 2]], [[0, 0], [3, 1]]]),
        tensor([[1, 0, 0], [0, 1, 2], [0, 0, 1]]),
        tensor([[1, 0], [0, 1], [2, 2]]),
        tensor([[[1, 2], [3, 4], [5, 6]], [[0, 1], [1, 0], [2, 2]]]),
    ),
    note="two heads, d_c + d_r = 4",
)
# Keys of all heads would be 8 · 160 · 32 numbers; nothing else comes near a third of that.
MANY_TOKENS = row("h=8 m=1 n=160 d_c=32 d_r=4 d_latent=24", note="160 tokens, 8 heads")
N_NUMBERS_OF_ALL_KEYS = 8 * 160 * 32

# --- decisions and mistakes ----------------------------------------------------------------------


def add_heads_axis(x):
    """Return x with an axis for the heads, which share what it holds."""
    return x.unsqueeze(-3)


def add_second_axis(x):
    """Return x with an axis that is in its place with one batch axis, and with none."""
    return x.unsqueeze(1 if x.ndim > 2 else 0)


def score_latents(q_content, latent, W_uk, absorb, share):
    """Return content scores by queries that are taken to the latents."""
    return absorb(q_content, W_uk) @ share(latent).mT


def score_made_keys(q_content, latent, W_uk, absorb, share):
    """Return content scores by keys that are made of the latents."""
    return q_content @ (share(latent) @ W_uk).mT


def add_parts(content, turned):
    return content + turned


def scale_by_sum_of_widths(content, turned, d_c, d_r, d_latent):
    width = (d_c + d_r) ** -0.5
    return width, width


@composition
def compose_absorbed_scores(
    read=as_it_is,
    matrix=as_it_is,
    absorb=lambda query, W_uk: query @ W_uk.mT,
    content=score_latents,
    share=add_heads_axis,
    share_turned=add_heads_axis,
    turned=lambda q_turned, k_turned, q_content, latent, W_uk: q_turned @ k_turned.mT,
    factors=scale_by_sum_of_widths,
    join=add_parts,
    finish=as_it_is,
):
    """Return ``absorbed_scores`` made of decisions; ``factors`` are those of both parts."""

    def absorbed_scores(q_content, q_turned, latent, k_turned, W_uk):
        latent, W = read(latent), matrix(W_uk)
        content_scores = content(q_content, latent, W, absorb, share)
        turned_scores = turned(q_turned, share_turned(k_turned), q_content, latent, W)
        widths = q_content.shape[-1], q_turned.shape[-1], latent.shape[-1]
        content_scale, turned_scale = factors(content_scores, turned_scores, *widths)
        return finish(join(content_scores * content_scale, turned_scores * turned_scale))

    return absorbed_scores


def scale_both_by(width: Callable):
    """Return one factor for both parts, by the three widths."""
    return lambda content, turned, d_c, d_r, d_latent: (width(d_c, d_r, d_latent),) * 2


def score_turned_latents(q_turned, k_turned, q_content, latent, W_uk):
    """Return scores of the turned query, taken to the latents as the content is."""
    return q_turned @ W_uk.mT @ latent.unsqueeze(-3).mT


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    today.absorbed_scores,
    section="Chapter 21, “Keys and values from one small vector”",
    difficulty=2,
    minutes=15,
    criteria=(
        CASES.criterion("content and turned part, over the root of both widths", 3).on(
            BY_HAND,
            ROW,
            ROW.but("h=2 m=6 n=6"),
            ROW.but("d_c=3 d_r=4 d_latent=5", batch=(2,)),
        ),
        CASES.criterion("where widths, heads and tokens are as many", 1).on(
            ROW.but("d_c=6 d_r=6", note="d_c, d_r and d_latent alike"),
            ROW.but("h=4 m=4 n=4", batch=(4,), note="heads, tokens and batch alike"),
        ),
        CASES.criterion("no tensor (h, n, d_c) is made", 2).on(
            MANY_TOKENS.but(use=partial(callers.call_measured, N_NUMBERS_OF_ALL_KEYS))
        ),
        CASES.criterion("batches", 1).on(*ROWS.batches),
        CASES.criterion("one token, one head, float32, large and small numbers", 1).on(
            ROW.but("m=1", note="one query"),
            ROW.but("n=1", note="one token"),
            ROW.but("h=1 m=2 n=2", note="one head, two tokens"),
            ROW.but(zero=("W_uk",), note="W_uk of 0"),
            *ROWS.numbers,
            once_more(BY_HAND),
        ),
        CASES.criterion("gradients reach every argument", 1).on(*ROWS.gradients),
        unchanged(),
    ),
    excludes=(FLOATS_ONLY,),
    mistakes=made(
        compose_absorbed_scores,
        mistake("""the keys are made after all
            Your scores are right, but you make the keys of every head, (h, n, d_c), which is what
            the absorbed form does without. Take each query to the latents: `q_content @ W_uk.mT`,
            then compare with `latent`.""").by(content=score_made_keys),
        mistake("""the matrix is not transposed
            `W_uk` takes a latent to a key, (d_latent, d_c). A query goes the other way, through its
            transpose: `q_content @ W_uk.mT`.""").by(absorb=lambda query, W: query @ W),
        mistake("""the matrix is reshaped
            `reshape` and `view` fill a new shape in the old order, so that a feature's numbers end
            up in several. `W_uk.mT` exchanges the axes.""").by(
            absorb=lambda query, W: query @ W.reshape(W.shape[0], W.shape[2], W.shape[1])
        ),
        mistake("""one matrix for all heads
            You use the first matrix, or the mean of them, for every head. Head i has `W_uk[i]`.
        """)
        .by(matrix=lambda W: W[:1].expand_as(W))
        .by(matrix=lambda W: W.mean(0, keepdim=True).expand_as(W)),
        mistake("""the turned part is compressed, too
            You take `q_turned` through `W_uk` and compare it with the latents. A turn depends on
            the place and does not go through that matrix: the turned part has keys of its own,
            `k_turned`.""").by(turned=score_turned_latents),
        mistake("""the turned part is missing
            You compare the contents alone. The positions are in the other part: add `q_turned @
            k_turnedᵀ`.""").by(join=lambda content, turned: content),
        mistake("""the content is missing
            You compare the turned parts alone. To them comes the content, by way of the latents.
        """).by(join=lambda content, turned: turned),
        mistake("""the parts are multiplied
            You multiply the two scores. A dot product over d_c + d_r features is the *sum* of the
            products over both parts.""").by(join=lambda content, turned: content * turned),
        mistake("""the turned part is subtracted
            You subtract the turned part. Both are added.""").by(
            join=lambda content, turned: content - turned
        ),
        mistake("""the shared turned key is lined up with something else
            `k_turned` is `(..., n, d_r)`, one for all heads. It needs an axis for them in the third
            place from the end, `k_turned.unsqueeze(-3)`; without it a batch is taken for heads.""")
        .by(share_turned=as_it_is)
        .by(share_turned=lambda k: k.unsqueeze(0)),
        mistake("""the latents are lined up with something else
            `latent` is `(..., n, d_latent)`, one for all heads. It needs an axis for them in the
            third place from the end, `latent.unsqueeze(-3)`; without it a batch is taken for
            heads.""")
        .by(share=as_it_is)
        .by(share=lambda c: c.unsqueeze(0)),
        mistake("""neither latents nor turned keys have an axis for the heads
            `latent` and `k_turned` are one for all heads, so a batch axis of theirs is lined up
            with the heads. Both get an axis in the third place from the end: `unsqueeze(-3)`.""")
        .by(share=as_it_is, share_turned=as_it_is)
        .by(share=lambda c: c.unsqueeze(0), share_turned=lambda k: k.unsqueeze(0)),
        mistake("""the heads' axis is counted from the front
            `unsqueeze(1)` puts the axis of the heads into the right place for exactly one batch
            axis. Count from the end: `unsqueeze(-3)`.""")
        .by(share=add_second_axis, share_turned=add_second_axis)
        .by(share=add_second_axis)
        .by(share_turned=add_second_axis),
        mistake("""one turned query for all heads
            You use the turned query of the first head, or the mean of them. The *key* is shared;
            each head asks with its own query.""")
        .by(turned=lambda q, k, *other: (q[..., :1, :, :] @ k.mT).expand(*q.shape[:-1], -1))
        .by(
            turned=lambda q, k, *other: (q.mean(-3, keepdim=True) @ k.mT).expand(*q.shape[:-1], -1)
        ),
        mistake("""divided by the root of one part's width
            You divide by √d_c or √d_r. A query has d_c + d_r features: √(d_c + d_r).""")
        .by(factors=scale_both_by(lambda d_c, d_r, d_latent: d_c**-0.5))
        .by(factors=scale_both_by(lambda d_c, d_r, d_latent: d_r**-0.5)),
        mistake("""divided by the latent's width
            You divide by the root of d_latent, alone or with d_r. How wide the latent is has no say
            in the score: queries and keys have d_c + d_r features.""")
        .by(factors=scale_both_by(lambda d_c, d_r, d_latent: d_latent**-0.5))
        .by(factors=scale_both_by(lambda d_c, d_r, d_latent: (d_latent + d_r) ** -0.5)),
        mistake("""each part has a scale of its own
            You divide the content by √d_c and the turned part by √d_r, or one of them by nothing.
            It is one dot product over d_c + d_r features: divide the sum by √(d_c + d_r).""")
        .by(factors=lambda content, turned, d_c, d_r, d_latent: (d_c**-0.5, d_r**-0.5))
        .by(factors=lambda content, turned, d_c, d_r, d_latent: ((d_c + d_r) ** -0.5, 1.0))
        .by(factors=lambda content, turned, d_c, d_r, d_latent: (1.0, (d_c + d_r) ** -0.5)),
        mistake("""the roots are added
            You divide by √d_c + √d_r. It is the root of the sum: √(d_c + d_r).""").by(
            factors=scale_both_by(lambda d_c, d_r, d_latent: 1 / (d_c**0.5 + d_r**0.5))
        ),
        mistake("""divided by d_c + d_r
            You divide by d_c + d_r. The formula has its root.""").by(
            factors=scale_both_by(lambda d_c, d_r, d_latent: 1 / (d_c + d_r))
        ),
        mistake("""no scale
            You take the sum as it is. Divide it by √(d_c + d_r).""").by(
            factors=scale_both_by(lambda d_c, d_r, d_latent: 1.0)
        ),
        mistake("""multiplied by the root
            You multiply by √(d_c + d_r); the scores are divided by it.""").by(
            factors=scale_both_by(lambda d_c, d_r, d_latent: (d_c + d_r) ** 0.5)
        ),
        mistake("""the latents are normalised
            You normalise the latents first. A model does that when it makes them; here they come
            as they are to be compared.""")
        .by(read=normed_rows)
        .by(read=lambda latent: F.normalize(latent, dim=-1)),
        mistake("""added up over the heads
            You sum the scores of all heads, as an einsum does whose result lacks `h`. Each head has
            its own: `(..., h, m, n)`.""")
        .by(finish=lambda scores: scores.sum(-3))
        .by(finish=lambda scores: scores.mean(-3)),
        mistake("""already a softmax
            You return weights. Scores come first: any real numbers, before the softmax.""")
        .by(finish=lambda scores: scores.softmax(-1))
        .by(finish=lambda scores: scores.softmax(-2)),
        mistake("""queries and keys exchanged
            Your scores have a row for each key. Row i belongs to query i: `(..., h, m, n)`.""").by(
            finish=lambda scores: scores.mT
        ),
        mistake("""the gradient is cut off
            Nothing can be learned through the latents or the matrix: `.detach()`, `.data` or NumPy
            on the way.""")
        .by(matrix=lambda W: W.detach())
        .by(read=lambda latent: latent.detach()),
        mistake("""computed in float32
            You turn the numbers into float32, which keeps seven digits of float64. Stay in the
            dtype of the queries.""").by(finish=lambda scores: scores.float()),
    ),
)
