"""The exercise ``LlamaBlock``: attention and a gated layer, with chapter 18's parts.

The block is judged on what differs from chapter 12's: turned queries and keys, shared key/value
heads, the norm, the gated layer. d_head is a power of 4 in float64 cases, as in chapter 9.
"""

from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from attncourse import llama, multihead
from attncourse.bank.llama.shared import gated_layers, gated_state, linear_weight, mean_of_row
from attncourse.checks import callers
from attncourse.checks.exercise import (
    REFUSED,
    Case,
    Criterion,
    Rng,
    composition,
    exercise,
    unchanged,
)
from attncourse.checks.writing import decisions, mistakes
from attncourse.checks.writing.cases import (
    FLOATS_ONLY,
    ONE_MASK,
    OTHER_NUMBERS,
    Drawn,
    hole,
    row,
    standard,
)
from attncourse.checks.writing.decisions import Attention
from attncourse.checks.writing.modules import ModuleTable, State, tensor
from attncourse.checks.writing.recipes import made, mistake
from attncourse.masking import causal_mask
from attncourse.positions import apply_rope

# --- cases ---------------------------------------------------------------------------------------


def block_state(
    rng: Rng, d_model: int, n_heads: int, n_kv_heads: int, d_ff: int, base: float = 10000.0
) -> State:
    d_kv = d_model // n_heads * n_kv_heads
    widths = {"W_q": d_model, "W_k": d_kv, "W_v": d_kv, "W_o": d_model}
    return (
        {f"attention.{name}.weight": linear_weight(rng, d, d_model) for name, d in widths.items()}
        | {f"feed_forward.{n}": w for n, w in gated_state(rng, d_model, d_ff).items()}
        | {f"norm_{i}.gain": tensor(rng.uniform(0.5, 1.5, d_model)) for i in (1, 2)}
    )


def with_large_scores(state: State) -> State:
    """Return the state with scores in the thousands."""
    return state | {"norm_1.gain": 60 * state["norm_1.gain"]}


def refused_case(sizes: tuple[int, ...], note: str) -> Case:
    """Return a case of sizes that the module refuses."""
    return Case(
        sizes,
        use=callers.type_built,
        note=note,
        raises=ValueError,
        shown=f"LlamaBlock({', '.join(map(str, sizes))})",
    )


CASES = ModuleTable(
    {"x": "... n d_model"}, name="LlamaBlock", build="d_model h h_kv d_ff", state=block_state
)
LARGE_SCORE_CASES = ModuleTable(
    CASES.spec,
    name="LlamaBlock",
    build=CASES.build,
    state=lambda rng, *sizes: with_large_scores(block_state(rng, *sizes)),
)
ROWS = standard(CASES, d_model=24, h=6, h_kv=2)
ROW = row("n=7 d_model=24 h=6 h_kv=2 d_ff=11")
WIDE_ROW = row("n=5 d_model=64 h=4 h_kv=2 d_ff=3")
EQUAL_SIZES = row("n=8 d_model=8 h=4 h_kv=4 d_ff=8", batch=(8,), note="n, d_model, d_ff, batch: 8")


def rising_positions(rng: Rng, shape: tuple[int, ...]):
    """Return positions that begin anywhere and leave some out."""
    return rng.integers(0, 50) + rng.integers(1, 4, shape).cumsum()


def mask_padded_left(rng: Rng, shape: tuple[int, ...]):
    """Return a causal mask of sequences padded on the left: their first rows have no key."""
    import numpy as np

    n = shape[-1]
    first = rng.integers(1, n, shape[:-2])
    is_token = np.arange(n) >= first[..., None, None]
    return np.tril(np.ones((n, n), bool)) & is_token


def falling_positions(rng: Rng, shape: tuple[int, ...]):
    """Return positions that fall along the sequence: a later token has a lower one."""
    return rising_positions(rng, shape)[::-1].copy()


WITH_POSITIONS = {"mask": None, "positions": Drawn("n", rising_positions)}
WITH_FALLING_POSITIONS = {"mask": None, "positions": Drawn("n", falling_positions)}

# --- decisions and mistakes ----------------------------------------------------------------------


