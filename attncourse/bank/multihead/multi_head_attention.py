"""The exercise ``MultiHeadAttention``: attention with several heads at once."""

from dataclasses import replace
from itertools import product

import torch
from torch import nn

from attncourse import multihead
from attncourse.bank.multihead.cases import layer_weights
from attncourse.bank.multihead.mistakes import (
    AXES_FROM_THE_FRONT,
    AXES_NOT_PUT_BACK,
    DIVISION_TURNED_ROUND,
    EVERY_H_TH,
    FEATURES_INTERLEAVED,
    HEADS_ADDED_UP,
    RESHAPED,
    WIDTH_FOR_NUMBER,
    WIDTH_NOT_REFUSED,
    cut_every_h_th,
    cut_into_runs,
    cut_with_batch_in_front,
    cut_with_one_batch_axis,
    join_in_memory_order,
    join_side_by_side,
    move_heads_first,
    refuse_width,
)
from attncourse.checks import callers
from attncourse.checks.exercise import Case, Criterion, Rng, composition, exercise, unchanged
from attncourse.checks.writing import cases, decisions, mistakes
from attncourse.checks.writing.cases import Drawn, hole, row, standard
from attncourse.checks.writing.decisions import Attention
from attncourse.checks.writing.modules import ModuleTable, State, module_case, tensor
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------


def heads_state(
    rng: Rng, d_model: int, n_heads: int, n_kv_heads: int | None = None, bias: bool = True
) -> State:
    d, d_kv = d_model, d_model // n_heads * (n_kv_heads or n_heads)
    return layer_weights(rng, bias, W_q=(d, d), W_k=(d_kv, d), W_v=(d_kv, d), W_o=(d, d))


CASES = ModuleTable(
    {"query": "... m d_model"}, name="MultiHeadAttention", build="d_model h", state=heads_state
)
ROWS = standard(CASES, d_model=12, h=3)
KEY_ALONE = {"key": Drawn("... n d_model")}
KEY_AND_VALUE = KEY_ALONE | {"value": Drawn("... n d_model")}
VALUE_ALONE = {"key": None, "value": Drawn("... m d_model")}
NO_BIAS = {"bias": False}
ROW = row("m=7 d_model=12 h=3")
TWO_SEQUENCES = ROW.but(batch=(2,))
THREE_SEQUENCES = ROW.but(batch=(3,))  # as many sequences as heads
CROSS_ROW = row("m=5 n=7 d_model=12 h=3", arguments=KEY_AND_VALUE)
GROUPED_ROW = row("m=5 d_model=16 h=4", options={"n_kv_heads": 2})
WIDE_ROW = row("m=5 n=7 d_model=24 h=6", batch=(2,))
SMALL_CROSS_ROW = row("m=5 n=7 d_model=8 h=2")


def tokens_far_from_0(rng: Rng, shape: tuple[int, ...]):
    """Return tokens whose first feature is large, so that the scores of a row lie far from 0."""
    tokens = cases.between(rng, shape)
    tokens[..., 0] = 2e4
    return tokens


TOKENS_FAR_FROM_0 = Drawn("n d_model", tokens_far_from_0)


def mask_without_value(axes: str, key: Drawn | None = None) -> dict:
    """Return the arguments of a case with a mask and no value."""
    return {"key": key, "value": None, "mask": hole(axes)}


MASK_PER_SEQUENCE = mask_without_value("... m m")


def indivisible_sizes_case(d: int, h: int) -> Case:
    built = f"MultiHeadAttention({d}, {h})"
    return Case((d, h), use=callers.type_built, shown=built, raises=ValueError)