def refuse_heads(d_model, n_heads, n_kv_heads):
    if d_model % n_heads or n_heads % n_kv_heads:
        raise ValueError(REFUSED)


def block_layers(d_model, n_heads, n_kv_heads, d_ff):
    d_kv = d_model // n_heads * n_kv_heads
    views = {"W_q": d_model, "W_k": d_kv, "W_v": d_kv, "W_o": d_model}
    attention = decisions.linear({name: (d_model, d) for name, d in views.items()})
    return {
        "attention": nn.ModuleDict(attention),
        "feed_forward": llama.SwiGLU(d_model, d_ff),
        "norm_1": llama.RMSNorm(d_model),
        "norm_2": llama.RMSNorm(d_model),
    }


def norm_before_branch(x, branch, norm, first):
    return x + branch(norm(x))


def add_to_normed(x, branch, norm, first):
    """Return what the branch adds to norm(x), in place of x."""
    return norm(x) + branch(norm(x))


def is_first_branch(x, branch, norm, first):
    """Return True for the first branch: nothing has been added to what came in."""
    return x is first


def count_if_none(positions, n):
    return torch.arange(n) if positions is None else positions


def turn_pairs(heads, positions, base):
    return apply_rope(heads, positions, base)


def unturned(heads, positions, base):
    return heads


def turn_halves(heads, positions, base):
    """Return the heads with feature i turned together with feature i + d/2."""
    return pairs_to_halves(apply_rope(halves_to_pairs(heads), positions, base))


def halves_to_pairs(x):
    return x.unflatten(-1, (2, -1)).mT.flatten(-2)


def pairs_to_halves(x):
    return x.unflatten(-1, (-1, 2)).mT.flatten(-2)


def repeat_in_runs(heads, group):
    """Return each key/value head once for each of a run of consecutive query heads."""
    return heads.repeat_interleave(group, -3)


def repeat_in_turn(heads, group):
    return torch.cat([heads] * group, -3)


def add_heads_axis(mask, x):
    """Return the mask with an axis for the heads if it has a batch axis and none for them."""
    return mask.unsqueeze(-3) if mask.ndim == x.ndim and mask.ndim > 2 else mask


def causal_if_none(mask, n):
    return causal_mask(n) if mask is None else mask


def softmax_or_0(scores):
    """Return the softmax over the keys; a row without a key is 0."""
    empty = scores.isneginf().all(-1, keepdim=True)
    return scores.masked_fill(empty, 0).softmax(-1).masked_fill(empty, 0)


def through_branches(x, branches, norms, step):
    """Return the stream after its branches, each put into it by ``step``."""
    first = x
    for branch, norm in zip(branches, norms, strict=False):  # some leave a branch out
        x = step(x, branch, norm, first)
    return x