# Three tokens of two features and two heads of one: each head sees one number of each token.
SMALL_STATE = {
    "W_q.weight": tensor([[1, 0], [1, 2]]),
    "W_k.weight": tensor([[1, 1], [0, -1]]),
    "W_v.weight": tensor([[1, 0], [0, 10]]),
    "W_o.weight": tensor([[1, 0], [1, 1]]),
}
BY_HAND, MAPS_BY_HAND = (
    module_case(
        "MultiHeadAttention",
        (2, 2),
        SMALL_STATE,
        {"query": tensor([[1, 0], [0, 1], [2, 1]])},
        options=NO_BIAS,
        method=method,
        note="each head has one feature",
    )
    for method in ("", "weights")
)
ROWS_WITH_0_WEIGHTS = [
    ROW.but(zero=zero, note="some weights are 0")
    for zero in (
        ("W_q.weight", "W_k.bias", "W_v.bias", "W_o.weight"),
        ("W_q.bias", "W_k.weight", "W_o.bias"),
        ("W_v.weight",),
    )
]

# --- decisions and mistakes ----------------------------------------------------------------------


def merge_in_turns(x):
    return x.movedim(-3, -1).flatten(-2)


def four_layers(d_model, n_heads, n_kv_heads, bias):
    d_kv = d_model // n_heads * n_kv_heads
    sizes = {"W_q": d_model, "W_k": d_kv, "W_v": d_kv, "W_o": d_model}
    return {name: nn.Linear(d_model, size, bias=bias) for name, size in sizes.items()}


def layers_with_other_W_o(d_in, *sizes):
    """Return the four layers, but W_o takes another number of features."""
    d, *_, bias = sizes
    return four_layers(*sizes) | {"W_o": nn.Linear(d_in, d, bias=bias)}


def default_key_and_value(query, key, value):
    key = query if key is None else key
    return query, key, key if value is None else value


def query_as_default_value(query, key, value):
    """Return the inputs with the query for a value left out, also where a key is given."""
    return query, query if key is None else key, query if value is None else value


def mix_up_to_the_shorter(weights, value):
    """Return the blend of as many values as there are both weights and values."""
    n = min(weights.shape[-1], value.shape[-2])
    return weights[..., :n] @ value[..., :n, :]


def blend_up_to_the_shorter(attention, views, mask, other):
    return replace(attention, mix=mix_up_to_the_shorter).output(*views, mask, other=other)


def add_heads_axis(mask, n_axes):
    """Return the mask with an axis for the heads if it has a batch axis and none for them."""
    return mask.unsqueeze(-3) if mask is not None and 2 < mask.ndim < n_axes else mask


@composition
def compose_multi_head_attention(
    super_init=decisions.begun,
    refuse=refuse_width,
    layers=four_layers,
    hold=decisions.assigned,
    defaults=default_key_and_value,
    query=lambda self, x: self.W_q(x),
    key=lambda self, x: self.W_k(x),
    value=lambda self, x: self.W_v(x),
    cut=cut_into_runs,
    move=move_heads_first,
    share=lambda x, group: x.repeat_interleave(group, -3),
    mask_for=add_heads_axis,
    mask_order=lambda mask, q: mask,
    merge=multihead.merge_heads,
    mix=lambda self, merged, query: self.W_o(merged),
    finish=lambda self, output, *inputs: output,
    answer=decisions.mixed,
    shares=decisions.shared_out,
    shown=lambda self, maps, *inputs: maps,
    **options,
):
    """Return a ``MultiHeadAttention`` made of decisions, in the order in which they are taken.

    ``answer`` makes what each head returns, ``shares`` the maps that ``weights`` returns, to which
    ``shown`` is done. Other options are decisions of ``Attention``.
    """
    attention = Attention.of(options)

    class MultiHeadAttention(nn.Module):
        def __init__(self, d_model, n_heads, n_kv_heads=None, bias=True):
            super_init(self)
            refuse(d_model, n_heads)
            self.n_heads, self.n_kv_heads = n_heads, n_kv_heads or n_heads
            hold(self, layers(d_model, n_heads, self.n_kv_heads, bias))

        def of_heads(self, *inputs, mask):
            asking, *seen = defaults(*inputs)
            q = move(cut(query(self, asking), self.n_heads))
            group = self.n_heads // self.n_kv_heads
            k, v = (
                share(move(cut(view(self, x), self.n_kv_heads)), group)
                for view, x in zip((key, value), seen, strict=True)
            )
            return (q, k, v), mask_order(mask_for(mask, q.ndim), q)

        def forward(self, query, key=None, value=None, mask=None):
            heads = self.of_heads(query, key, value, mask=mask)
            output = mix(self, merge(answer(attention, *heads, query)), query)
            return finish(self, output, query, key, value, mask)

        if shares:

            def weights(self, query, key=None, value=None, mask=None):
                heads = self.of_heads(query, key, value, mask=mask)
                return shown(self, shares(attention, *heads, query), query, key, value, mask)

    return MultiHeadAttention


def repeat_mask_batch_first(mask, q):
    """Repeat the mask over one axis of batch and heads, batch first; q's has the heads first."""
    if mask is None or mask.ndim != 4 or mask.shape[1] != 1 or len(mask) != len(q):
        return mask
    batch, n_heads = q.shape[:2]
    rows = mask.expand(-1, n_heads, -1, -1).flatten(0, 1)  # (b h, m, n)
    return rows.unflatten(0, (n_heads, batch)).transpose(0, 1)


def repeat_mask_heads_first(mask, q):
    """Repeat the mask over one axis of batch and heads, heads first; q's has the batch first."""
    if mask is None or mask.ndim != 4 or mask.shape[1] != 1 or len(mask) != len(q):
        return mask
    return mask[:, 0].repeat(q.shape[1], 1, 1).unflatten(0, q.shape[:2])


def add_bias_for_each_head(self, merged, query):
    """Return the output with W_o's bias added once for each head."""
    other_biases = 0 if self.W_o.bias is None else (self.n_heads - 1) * self.W_o.bias
    return self.W_o(merged) + other_biases


def mask_of_head_0(mask, n_axes):
    """Return of a mask for each head the first one."""
    return mask[..., :1, :, :] if mask is not None and mask.ndim == n_axes else mask


OVER_OTHERS = (mistakes.OVER_QUERIES, mistakes.OVER_AXIS_1, mistakes.OVER_AXIS_0)


def unfold_heads_first(x):
    """Merge heads that were folded behind the batch as if they stood before it."""
    *batch, h, n, d = x.shape
    unfolded = x.reshape(-1, n, d).reshape(h, -1, n, d)
    return unfolded.permute(1, 2, 0, 3).reshape(*batch, n, h * d)


def fold_heads_first(x):
    """Merge heads that were folded before the batch as if they stood behind it."""
    return multihead.merge_heads(x.movedim(-3, 0).reshape(x.shape))


FOLDED_AND_UNFOLDED = (
    mistake("""batch and heads folded in one order and unfolded in the other
    You put batch and heads into one axis and take them apart the other way round, so a sequence
    gets heads of others; with one sequence that does not show. Leave both axes as they are: `@`
    takes them along.""")
    .by(merge=unfold_heads_first)
    .by(merge=fold_heads_first)
)
OF_ATTENTION = (
    mistake("""divided by √d_model or √h
        You divide the scores by the root of d_model, or of the number of heads. The dot products
        are taken within a head and have d_head terms: divide by √d_head.""")
    .by(factor=lambda q, k, other: other.shape[-1] ** -0.5)
    .by(factor=lambda q, k, other: q.shape[-3] ** -0.5),
    *(s.naming(d_k="d_head") for s in (*mistakes.OF_THE_SCALE, mistakes.SCALED_AFTERWARDS)),
    *(
        # where a whole column is masked, it matters what was filled in
        recipe.by(recipe.ways[0] | mistakes.filled_with(-1e9)) if recipe in OVER_OTHERS else recipe
        for recipe in mistakes.OF_THE_SOFTMAX
    ),
    mistakes.NEITHER.naming(d_k="d_head"),
    mistake("""softmax over the heads
        Your softmax runs over the axis of the heads, so that they share a budget. Each head has its
        own, over the keys: `softmax(dim=-1)`.""").by(normalize=lambda s: s.softmax(-3)),
    *(s for s in mistakes.OF_THE_MASK if s is not mistakes.NOT_LOW_ENOUGH),
    mistakes.NOT_LOW_ENOUGH.by(mistakes.filled_with(-1e4)),
)

# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    multihead.MultiHeadAttention,
    section="Chapter 9, “One projection for all heads”",
    difficulty=4,
    minutes=45,
    forbids=("multi_head_attention_forward",),
    criteria=(
        CASES.criterion("attention in every head, merged, and mixed by W_o", 3).on(
            BY_HAND,
            ROW,
            ROW.but("m=3", note="as many tokens as heads"),
            row("m=5 d_model=32 h=2", then="m=3", note="d_head = 16"),
            ROW.but(then={}, note=cases.OTHER_NUMBERS),
        ),
        CASES.criterion("keys and values from elsewhere", 2).on(
            SMALL_CROSS_ROW.but(arguments=KEY_ALONE, note="no value given: it is the key"),
            CROSS_ROW,
            CROSS_ROW.but("m=19 n=3", arguments=KEY_ALONE, note="as many keys as heads"),
            SMALL_CROSS_ROW.but("m=2 n=17", arguments=KEY_AND_VALUE, note="many keys"),
            SMALL_CROSS_ROW.but(
                "m=3 n=2", batch=(2,), arguments=KEY_AND_VALUE, note="a batch of 2"
            ),
            ROW.but(arguments=VALUE_ALONE, note="a value and no key: the key is the query"),
        ),
        CASES.criterion("fewer key and value heads, one among them", 2).on(
            GROUPED_ROW.but("m=7"),
            GROUPED_ROW.but(options={"n_kv_heads": 1}, note="one for all"),
            WIDE_ROW.but(options={"n_kv_heads": 2}, note="runs of three, a batch of 2"),
            WIDE_ROW.but(
                options={"n_kv_heads": 3}, arguments=KEY_ALONE, note="keys from elsewhere"
            ),
            ROWS.batches[1].but("n=4", options={"n_kv_heads": 4}, arguments=KEY_ALONE),
        ),
        CASES.criterion("bias=False leaves every bias out", 1).on(
            ROW.but(options=NO_BIAS),
            GROUPED_ROW.but(options={**GROUPED_ROW.options, **NO_BIAS}),
        ),
        CASES.criterion("a mask for every head", 2).on(
            ROW.but(arguments=mask_without_value("m m"), note="(m, n)"),
            THREE_SEQUENCES.but(arguments=mask_without_value("m m"), note="(m, n), a batch of 3"),
            ROW.but(batch=(7,), arguments=mask_without_value("m m"), note=cases.ONE_MASK),
            TWO_SEQUENCES.but(arguments=MASK_PER_SEQUENCE, note="(b, m, n)"),
            THREE_SEQUENCES.but(arguments=MASK_PER_SEQUENCE, note="(b, m, n), as many as heads"),
            SMALL_CROSS_ROW.but(
                batch=(2,),
                arguments=mask_without_value("... m n", **KEY_ALONE),
                note="(b, m, n), keys from elsewhere, as many sequences as heads",
            ),
            SMALL_CROSS_ROW.but(
                "m=11",
                arguments=mask_without_value("m n", TOKENS_FAR_FROM_0),
                note="(m, n), scores far from 0",
            ),
        ),
        CASES.criterion("a mask for each head", 1).on(
            TWO_SEQUENCES.but(arguments=mask_without_value("... h m m"), note="(b, h, m, n)"),
            THREE_SEQUENCES.but(
                arguments=mask_without_value("... h m m"), note="(b, h, m, n), b = h"
            ),
            GROUPED_ROW.but(
                batch=(2,),
                arguments=mask_without_value("... h m m"),
                note="(b, h, m, n), n_kv_heads",
            ),
        ),
        CASES.criterion("weights(...) returns a map for each head", 2).on(
            MAPS_BY_HAND,
            ROW.but(method="weights"),
            ROW.but(then={}, method="weights", note=cases.OTHER_NUMBERS),
            CROSS_ROW.but(
                batch=(2,), arguments=KEY_ALONE, method="weights", note="keys from elsewhere"
            ),
            CROSS_ROW.but(method="weights", note="a value that plays no part"),
            GROUPED_ROW.but(method="weights"),
            THREE_SEQUENCES.but(
                arguments=MASK_PER_SEQUENCE, method="weights", note="(b, m, n), as many as heads"
            ),
            TWO_SEQUENCES.but(
                arguments=mask_without_value("... h m m"), method="weights", note="(b, h, m, n)"
            ),
        ),
        CASES.criterion("batches", 1).on(
            *ROWS.batches,
            row("m=5 d_model=8 h=2", batch=(2, 3), note="two batch axes"),
        ),
        CASES.criterion("one head, query or key; float32, large scores, weights of 0", 1).on(
            row("m=5 d_model=4 h=1", note="one head"),
            row("m=1 d_model=8 h=2", note="one token"),
            SMALL_CROSS_ROW.but("m=1 n=17", arguments=KEY_AND_VALUE, note="one query, many keys"),
            SMALL_CROSS_ROW.but("m=2 n=1", arguments=KEY_AND_VALUE, note="one key"),
            ROWS.single.but("d_model=21", note="float32, d_head = 7"),
            *ROWS.extreme,
            *ROWS_WITH_0_WEIGHTS,
        ),
        CASES.criterion("gradients reach query, key and every weight", 2).on(
            CROSS_ROW.but(
                batch=(2,),
                use=callers.call_module_with_each_gradient,
                note="a batch of 2, each gradient alone",
            ),
            GROUPED_ROW.but(
                "n=7",
                arguments=mask_without_value("m n", **KEY_ALONE),
                use=callers.call_module_with_gradients,
                note="with a mask, all at once",
            ),
        ),
        Criterion("refuses a d_model that n_heads does not divide", 1).on(
            lambda rng: [indivisible_sizes_case(7, 2), indivisible_sizes_case(12, 5)]
        ),
        unchanged(),
    ),
    excludes=(cases.FLOATS_ONLY,),
    mistakes=made(
        compose_multi_head_attention, mistakes.WEIGHTS_WITHOUT_MASK, mistakes.WEIGHTS_ARE_SCORES
    )
    + made(compose_multi_head_attention, *OF_ATTENTION, beside=mistakes.IN_ONE_METHOD)
    + made(
        compose_multi_head_attention,
        mistakes.NO_SUPER_INIT,
        mistakes.LAYERS_HIDDEN,
        RESHAPED.by(RESHAPED.ways[0] | {"merge": join_in_memory_order}),
        EVERY_H_TH.by(cut=cut_every_h_th, merge=merge_in_turns),
        WIDTH_FOR_NUMBER,
        AXES_FROM_THE_FRONT.by(cut=cut_with_one_batch_axis)
        .by(compare=lambda q, k: torch.einsum("bhmd,bhnd->bhmn", q, k))
        .by(cut=cut_with_batch_in_front, move=lambda x: x.transpose(1, 2))
        .by(share=lambda x, group: x.repeat_interleave(group, 1))
        .by(share=lambda x, group: x.repeat_interleave(group, 0)),
        AXES_NOT_PUT_BACK.here(merge=join_in_memory_order),
        FOLDED_AND_UNFOLDED,
        FEATURES_INTERLEAVED.here(merge=merge_in_turns),
        HEADS_ADDED_UP.here(
            layers=lambda d, h, *more: layers_with_other_W_o(d // h, d, h, *more),
            merge=lambda x: x.mean(-3),
        ).said(
            "Your W_o takes d/h features, as if the heads were averaged or added up. Their outputs "
            "stand side by side, d features in all; W_o decides with which weights they are added."
        ),
        mistake("""the heads attend to each other
            You leave the projections as (..., n, h, d_head), without the transpose, so that in each
            token head meets head. Tokens are to meet: `.transpose(-3, -2)` first.
        """).by(move=lambda x: x, merge=join_side_by_side),
        mistake("""W_o is forgotten
            You return the heads' outputs side by side. W_o comes after that, and it is the only
            place where the heads meet.""").by(mix=lambda self, merged, query: merged),
        mistake("""W_o's bias is added once for each head
            You send each head through its part of W_o and add up, with the bias every time. It is
            added once: put the heads side by side, and call `self.W_o` on all of them.
        """).by(mix=add_bias_for_each_head),
        mistake("""the query is added on top
            You add the query to the output, as the block around this module will. Attention returns
            what W_o makes of the heads, and nothing else.
        """).by(mix=lambda self, merged, query: query + self.W_o(merged)),
        mistake("""one map or one set of keys for all heads
            You mix with the average of the heads' maps, or all heads compare with head 0's keys.
            Each has its own run of features of `W_k(key)`, and its own map.""")
        .by(after=lambda w, mask, factor: w.mean(-3, keepdim=True))
        .by(compare=lambda q, k: q @ k[..., :1, :, :].mT),
        mistakes.ROLES_EXCHANGED,
        mistakes.T_ON_A_BATCH,
        mistakes.COSINE,
        mistakes.QUERIES_NOT_PROJECTED,
        mistakes.ONE_VIEW_TO_COMPARE,
        *mistakes.OF_THE_VIEWS,
        mistake("""the biases are there and not used
            Your layers have biases, but you multiply by their weights alone. Call the layer,
            `self.W_q(query)`, which adds its bias too.""")
        .by(
            query=lambda self, x: x @ self.W_q.weight.mT,
            key=lambda self, x: x @ self.W_k.weight.mT,
            value=lambda self, x: x @ self.W_v.weight.mT,
        )
        .by(mix=lambda self, merged, query: merged @ self.W_o.weight.mT),
        mistake("""another key or value is used
            The query stands for a key that is left out, and the key for a value: `key = query if
            key is None else key`, then `value = key if value is None else value`. You use another
            one for key or for value.""")
        .by(defaults=lambda query, key, value: (query, query, query))
        .by(defaults=lambda q, k, v: (q, q, default_key_and_value(q, k, v)[2]))
        .by(defaults=lambda q, k, v: default_key_and_value(q, k, None))
        .by(defaults=lambda q, k, v: default_key_and_value(q, k, None if k is None else v))
        .by(defaults=query_as_default_value)
        .by(defaults=query_as_default_value, answer=blend_up_to_the_shorter),
        mistake("""a tensor taken for True or False
            `key or query` and `if key:` ask a tensor whether it is true, which torch refuses for
            more than one number. Ask `if key is None`.
        """).by(defaults=lambda query, key, value: (query, key or query, value or key or query)),
        mistake("""key/value heads are not repeated in runs
            Each serves a run of neighbouring query heads, 0, 0, 1, 1: `repeat_interleave(n_heads //
            n_kv_heads, dim=-3)`. You take them in turns (`repeat`), or do not repeat them.""")
        .by(share=lambda x, group: torch.cat([x] * group, -3))
        .by(share=lambda x, group: x),
        mistake("""key/value heads are not used each by its own
            With fewer key/value heads you use one of them for all query heads, or their average.
            Each serves the run of query heads that is its own: `repeat_interleave(n_heads //
            n_kv_heads, dim=-3)`.""")
        .by(share=lambda x, group: x[..., :1, :, :] if group > 1 else x)
        .by(share=lambda x, group: x[..., -1:, :, :] if group > 1 else x)
        .by(share=lambda x, group: x.mean(-3, keepdim=True) if group > 1 else x),
        mistake("""n_kv_heads is ignored
            Your W_k and W_v have d_model outputs whatever n_kv_heads says. They are n_kv_heads ·
            d_head wide; that is what is saved.
        """).by(layers=lambda d, h, kv, bias: four_layers(d, h, h, bias)),
        mistake("""bias is not handed on to every layer
            Some layer has a bias with `bias=False`, or none with `bias=True`, the default. All four
            go by it: `nn.Linear(…, bias=bias)`.""")
        .by(layers=lambda d, h, kv, bias: four_layers(d, h, kv, True))
        .by(layers=lambda d, h, kv, bias: four_layers(d, h, kv, False))
        .by(
            *(
                {
                    "layers": lambda d, h, kv, bias, b=b, recipe=recipe: (
                        four_layers(d, h, kv, bias)
                        | {f"W_{n}": four_layers(d, h, kv, b)[f"W_{n}"] for n in recipe}
                    )
                }
                for b, recipe in product((False, True), ("o", "q", "k", "v", "qkv"))
            )
        ),
        mistake("""the mask's batch axis meets the heads
            A mask (b, m, n) broadcasts against scores (b, h, m, n) from the right, so its batch
            axis meets that of the heads: an error, or, with as many sequences as heads, wrong
            numbers. Give it an axis for the heads first: `mask.unsqueeze(-3)`.""")
        .by(mask_for=lambda mask, n_axes: mask)
        .by(mask_for=lambda mask, n_axes: None if mask is None else mask.unsqueeze(0))
        .by(mask_for=lambda m, n_axes: m[None, None] if m is not None and m.ndim == 2 else m),
        mistake("""an axis for the heads where none is missing
            Only a mask (b, m, n) lacks an axis for the heads. One that is (m, n) broadcasts as it
            is, and one that is (b, h, m, n) has the axis: ask for the number of axes.""")
        .by(mask_for=lambda mask, n_axes: None if mask is None else mask.unsqueeze(-3))
        .by(mask_for=lambda mask, n_axes: None if mask is None else mask.unsqueeze(1))
        .by(mask_for=lambda m, n_axes: m.unsqueeze(1) if m is not None and m.ndim > 2 else m),
        mistake("""heads and batch change places in the mask
            You put heads and batch into one axis, and repeat the mask (b, m, n) in the other order
            of the two: a sentence gets another one's mask. Repeat it in the same order:
            `mask.repeat(h, 1, 1)` where heads come first, `repeat_interleave` where the batch
            does.""")
        .by(mask_order=repeat_mask_batch_first)
        .by(mask_order=repeat_mask_heads_first),
        mistake("""head 0's mask for all heads
            Of a mask (b, h, m, n) you use the first head's for all. Each head has its own.
        """).by(mask_for=lambda mask, n_axes: mask_of_head_0(add_heads_axis(mask, n_axes), n_axes)),
        mistakes.WEIGHTS_MISSING,
        mistake("""weights averages over the heads
            Your `weights` returns one map, the average (which is what PyTorch's module does
            unless told otherwise), or head 0's. Return all h of them: they were made to differ.""")
        .by(shown=lambda self, maps, *inputs: maps.mean(-3))
        .by(shown=lambda self, maps, *inputs: maps[..., 0, :, :]),
        mistake("""weights compares with the query alone
            Your `weights` makes the keys of the query even where a key is given. It is to return
            the maps that `forward` uses: `key = query if key is None else key`.""").by(
            shown=lambda self, maps, query, key, value, mask: (
                maps if key is None else self.weights(query, None, None, mask)
            )
        ),
        mistakes.WEIGHTS_ARE_OUTPUT.here(shown=lambda self, maps, *inputs: self(*inputs)),
        mistakes.WEIGHTS_COME_BACK.here(
            finish=lambda self, output, *inputs: (output, self.weights(*inputs))
        ),
        WIDTH_NOT_REFUSED,
        DIVISION_TURNED_ROUND,
    ),
)