@composition
def compose_llama_block(
    super_init=decisions.begun,
    refuse=refuse_heads,
    layers=block_layers,
    hold=decisions.assigned,
    sizes=lambda d_model, n_heads, n_kv_heads, d_ff: (d_model, n_heads, n_kv_heads, d_ff),
    pace=lambda base: base,
    place=count_if_none,
    turn=turn_pairs,
    turn_query=None,
    turn_key=None,
    turn_value=unturned,
    cut=multihead.split_heads,
    share=repeat_in_runs,
    share_key=None,
    share_value=None,
    layer_of_keys="W_k",
    layer_of_values="W_v",
    allow=causal_if_none,
    order=lambda allowed, positions: allowed,
    merge=multihead.merge_heads,
    out=lambda self, heads: self.attention["W_o"](heads),
    step=norm_before_branch,
    first_norm=lambda self: self.norm_1,
    second_norm=lambda self: self.norm_2,
    branches=lambda attend, feed: [attend, feed],
    feed=lambda self, x: self.feed_forward(x),
    finish=lambda self, x: x,
    **options,
):
    """Return a ``LlamaBlock`` made of decisions, those of ``Attention`` among them."""
    attention = Attention.of({"normalize": softmax_or_0} | options)
    turn_query, turn_key = turn_query or turn, turn_key or turn
    share_key, share_value = share_key or share, share_value or share

    class LlamaBlock(nn.Module):
        def __init__(self, d_model, n_heads, n_kv_heads, d_ff, base=10000.0):
            super_init(self)
            refuse(d_model, n_heads, n_kv_heads)
            self.n_heads, self.n_kv_heads, self.base = n_heads, n_kv_heads, pace(base)
            hold(self, layers(*sizes(d_model, n_heads, n_kv_heads, d_ff)))

        def attend(self, x, mask, positions):
            n, group = x.shape[-2], self.n_heads // self.n_kv_heads
            where = (place(positions, n), self.base)
            views: Any = self.attention
            query = turn_query(cut(views["W_q"](x), self.n_heads), *where)
            key = turn_key(cut(views[layer_of_keys](x), self.n_kv_heads), *where)
            value = turn_value(cut(views[layer_of_values](x), self.n_kv_heads), *where)
            key, value = share_key(key, group), share_value(value, group)
            allowed = allow(mask, n) if mask is not None else order(allow(mask, n), where[0])
            allowed = None if allowed is None else add_heads_axis(allowed, x)
            return out(self, merge(attention.output(query, key, value, allowed, other=x)))

        def forward(self, x, mask=None, positions=None):
            norms = [first_norm(self), second_norm(self)]
            both_branches = branches(lambda x: self.attend(x, mask, positions), partial(feed, self))
            return finish(self, through_branches(x, both_branches, norms, step))

    return LlamaBlock


def with_other_sizes(**changed):
    """Return the option that changes some of the sizes."""

    def sizes(d_model, n_heads, n_kv_heads, d_ff):
        right_sizes = {
            "d_model": d_model,
            "n_heads": n_heads,
            "n_kv_heads": n_kv_heads,
            "d_ff": d_ff,
        }
        return tuple(
            {**right_sizes, **{n: make(**right_sizes) for n, make in changed.items()}}.values()
        )

    return {"sizes": sizes}


def with_other_layer(name, make):
    """Return the option that builds the block with one layer in place of another."""

    def layers(*sizes):
        return block_layers(*sizes) | {name: make(*sizes)}

    return {"layers": layers}


class OtherGatedLayer(nn.Module):
    """A gated layer that is bent by another function, or multiplied otherwise."""

    W_gate: nn.Linear
    W_up: nn.Linear
    W_down: nn.Linear

    def __init__(self, d_model, d_ff, hidden):
        super().__init__()
        for name, layer in gated_layers(d_model, d_ff).items():
            setattr(self, name, layer)
        self.hidden = hidden

    def forward(self, x):
        return self.W_down(self.hidden(self.W_gate(x), self.W_up(x)))


def with_other_gate(hidden):
    return with_other_layer(
        "feed_forward", lambda d_model, h, h_kv, d_ff: OtherGatedLayer(d_model, d_ff, hidden)
    )


class MeanSubtractingNorm(llama.RMSNorm):
    """Chapter 12's norm without its bias."""

    def forward(self, x):
        return super().forward(x - mean_of_row(x))


def with_other_norms(make):
    """Return the option in which both norms are others."""
    return {
        "layers": lambda *sizes: block_layers(*sizes) | {n: make(sizes[0]) for n in NORMS},
    }


NORMS = ("norm_1", "norm_2")


def count_from_end(positions, n):
    return count_if_none(positions, n).flip(0)


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    llama.LlamaBlock,
    section="Chapter 18, “The block of today”",
    difficulty=3,
    minutes=40,
    forbids=("multi_head_attention_forward",),
    criteria=(
        CASES.criterion("x + attention(norm_1(x)), then x + feed_forward(norm_2(x))", 4).on(
            ROW,
            WIDE_ROW.but(then={"n": 3}),
            ROW.but(then={}, note=OTHER_NUMBERS),
            row("n=2 d_model=16 h=4 h_kv=2 d_ff=5", note="two tokens"),
            row("n=5 d_model=24 h=6 h_kv=2 d_ff=6", note="as many hidden units as heads"),
            row("n=5 d_model=24 h=6 h_kv=2 d_ff=2", note="two hidden units"),
        ),
        CASES.criterion("fewer key/value heads, each for a run of query heads", 2).on(
            row("n=5 d_model=24 h=6 h_kv=3 d_ff=7"),
            row("n=3 d_model=12 h=3 h_kv=3 d_ff=5", note="as many as query heads"),
            row("n=5 d_model=32 h=8 h_kv=2 d_ff=5", batch=(2,), note="8 and 2, a batch of 2"),
        ),
        CASES.criterion("positions turn queries and keys", 3).on(
            ROW.but(arguments=WITH_POSITIONS, note="positions that leave some out"),
            WIDE_ROW.but(arguments=WITH_POSITIONS, note="positions that leave some out"),
            WIDE_ROW.but(options={"base": 100.0}, note="base = 100"),
            row("n=19 d_model=64 h=4 h_kv=2 d_ff=3", options={"base": 1e5}, note="base = 100,000"),
            ROW.but(batch=(3,), arguments=WITH_POSITIONS, note="a batch of 3"),
            ROW.but(
                arguments=WITH_FALLING_POSITIONS,
                note="positions that fall: a token sees those before it",
            ),
        ),
        CASES.criterion("a mask takes the place of the causal one", 2).on(
            ROW.but(arguments={"mask": hole("n n")}, note="(n, n)"),
            ROW.but(batch=(2,), arguments={"mask": hole("... n n")}, note="(b, n, n)"),
            ROW.but(batch=(6,), arguments={"mask": hole("... n n")}, note="(b, n, n), b = h"),
            ROW.but("n=5", batch=(5,), arguments={"mask": hole("n n")}, note=ONE_MASK),
            ROW.but(
                arguments={"mask": hole("n n"), "positions": Drawn("n", rising_positions)},
                note="with positions",
            ),
        ),
        CASES.criterion("a row without a key gets attention 0, never NaN", 1).on(
            ROW.but(
                batch=(3,),
                arguments={"mask": Drawn("... n n", mask_padded_left)},
                note="padded on the left",
            ),
        ),
        Criterion("refuses heads that do not divide with ValueError", 1).on(
            lambda rng: [
                refused_case((10, 4, 2, 5), "10 features, 4 heads"),
                refused_case((12, 3, 2, 5), "3 heads, 2 key/value heads"),
                refused_case((16, 2, 4, 5), "more key/value heads than heads"),
            ]
        ),
        CASES.criterion("batches", 1).on(
            *(EQUAL_SIZES if r.note == "every axis of length 4" else r for r in ROWS.batches)
        ),
        Criterion("one head, one token; float32, large and small entries, weights of 0", 1).on(
            lambda rng: [
                *CASES(
                    row("n=3 d_model=4 h=1 h_kv=1 d_ff=7", note="one head"),
                    row("n=7 d_model=16 h=4 h_kv=1 d_ff=5", note="one key/value head"),
                    row("n=1 d_model=16 h=4 h_kv=2 d_ff=5", note="one token"),
                    ROWS.single,
                    *ROWS.extreme,
                    *(
                        ROW.but(zero=(f"{name}",), note=f"{name} is 0")
                        for name in (
                            *(f"attention.W_{view}.weight" for view in "qkvo"),
                            *(f"feed_forward.W_{layer}.weight" for layer in ("gate", "up", "down")),
                            "norm_1.gain",
                            "norm_2.gain",
                        )
                    ),
                )(rng),
                *LARGE_SCORE_CASES(ROW.but(note="scores in the thousands"))(rng),
            ]
        ),
        CASES.criterion("gradients reach x and every weight", 1).on(*ROWS.gradients),
        unchanged(),
    ),
    excludes=(
        FLOATS_ONLY,
        ("d_model = h*", "A head has an even number of features."),
        ("cache given", "The notebook's block reads whole sequences."),
        ("eps given", "The norms are those of the notebook."),
    ),
    mistakes=made(
        compose_llama_block,
        mistakes.NO_SUPER_INIT,
        mistakes.LAYERS_HIDDEN.said(
            "Your module has no parameters. Layers in a plain list or dict, or made anew in "
            "`forward`, are not found: assign each to an attribute in `__init__`, "
            "`self.norm_1 = …`."
        ),
        mistake("""the values are turned too
            You turn the values by their positions. Only queries and keys are turned: where a token
            stands says who listens to whom, not what is heard.""").by(turn_value=turn_pairs),
        mistake("""nothing is turned
            Your block knows no positions: it uses queries and keys as they are. Turn both,
            `apply_rope(query, positions, base)`.""").by(turn=unturned),
        mistake("""only one of the two is turned
            You turn the queries and not the keys, or the keys alone. A score then depends on where
            the pair stands, and not on its distance. Turn both.""")
        .by(turn_key=unturned)
        .by(turn_query=unturned),
        mistake("""positions is ignored
            You count 0, 1, 2, … whatever positions says. Where they are given, they take the place
            of the count.""").by(place=lambda positions, n: torch.arange(n)),
        mistake("""only differences of positions that you make up
            You use positions from the end, from 1 on as if they were counted anew, or in reverse.
            They are taken as they come; without them they are 0, 1, 2, …""").by(
            place=count_from_end
        ),
        mistake("""turned in two halves
            You turn feature i with feature i + d_head/2, as `transformers` does for Llama. Here
            they turn in pairs side by side, 2i with 2i + 1, as in chapter 11.""").by(
            turn=turn_halves
        ),
        mistake("""turned backwards
            One of the two is turned the other way, by −position. Then the angles of query and key
            add up. Turn both by +position.""")
        .by(turn_key=lambda heads, positions, base: apply_rope(heads, -positions, base))
        .by(turn_query=lambda heads, positions, base: apply_rope(heads, -positions, base)),
        mistake("""both are turned the other way
            You turn queries and keys by −position, so that a token behind looks like one ahead.
            Turn both by +position.
        """).by(turn=lambda heads, positions, base: apply_rope(heads, -positions, base)),
        mistake("""one layer for keys and values
            Your keys and your values come from one layer. There are two, W_k and W_v.""")
        .by(layer_of_keys="W_v")
        .by(layer_of_values="W_k"),
        mistake("""turned before the heads are split
            You turn the whole row of d_model features, so that the frequencies fall from head to
            head. Each head is turned by itself: split first, then turn.""").by(
            turn=lambda heads, positions, base: multihead.split_heads(
                apply_rope(multihead.merge_heads(heads), positions, base), heads.shape[-3]
            )
        ),
        mistake("""base is ignored
            You turn with base 10,000 whatever `base` says. Keep it in `__init__` and hand it on:
            `apply_rope(…, positions, base)`.""")
        .by(pace=lambda base: 10000.0)
        .by(pace=lambda base: 1e5),
        mistake("""key/value heads in the wrong order
            You repeat the key/value heads one after the other, 0 1 0 1. Query head h uses head h //
            (n_heads / n_kv_heads), a run each: 0 0 1 1, `repeat_interleave`.""")
        .by(share=repeat_in_turn)
        .by(share_key=repeat_in_turn)
        .by(share_value=repeat_in_turn)
        .by(share=lambda heads, group: repeat_in_runs(heads, group).flip(-3)),
        mistake("""key/value heads are not used each by its own
            All query heads use one key/value head, or their mean. Each key/value head serves a run
            of query heads.""")
        .by(share=lambda heads, group: repeat_in_runs(heads[..., :1, :, :].expand_as(heads), group))
        .by(
            share=lambda heads, group: repeat_in_runs(
                heads.mean(-3, keepdim=True).expand_as(heads), group
            )
        ),
        mistake("""n_kv_heads is ignored
            Your keys and values have as many heads as the queries. W_k and W_v lead to n_kv_heads ·
            d_head features.""").by(with_other_sizes(n_kv_heads=lambda n_heads, **_: n_heads)),
        mistake("""not causal
            Without a mask your tokens see all others. A token sees itself and those before it
            unless a mask is given: `causal_mask(n)`.""").by(allow=lambda mask, n: mask),
        mistake("""causal by the positions that are given
            You hide a token where its position is higher. Which tokens come before is said by their
            place in the sequence: `positions` turn queries and keys and do nothing else.
        """).by(order=lambda allowed, positions: positions[:, None] >= positions),
        mistake("""the mask on top of the causal one
            Where a mask is given, you hide later tokens as well. It takes the place of the causal
            mask.""").by(
            allow=lambda mask, n: causal_mask(n) if mask is None else mask & causal_mask(n)
        ),
        mistake("""the mask is ignored
            Your block is causal whatever the mask says. Where one is given, it takes the place of
            the causal mask.""").by(allow=lambda mask, n: causal_mask(n)),
        mistake("""a token does not see itself
            Your causal mask lacks the diagonal. A token sees itself and those before it.""").by(
            allow=lambda mask, n: torch.ones(n, n).tril(-1).bool() if mask is None else mask
        ),
        mistake("""the mask is inverted
            You shut out what the mask allows. True means allowed, here as in chapter 9.""").by(
            allow=lambda mask, n: causal_mask(n) if mask is None else ~mask
        ),
        mistake("""the mask is transposed
            You transpose the mask. It has a row for each query and a column for each key: use it as
            it is.""").by(allow=lambda mask, n: causal_mask(n) if mask is None else mask.mT),
        mistake("""a row without a key becomes NaN
            A query that may see no key has nothing but −∞ in its row, and a softmax of that is
            0/0. The package's `scaled_dot_product_attention` gives such a row 0.""").by(
            normalize=lambda scores: scores.softmax(-1)
        ),
        mistake("""a row without a key gets the mean
            A query that may see no key hears all of them, as it does where a large negative number
            stands in place of −∞. Its attention is 0.""")
        .by(hide=lambda s, mask: s if mask is None else s.masked_fill(~mask, -1e9))
        .by(hide=lambda s, mask: s if mask is None else s + ~mask * -1e9),
        mistakes.NO_SCALE.said(
            "You take the scores as they are. Divide them by √d_head, the width of a head."
        ),
        mistakes.DIVIDED_BY_D_K.naming(d_k="d_head"),
        mistakes.DIVIDED_BY_ROOT_D_MODEL.naming(d_k="d_head"),
        mistakes.ROLES_EXCHANGED,
        mistake("""softmax over the queries
            Your columns sum to 1. Each query shares out its attention over the keys: the last
            axis.""").by(normalize=lambda scores: scores.softmax(-2).nan_to_num(0)),
        mistake("""uniform weights
            Your attention does not depend on queries and keys. Compare them: the scores are q kᵀ.
        """).by(compare=lambda q, k: 0 * (q @ k.mT)),
        mistake("""the residual is missing
            A branch's output takes the place of x. It is added to what the branch read: x +
            branch(norm(x)), for both.""").by(step=lambda x, branch, norm, first: branch(norm(x))),
        mistake("""the sum is normalised
            You normalise the sum, as blocks of 2017 did. The norm stands before the branch: x +
            branch(norm(x)).""").by(step=lambda x, branch, norm, first: norm(x + branch(x))),
        mistake("""the residual begins behind the norm
            You add the branch to the normalised x. The stream itself is not normalised: x +
            branch(norm(x)), with the x from before the norm.""")
        .by(step=add_to_normed)
        .by(
            step=lambda *args: (
                add_to_normed(*args) if is_first_branch(*args) else norm_before_branch(*args)
            )
        )
        .by(
            step=lambda *args: (
                norm_before_branch(*args) if is_first_branch(*args) else add_to_normed(*args)
            )
        ),
        mistake("""the norm behind the branch
            You normalise what a branch returns. What it reads is normalised: x + branch(norm(x)).
        """).by(step=lambda x, branch, norm, first: x + norm(branch(x))),
        mistake("""both residuals from the block's input
            You add the feed-forward layer to the x that came into the block, and what attention
            added is lost. It is added to what it read, the x so far.""").by(
            step=lambda x, branch, norm, first: first + branch(norm(x))
        ),
        mistake("""a norm is missing
            You leave the norms out, or one of them. Each branch reads a normalised x.""")
        .by(step=lambda x, branch, norm, first: x + branch(x))
        .by(first_norm=lambda self: nn.Identity())
        .by(second_norm=lambda self: nn.Identity()),
        mistake("""a norm at the end
            You normalise once more before you return. The norm behind the last block belongs to the
            model, not to a block.""")
        .by(finish=lambda self, x: self.norm_1(x))
        .by(finish=lambda self, x: self.norm_2(x))
        .by(finish=lambda self, x: llama.rms_norm(x)),
        mistake("""a norm at the wrong branch
            `norm_1` belongs to attention, `norm_2` to the feed-forward layer. You exchange them, or
            use one for both.""")
        .by(first_norm=lambda self: self.norm_2, second_norm=lambda self: self.norm_1)
        .by(second_norm=lambda self: self.norm_1)
        .by(first_norm=lambda self: self.norm_2),
        mistake("""side by side
            You compute both branches from the same x and add them. The feed-forward layer reads
            what attention has added.""").by(
            branches=lambda attend, feed: [attend, feed],
            step=lambda x, branch, norm, first: x + branch(norm(first)),
        ),
        mistake("""the branches in another order
            You take the feed-forward layer first. Attention comes first.""").by(
            branches=lambda attend, feed: [feed, attend],
            first_norm=lambda self: self.norm_2,
            second_norm=lambda self: self.norm_1,
        ),
        mistake("""a branch is left out
            You have both branches and use one. Attention and feed-forward layer each have a
            residual and a norm of their own.""")
        .by(branches=lambda attend, feed: [attend])
        .by(
            branches=lambda attend, feed: [feed],
            first_norm=lambda self: self.norm_2,
        ),
        mistake("""the mean is taken off
            Your norms subtract each row's mean, as chapter 12's does. An RMS norm leaves it in.
        """).by(with_other_norms(MeanSubtractingNorm)),
        mistake("""gate and value exchanged
            In your feed-forward layer the activation is on `W_up x`. It is the gate that is bent:
            silu(W_gate x) · W_up x.""").by(with_other_gate(lambda gate, up: gate * F.silu(up))),
        mistake("""another activation in the feed-forward layer
            The gate is bent by the SiLU, x·σ(x), and multiplied with `W_up x`. Yours is bent by
            another function, or by none.""")
        .by(with_other_gate(lambda gate, up: F.gelu(gate) * up))
        .by(with_other_gate(lambda gate, up: F.relu(gate) * up))
        .by(with_other_gate(lambda gate, up: gate.sigmoid() * up))
        .by(with_other_gate(lambda gate, up: gate * up)),
        mistake("""W_o is forgotten
            You return the heads side by side. `W_o` mixes them.""").by(
            out=lambda self, heads: heads
        ),
        mistake("""heads put together without changing places
            You reshape `(h, n, d_head)` straight to `(n, d_model)`, and the tokens of one head end
            up in one row. Exchange the axes first: `merge_heads`.""").by(
            merge=lambda heads: heads.reshape(
                *heads.shape[:-3], heads.shape[-2], heads.shape[-3] * heads.shape[-1]
            )
        ),
        mistake("""heads cut across the tokens
            You reshape `(n, d)` straight to `(h, n, d_head)`, so that a head holds whole tokens.
            Cut the features and exchange the axes: `split_heads`.""").by(
            cut=lambda x, h: x.reshape(*x.shape[:-2], h, x.shape[-2], x.shape[-1] // h)
        ),
        mistake("""heads that do not divide are not refused
            Where n_heads does not divide d_model, or n_kv_heads not n_heads, raise `ValueError` in
            `__init__` (an `assert` raises AssertionError).""")
        .by(refuse=lambda *sizes: None)
        .by(refuse=lambda d_model, n_heads, n_kv_heads: refuse_heads(d_model, n_heads, 1))
        .by(refuse=lambda d_model, n_heads, n_kv_heads: refuse_heads(n_heads, n_heads, n_kv_heads)),
        mistake("""x += changes what was handed over
            `x += …` writes into the caller's x, which then holds other numbers, and gradients may
            fail. Write `x = x + …`, which makes a new tensor.""").by(
            step=lambda x, branch, norm, first: x.add_(branch(norm(x)))
        ),
    ),
)
