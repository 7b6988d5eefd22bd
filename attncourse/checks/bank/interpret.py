"""The exercises of chapter 14, what the heads learned.

The models of the cases are chapter 13's, with weights of order one. They have three heads of four
features, so that no count of one can be taken for the other, and 1/√d_head is exact.
"""

import copy
import math
from collections.abc import Callable
from dataclasses import replace
from itertools import accumulate

import numpy as np
import torch

from attncourse import interpret
from attncourse.checks.callers import call_on_gpt, logits_of_changed
from attncourse.checks.callers.ablation import shapes_of
from attncourse.checks.exercise import Case, Criterion, Rng, composition, exercise, unchanged
from attncourse.checks.variants.adapter import Adapter
from attncourse.checks.variants.rewriting import LAST_FIRST
from attncourse.checks.variants.variant import Variant, rewordings
from attncourse.checks.writing.cases import FLOATS_ONLY, CaseTable, Drawn, once_more, row, standard
from attncourse.checks.writing.mistakes import Between
from attncourse.checks.writing.modules import State, tensor
from attncourse.checks.writing.recipes import made, mistake
from attncourse.gpt import GPT, GPTConfig
from attncourse.masking import causal_mask
from attncourse.multihead import merge_heads

# --- cases: induction_pattern, head_scores, rollout ------------------------------------------


def as_it_is(value):
    return value


def few_kinds(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Ids of few kinds, so that most come again; the first one twice, and again at the end."""
    ids = rng.integers(3, 7, shape)
    if shape[-1] > 4:
        ids[..., [0, 1, -1]] = 3
        ids[..., 2] = 5
        ids[..., -2] = 4
    return ids


def all_different(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    return rng.permutation(shape[-1] + 3)[: shape[-1]]


def of_one_kind(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    return np.full(shape, 4)


INDUCTION_CASES = CaseTable({"ids": Drawn("n", few_kinds)})
INDUCTION_BY_HAND = Case((torch.tensor([7, 2, 9, 7, 2]),), note="7 2 9 7 2")


def maps_of(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Causal maps: every row sums to 1, over the tokens up to its own."""
    scores = np.exp(2 * rng.normal(size=shape)) * np.tri(*shape[-2:])
    return scores / scores.sum(-1, keepdims=True)


def even_or_full(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Maps in which nothing is hidden."""
    scores = np.exp(2 * rng.normal(size=shape))
    return scores / scores.sum(-1, keepdims=True)


def looks_back(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """A pattern with rows of none, one and several, below and on the diagonal.

    Of several tokens more ask than are asked for.
    """
    n = shape[-1]
    pattern = np.tril(rng.random(shape) < 0.5)
    pattern[:, 2 : n - 1 if n > 5 else n] = False
    pattern[:, 0] |= np.arange(n) % 2 == 1
    pattern[-1, :2] = True
    if n > 1:
        pattern[[0, n // 2]] = False
        pattern[1, 0] = True
    return pattern


def nowhere(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    return np.zeros(shape, bool)


def everywhere(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    return np.ones(shape, bool)


def above_too(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """A pattern above the diagonal, too: every query but the last one asks, two are asked for."""
    pattern = np.zeros(shape, bool)
    pattern[:-1, 1] = True
    pattern[:-1, -1] = rng.permutation(shape[-1] - 1) % 2 == 0
    return pattern


SCORE_CASES = CaseTable(
    {"maps": "... l h n n", "pattern": Drawn("n n", looks_back)},
    how=maps_of,
)
SCORE_ROWS = standard(SCORE_CASES, l=2, h=3)
SCORE_BY_HAND = Case(
    (
        tensor(
            [
                [
                    [[1, 0, 0], [0.8, 0.2, 0], [0.5, 0.25, 0.25]],
                    [[1, 0, 0], [0, 1, 0], [0, 1, 0]],
                ],
                [[[1, 0, 0], [1, 0, 0], [0, 1, 0]], [[1, 0, 0], [0.5, 0.5, 0], [0.25, 0.25, 0.5]]],
            ]
        ),
        torch.tensor([[0, 0, 0], [1, 0, 0], [1, 1, 0]]).bool(),
    ),
    note="two layers of two heads, three tokens",
)
ROLLOUT_CASES = CaseTable({"maps": "... l h n n"}, how=maps_of)
ROLLOUT_ROWS = standard(ROLLOUT_CASES, l=3, h=2)
ROLLOUT_BY_HAND = Case(
    (tensor([[[[1, 0], [1, 0]], [[1, 0], [0, 1]]], [[[1, 0], [0.5, 0.5]], [[1, 0], [1, 0]]]]),),
    note="two layers of two heads",
)
MAPS_ONLY = (
    FLOATS_ONLY,
    ("a row of very *", "A map's rows sum to 1."),
    ("entries that cancel", "A map's rows sum to 1."),
)


# --- cases: models ---------------------------------------------------------------------------

SIZES = {"n_vocab": 11, "max_length": 9, "d_model": 12, "n_heads": 3, "n_layers": 2, "d_ff": 7}


def state_of_gpt(rng: Rng, config: dict) -> State:
    """Parameters of order one for a ``GPT``; of tied layers the first one's."""
    state = {}
    for name, shape in shapes_of(GPT, GPTConfig(**config)).items():
        numbers = rng.uniform(0.4, 1.2, shape) * rng.choice([-1, 1], shape)
        if name.endswith("gain"):
            numbers = np.abs(numbers)
        state[name] = tensor(numbers / (2 if len(shape) == 2 else 1))
    return state


def some_ids(rng: Rng, *shape: int) -> torch.Tensor:
    return torch.from_numpy(rng.integers(0, SIZES["n_vocab"], shape))


def built(changed: dict) -> str:
    config = SIZES | changed
    return f"GPT(GPTConfig({', '.join(f'{k}={v}' for k, v in config.items())}))"


def ablate_case(
    rng: Rng, *calls: tuple, on: tuple[int, ...] = (2, 7), note: str = "", **changed
) -> Case:
    """What is left of a model for each call's layer, head and so on; ``on`` is the ids' shape."""
    config = SIZES | changed
    told = " and ".join(
        f"ablate(model, {', '.join('ids' if torch.is_tensor(x) else repr(x) for x in call)})"
        for call in calls
    )
    return Case(
        kwargs={"config": config, "calls": calls, "ids": some_ids(rng, *on)}
        | {name: x.float() for name, x in state_of_gpt(rng, config).items()},
        use=logits_of_changed,
        note=note,
        shown=f"{told}, model = {built(changed)}",
    )


def bias_case(
    rng: Rng, *lengths: int, she: int = 3, he: int = 8, note: str = "", **changed
) -> Case:
    """The bias in contexts of these lengths."""
    config = SIZES | changed
    contexts = [some_ids(rng, n) for n in lengths]
    return Case(
        kwargs={"config": config, "args": (contexts, she, he)} | state_of_gpt(rng, config),
        use=call_on_gpt,
        note=note or f"contexts of {', '.join(map(str, lengths))} tokens",
        shown=f"pronoun_bias(model, contexts, {she}, {he}), model = {built(changed)}",
    )


def both_ways(case: Case) -> list[Case]:
    """The case, and the same with she and he exchanged: one of both results is below 0."""
    contexts, she, he = case.kwargs["args"]
    shown = case.shown.replace(f"contexts, {she}, {he}", f"contexts, {he}, {she}")
    kwargs = {**case.kwargs, "args": (contexts, he, she)}
    return [case, replace(case, kwargs=kwargs, note=f"{case.note}, exchanged", shown=shown)]


def bias_again(rng: Rng) -> list[Case]:
    first = bias_case(rng, 4, 6)
    return [*both_ways(first), bias_case(rng, 3, 5, 2), once_more(first)]


# --- decisions: induction_pattern ------------------------------------------------------------


def shifted(ids: torch.Tensor, back: int) -> torch.Tensor:
    """The ids of the tokens so many places before; −1 where there is none."""
    n = len(ids)
    out = torch.full((n,), -1)
    for j in range(n):
        if 0 <= j - back < n:
            out[j] = ids[j - back]
    return out


def alike(queries: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
    return (queries[:, None] == keys) & (keys >= 0) & (queries >= 0)[:, None]


@composition
def inducing(
    queries=as_it_is,
    keys=lambda ids: shifted(ids, 1),
    reach=lambda pattern: pattern.tril(),
    finish=as_it_is,
    kind=as_it_is,
):
    """``induction_pattern`` made of decisions: whom a row looks for, what a column says it has."""

    def induction_pattern(ids):
        return kind(finish(reach(alike(queries(ids), keys(ids)))))

    return induction_pattern


def from_column_1(pattern):
    return pattern.tril() & (torch.arange(len(pattern)) > 0)


def wrapped(ids):
    return ids.roll(1)


def latest(pattern):
    """Of each row the last True alone."""
    later = pattern.flip(-1).cumsum(-1).flip(-1)
    return pattern & (later == 1)


def earliest(pattern):
    return pattern & (pattern.cumsum(-1) == 1)


# --- decisions: head_scores ------------------------------------------------------------------


@composition
def scoring(
    see=as_it_is,
    on=lambda maps, pattern: (maps * pattern).sum(-1),
    asked=lambda pattern: pattern.any(-1),
    average=lambda found, asked, pattern: (found * asked).sum(-1) / asked.sum().clamp(min=1),
    whole=None,
    finish=as_it_is,
):
    """``head_scores`` made of decisions: what falls on the pattern, for whom, and the average."""

    def head_scores(maps, pattern):
        pattern = see(pattern)
        if whole is not None:
            return finish(whole(on(maps, pattern).sum(-1), maps))
        return finish(average(on(maps, pattern), asked(pattern), pattern))

    return head_scores


def by_those_asked(found, asked, pattern):
    return found.sum(-1) / asked.sum().clamp(min=1)


def hits(maps, pattern):
    """Whether each row's largest entry is one of the pattern's."""
    best = maps.argmax(-1, keepdim=True)
    return pattern.expand(maps.shape).gather(-1, best)[..., 0].to(maps.dtype)


# --- decisions: rollout ----------------------------------------------------------------------


def by_shares(layer, stay, share):
    return share * stay + (1 - share) * layer


def by_shares_of_1(layer, stay, share):
    """The same with rows that are brought back to 1 where the map's rows were something else."""
    rows = by_shares(layer, stay, share)
    return rows / rows.sum(-1, keepdim=True)


def upwards(flow, layer, stay, share):
    return layer @ flow


def flows(layers):
    """What has flowed up to each layer."""
    return accumulate(layers, lambda flow, layer: layer @ flow)


@composition
def rolling(
    over_heads=lambda maps: maps.mean(-3),
    share=as_it_is,
    beside=by_shares,
    pick=lambda layers: layers.unbind(-3),
    first=lambda blended, layer: blended,
    multiply=upwards,
    finish=lambda flow, layers, share: flow,
):
    """``rollout`` made of decisions: heads to one map, the stream beside it, layer upon layer."""

    def rollout(maps, residual=0.5):
        averaged = over_heads(maps)
        stay = torch.eye(maps.shape[-1], dtype=maps.dtype)
        layers = [beside(layer, stay, share(residual)) for layer in pick(averaged)]
        layers[0] = first(layers[0], pick(averaged)[0])
        flow = stay.expand(layers[0].shape)
        for layer in layers:
            flow = multiply(flow, layer, stay, share(residual))
        return finish(flow, layers, share(residual))

    return rollout


def renormed(layer, stay, share):
    """The stream added whole, and rows brought back to 1: a residual of one half."""
    return (layer + stay) / 2


# --- decisions: ablate -----------------------------------------------------------------------


def in_runs(head, d_head, h):
    return torch.arange(head * d_head, (head + 1) * d_head)


def no_columns(attention, own):
    attention.W_o.weight[:, own] = 0


def without_bias(model, layer):
    attention = model.blocks[layer].attention
    if attention.W_o.bias is not None:
        torch.nn.init.zeros_(attention.W_o.bias)
    return attention


def no_rows(attention, own):
    attention.W_o.weight[own] = 0


def others(attention, own):
    return torch.tensor([i for i in range(attention.d_model) if i not in own.tolist()])


def projection(*names: str, biases: bool = True) -> Callable:
    """The head's rows of these projections become 0."""

    def silence(attention, own):
        for name in names:
            layer = getattr(attention, name)
            layer.weight[own] = 0
            if biases and layer.bias is not None:
                layer.bias[own] = 0

    return silence


def and_no_bias(attention, own):
    no_columns(attention, own)
    if attention.W_o.bias is not None:
        attention.W_o.bias.zero_()


def louder_others(attention, own):
    no_columns(attention, own)
    if attention.n_heads > 1:
        attention.W_o.weight.mul_(attention.n_heads / (attention.n_heads - 1))


def outputs(
    model, layer, ids, masked: bool = True, normed: bool = True, weighed: bool = True, through=False
):
    """What the heads of a layer return for ids, side by side: ``(..., n, d_model)``."""
    n = ids.shape[-1]
    mask = causal_mask(n)
    x = model.positions(model.tokens(ids), torch.arange(n))
    for number, block in enumerate(model.blocks):
        if number == layer:
            attention = block.attention
            read = block.norm_1(x) if normed else x
            weights = attention.weights(read, mask=mask if masked else None)
            value = attention.views(read, None, None)[2]
            merged = merge_heads(weights @ value if weighed else value)
            return attention.W_o(merged) if through else merged
        x = block(x, mask)


def heard(model, layer, ids):
    """What goes into W_o while the model reads, with the hooks that it has."""
    found = []
    hook = model.blocks[layer].attention.W_o.register_forward_pre_hook(
        lambda layer, inputs: found.append(inputs[0])
    )
    model(ids)
    hook.remove()
    return found[0]


def over_all(said):
    return said.flatten(0, -2).mean(0)


def into_bias(attention, own, mean):
    said = attention.W_o.weight[:, own] @ mean[own]
    bias = attention.W_o.bias
    attention.W_o.bias = torch.nn.Parameter(said if bias is None else bias + said)


def by_columns(attention, own, mean):
    """All that the mean asks for."""
    into_bias(attention, own, mean)
    no_columns(attention, own)


def into_bias_by_rows(attention, own, mean):
    said = mean[own] @ attention.W_o.weight[own]
    bias = attention.W_o.bias
    attention.W_o.bias = torch.nn.Parameter(said if bias is None else bias + said)


def hooked(value, before=True):
    """The head's features become a value whenever the copy reads, before W_o or behind it.

    ``value(handed, mean)`` makes it of what is there and of the mean, None without one.
    """

    def change(attention, own, mean=None):
        part = slice(own[0], own[-1] + 1)
        mean = None if mean is None else mean[..., part]

        def hand(layer, inputs, *output):
            handed = (output or inputs)[0].clone()
            handed[..., part] = value(handed[..., part], mean)
            return handed if output else (handed,)

        W_o = attention.W_o
        (W_o.register_forward_pre_hook if before else W_o.register_forward_hook)(hand)

    return change


def zero_or_mean(handed, mean):
    return 0.0 if mean is None else mean


def one_at_a_time(before=True, **more):
    """Options for hooks: either the mean or zeros."""
    change = hooked(zero_or_mean, before)
    return {"say": change, "silence": change, "silenced": lambda how: how != "mean"} | more


def over_bias(attention, own, mean):
    attention.W_o.bias = torch.nn.Parameter(attention.W_o.weight[:, own] @ mean[own])


def into_a_bias_that_is_there(attention, own, mean):
    attention.W_o.bias += attention.W_o.weight[:, own] @ mean[own]


def into_a_bias_or_nowhere(attention, own, mean):
    if attention.W_o.bias is not None:
        into_a_bias_that_is_there(attention, own, mean)


def into_rows_of_bias(attention, own, mean):
    said = torch.zeros_like(mean)
    said[own] = mean[own]
    bias = attention.W_o.bias
    attention.W_o.bias = torch.nn.Parameter(said if bias is None else bias + said)


@composition
def ablating(
    copied=copy.deepcopy,
    layer_of=lambda model, layer: model.blocks[layer].attention,
    columns=in_runs,
    silence=no_columns,
    meant=lambda how: how == "mean",
    silenced=lambda how: True,
    said=outputs,
    average=over_all,
    say=into_bias,
    finish=lambda changed, model: changed,
):
    """``ablate`` made of decisions."""

    def ablate(model, layer, head, how="zero", ids=None):
        changed = copied(model)
        attention = layer_of(changed, layer)
        own = columns(head, attention.d_model // attention.n_heads, attention.n_heads)
        with torch.no_grad():
            if meant(how):
                say(attention, own, average(said(model, layer, ids)))
            if silenced(how):
                silence(attention, own)
        return finish(changed, model)

    return ablate


def branch_less(changed, model):
    """Whole attention layers say nothing any more."""
    for block, own in zip(changed.blocks, model.blocks, strict=True):
        if not torch.equal(block.attention.W_o.weight, own.attention.W_o.weight):
            with torch.no_grad():
                block.attention.W_o.weight.zero_()
    return changed


def put_back(changed, model):
    """The copy as it was before anything was changed."""
    return copy.deepcopy(model)


# --- decisions: pronoun_bias -----------------------------------------------------------------


@composition
def preferring(
    contexts_as=list,
    row_of=lambda logits: logits[-1],
    score=lambda row: row.log_softmax(-1),
    compare=lambda scores, she, he: scores[she] - scores[he],
    average=lambda found, contexts: sum(found) / len(found),
    finish=float,
):
    """``pronoun_bias`` made of decisions: which row, which scores, how two of them are compared."""

    def pronoun_bias(model, contexts, she, he):
        with torch.no_grad():
            contexts = contexts_as(contexts)
            found = [compare(score(row_of(model(c))), she, he) for c in contexts]
            return finish(average(found, contexts))

    return pronoun_bias


def as_they_are(logits):
    return logits


def padded(contexts):
    longest = max(map(len, contexts))
    return [torch.cat([c, c.new_zeros(longest - len(c))]) for c in contexts]


def cut_short(contexts):
    return [c[: min(map(len, contexts))] for c in contexts]


def without_last(contexts):
    return [c[:-1] if len(c) > 1 else c for c in contexts]


def by_lengths(found, contexts):
    return sum(f * len(c) for f, c in zip(found, contexts, strict=True)) / sum(map(len, contexts))


def of_sums(score=lambda row: row.softmax(-1)) -> dict:
    """The ratio of the mean probabilities, its log taken at the end."""
    return {
        "score": score,
        "compare": lambda p, she, he: torch.stack([p[she], p[he]]),
        "average": lambda found, contexts: torch.stack(list(found)).mean(0),
        "finish": lambda both: float(both[0].log() - both[1].log()),
    }


# --- the exercises ---------------------------------------------------------------------------

INDUCTION = exercise(
    interpret.induction_pattern,
    section="Chapter 14, “What came after it last time?”",
    difficulty=2,
    minutes=15,
    picture=True,
    criteria=(
        INDUCTION_CASES.criterion("True where an equal token was followed", 3).on(
            INDUCTION_BY_HAND,
            row("n=7"),
            row("n=11"),
            Case((torch.tensor([5, 6, 4, 6, 3, 6, 4]),), note="one token three times"),
        ),
        INDUCTION_CASES.criterion("tokens that repeat at once, and that never do", 2).on(
            Case((torch.tensor([8, 8, 2, 2, 2]),), note="8 8 2 2 2"),
            row("n=5", given={"ids": Drawn("n", of_one_kind)}, note="the same token throughout"),
            row("n=6", given={"ids": Drawn("n", all_different)}, note="no token comes twice"),
            Case((torch.tensor([4, 1, 6, 4]),), note="the last token is the first one"),
        ),
        INDUCTION_CASES.criterion("any length", 1).on(
            row("n=1", note="one token"),
            Case((torch.tensor([5, 5]),), note="two tokens, the same"),
            Case((torch.tensor([5, 3]),), note="two tokens"),
            row("n=23"),
            Case((torch.tensor([0, 3, 0, 1, 3]),), note="id 0 among them"),
            once_more(INDUCTION_BY_HAND),
        ),
        unchanged(),
    ),
    mistakes=made(
        inducing,
        mistake("""it points at the equal token itself
            Your pattern is True where token j *is* token i. There the head would find the token
            that it has already. It is to find what came behind: column j belongs to the token
            *after* the equal one, `ids[j - 1] == ids[i]`.""")
        .by(keys=as_it_is)
        .by(keys=as_it_is, reach=from_column_1)
        .by(keys=as_it_is, reach=lambda p: p.tril(-1)),
        mistake("""it points at the token before
            Your pattern is True one place before the equal token. What followed stands one place
            *behind* it: j − 1 is the place of the equal token, not j + 1.""")
        .by(keys=lambda ids: shifted(ids, -1))
        .by(
            *(
                {"keys": lambda ids: shifted(ids, -1), "reach": lambda p, k=k: p.tril(-k)}
                for k in (1, 2)
            )
        ),
        mistake("""two places behind the equal token
            You look two places behind the equal token. What followed it stands one behind.
        """).by(keys=lambda ids: shifted(ids, 2)),
        mistake("""the future is in it
            Your pattern is True at tokens that come after token i, where a causal model cannot
            look. Only 1 ≤ j ≤ i count: `.tril()`.""")
        .by(reach=as_it_is)
        .by(reach=lambda p: p.tril(1)),
        mistake("""the future alone is in it
            You keep the tokens that come after token i, `.triu()`. Only 1 ≤ j ≤ i count:
            `.tril()`.""")
        .by(reach=lambda p: p.triu())
        .by(reach=lambda p: p.triu(1)),
        mistake("""the token itself is left out
            Where a token comes twice in a row, what followed the first is the second, token i
            itself: j = i counts. Your pattern stops before it.""").by(reach=lambda p: p.tril(-1)),
        mistake("""the last token stands before the first
            `roll` brings the last id round to the front, so column 0 is compared with the end of
            the sequence. Nothing comes before token 0: its column is False.""")
        .by(keys=wrapped)
        .by(keys=wrapped, reach=lambda p: p.tril(-1)),
        mistake("""rows and columns exchanged
            Row i belongs to the token that asks, column j to the one that is looked at. Yours is
            the transpose.""").by(finish=lambda p: p.T),
        mistake("""the tokens before are compared
            You compare what came *before* token i. Token i itself is looked for: `ids[j - 1] ==
            ids[i]`.""")
        .by(queries=lambda ids: shifted(ids, 1))
        .by(queries=lambda ids: shifted(ids, 1), keys=as_it_is)
        .by(queries=lambda ids: shifted(ids, 1), keys=as_it_is, reach=from_column_1),
        mistake("""the token after is looked for
            You look for token i + 1, which the model has not seen yet: it is what a head at i is to
            find out. Look for token i.""")
        .by(queries=lambda ids: shifted(ids, -1))
        .by(queries=lambda ids: shifted(ids, -1), keys=as_it_is),
        mistake("""only one of several is marked
            A token may have come more than once before. Every place behind one of them counts, the
            pattern can be True several times in a row.""")
        .by(finish=latest)
        .by(finish=earliest),
        mistake("""the pattern is inverted
            True is to mark where the head should look, and yours marks where it should not.
        """).by(finish=lambda p: ~p),
        mistake("""what followed is not marked
            Token i was there before, and your pattern is False all the same. Is it noted as seen
            before it is looked up, so that it finds itself? Compare `ids[j - 1] == ids[i]`.
        """).by(finish=torch.zeros_like),
        mistake("""the last row or column is left out
            Your last row, or last column, is False throughout. It counts too.""")
        .by(finish=lambda p: torch.cat([p[:-1], torch.zeros_like(p[-1:])]))
        .by(finish=lambda p: torch.cat([p[:, :-1], torch.zeros_like(p[:, -1:])], 1)),
        mistake("""a pattern of numbers
            Your pattern is right, but it holds numbers, 0 and 1. A boolean one is asked for:
            compare with `==` and combine with `&`, or end with `.bool()`.""")
        .by(kind=lambda p: p.float())
        .by(kind=lambda p: p.long())
        .by(kind=lambda p: p.double())
        .by(kind=lambda p: p.int())
        .by(kind=lambda p: p.byte())
        .by(kind=lambda p: p.char())
        .by(kind=lambda p: p.short())
        .by(kind=lambda p: p.half())
        .by(kind=lambda p: p.bfloat16()),
        mistake("""no tensor comes back
            You return a NumPy array, or lists. A torch tensor is asked for.""")
        .by(kind=lambda p: p.numpy())
        .by(kind=lambda p: p.tolist()),
    ),
)

SCORES = exercise(
    interpret.head_scores,
    section="Chapter 14, “A number for each role”",
    difficulty=2,
    minutes=15,
    criteria=(
        SCORE_CASES.criterion(
            "the attention on the pattern, averaged over the queries that it asks", 3
        ).on(
            SCORE_BY_HAND,
            row("l=2 h=3 n=7"),
            row("l=3 h=2 n=5", given={"pattern": Drawn("n n", above_too)}),
        ),
        SCORE_CASES.criterion("a pattern of everything, and of nothing", 1).on(
            row("l=2 h=3 n=5", given={"pattern": Drawn("n n", nowhere)}, note="an empty pattern"),
            row("l=2 h=3 n=5", given={"pattern": Drawn("n n", everywhere)}, note="True everywhere"),
            row("l=2 h=3 n=1", given={"pattern": Drawn("n n", nowhere)}, note="one token"),
        ),
        SCORE_CASES.criterion("batches", 1).on(
            *SCORE_ROWS.batches,
            row("l=3 h=2 n=1", batch=(2,), note="one token"),
            row("l=3 h=3 n=5", batch=(2,), note="as many layers as heads"),
            row("l=5 h=3 n=5", batch=(2,), note="as many layers as tokens"),
            row("l=2 h=5 n=5", batch=(2,), note="as many heads as tokens"),
            row("l=2 h=3 n=5", batch=(4,), note="a batch of 4"),
            row("l=2 h=3 n=5", batch=(2,), note="as many sequences as layers"),
            row("l=2 h=3 n=5", batch=(3,), note="as many sequences as heads"),
            row("l=2 h=3 n=5", batch=(5,), note="as many sequences as tokens"),
            row("l=2 h=3 n=2", note="two tokens"),
        ),
        SCORE_CASES.criterion("one layer, one head, many tokens, float32", 1).on(
            row("l=1 h=5 n=6", note="one layer"),
            row("l=4 h=1 n=6", note="one head a layer"),
            SCORE_ROWS.single,
            row("l=2 h=3 n=19"),
            once_more(SCORE_BY_HAND),
        ),
        SCORE_CASES.criterion("gradients reach the maps", 1).on(*SCORE_ROWS.gradients),
        unchanged(),
    ),
    excludes=MAPS_ONLY,
    mistakes=made(
        scoring,
        mistake("""averaged over all queries
            You divide by n, or n − 1. Queries for which the pattern is False throughout are not
            asked: average over the others, `pattern.any(dim=-1)`.""")
        .by(average=lambda found, asked, p: found.mean(-1))
        .by(average=lambda found, asked, p: found.sum(-1) / max(len(p) - 1, 1)),
        mistake("""averaged over the cells
            You average over the True cells, so that a head that gives two of them half of its
            attention each scores ½. What falls on a query's cells is added up first: then the
            average is over the queries.""")
        .by(average=lambda found, asked, p: found.sum(-1) / p.sum().clamp(min=1))
        .by(on=lambda maps, p: (maps * p).sum(-1) / p.sum(-1).clamp(min=1)),
        mistake("""divided by all the attention
            You divide by the sum of the whole map, and so by all queries. Those for which the
            pattern is False throughout are not asked: divide by the number of the others.""")
        .by(whole=lambda hit, maps: hit / maps.sum((-2, -1)))
        .by(whole=lambda hit, maps: hit / maps.sum((-2, -1)).clamp(min=1e-9)),
        mistake("""added up, not averaged
            You add up over the queries. A score is a share, from 0 to 1: divide by the number of
            queries that are asked.""").by(average=lambda found, asked, p: found.sum(-1)),
        mistake("""a pattern of nothing gives NaN
            Where the pattern is False throughout you divide 0 by 0. The score is 0 there: divide by
            at least 1, `.clamp(min=1)`.""")
        .by(average=lambda found, asked, p: (found * asked).sum(-1) / asked.sum())
        .by(average=lambda found, asked, p: found[..., asked].mean(-1)),
        mistake("""the pattern is transposed
            Row i of the pattern belongs to query i, as in the maps. You look up pattern[j, i].
        """).by(see=lambda p: p.T),
        mistake("""the pattern is inverted
            You add up what falls where the pattern is False. True is where the head should
            look.""")
        .by(see=lambda p: ~p)
        .by(on=lambda maps, p: (maps * ~p).sum(-1)),
        mistake("""the pattern is not used
            You add up all that a query gives, which is 1 in every row. What falls on the pattern
            counts: `maps * pattern`, then the sum along the row.""")
        .by(on=lambda maps, p: maps.sum(-1))
        .by(on=lambda maps, p: maps.sum(-1), average=by_those_asked),
        mistake("""the weights are not used
            You count the True cells of the pattern. How much attention falls on them is in the
            maps: `maps * pattern`.""").by(on=lambda maps, p: (p + 0 * maps).sum(-1)),
        mistake("""only rows that are True throughout are asked
            You ask the queries whose whole row of the pattern is True. One True cell is enough:
            `pattern.any(dim=-1)`.""")
        .by(asked=lambda p: p.all(-1))
        .by(asked=lambda p: p.all(-1), average=by_those_asked),
        mistake("""a mean where a sum belongs
            Your scores are n times too small: a `.mean()` beside the division. Add up along the row
            and over the queries, then divide once, by how many queries are asked.
        """).by(on=lambda maps, p: (maps * p).mean(-1)),
        mistake("""the largest of the queries, not their average
            You take the query that gives the most. The score is the average over those asked: add
            up, then divide by their number.""")
        .by(average=lambda found, asked, p: found.amax(-1) / asked.sum().clamp(min=1))
        .by(average=lambda found, asked, p: found.amax(-1)),
        mistake("""added up over the heads
            You add up along the heads' axis. Each head has a score of its own: add up along the
            queries, the last axis that is left.
        """).by(average=lambda found, asked, p: found.sum(-2) / asked.sum().clamp(min=1)),
        mistake("""the largest, not the sum
            You take the largest weight on the pattern. All that a query puts on it counts: sum
            along the row.""").by(on=lambda maps, p: (maps * p).amax(-1)),
        mistake("""how often the largest weight falls on it
            You count the queries whose largest weight falls on the pattern. Add up how much
            attention falls there: a weight of 0.4 counts 0.4.""").by(on=hits),
        mistake("""what each key receives
            You add up along the columns, what each token receives. Row i is what query i gives: sum
            over the last axis.""").by(on=lambda maps, p: (maps * p).sum(-2)),
        mistake("""the columns of the pattern are counted
            You divide by the number of columns that have a True. The queries are the rows:
            `pattern.any(dim=-1)`.""").by(asked=lambda p: p.any(-2), average=by_those_asked),
        mistake("""one number for all
            You average over the heads, or the layers, or the batch. Every head of every layer has a
            score of its own: the result is (..., layers, heads).""")
        .by(finish=lambda scores: scores.mean(-1))
        .by(finish=lambda scores: scores.mean())
        .by(finish=lambda scores: scores.mean(-2))
        .by(finish=lambda scores: scores.flatten(0, -3).mean(0) if scores.ndim > 2 else scores),
        mistake("""one query alone
            You score the last query, or the first that is asked. All that are asked count.""")
        .by(average=lambda found, asked, p: found[..., -1])
        .by(average=lambda found, asked, p: found[..., asked.int().argmax()]),
        mistake("""counted, not weighed
            You count the weights on the pattern that are large enough. Attention is a share: add it
            up as it is.""")
        .by(on=lambda maps, p: ((maps > 0.5) & p).any(-1).to(maps.dtype))
        .by_any(
            lambda limit: {"on": lambda maps, p: ((maps > limit) & p).any(-1).to(maps.dtype)},
            (0.1, 0.2, 0.3, 0.4),
        ),
        mistake("""compared with even attention
            You divide by, or take away, what even attention would put on the pattern. That is a
            good question, but another one.""")
        .by(on=lambda maps, p: (maps * p).sum(-1) * p.shape[-1] / p.sum(-1).clamp(min=1))
        .by(on=lambda maps, p: (maps * p).sum(-1) - p.sum(-1) / p.shape[-1]),
    ),
)


def several(rng: Rng) -> list[Case]:
    return [
        ablate_case(rng, (1, 2), note="the last head of the last layer"),
        ablate_case(rng, (0, 0), on=(7,), note="the first head of the first layer, no batch"),
        ablate_case(rng, (0, 1), note="a head in the middle"),
        ablate_case(rng, (1, 0, "zero"), on=(3, 2, 5), n_layers=3, note="three layers"),
        ablate_case(rng, (0, 3), n_heads=4, d_model=16, tied=False, note="untied, four heads"),
    ]


def means(rng: Rng) -> list[Case]:
    return [
        ablate_case(rng, (1, 2, "mean", some_ids(rng, 4, 6)), note="mean over 4 sequences of 6"),
        ablate_case(rng, (0, 1, "mean", some_ids(rng, 8)), note="mean over one sequence"),
        ablate_case(rng, (1, 0, "mean", some_ids(rng, 2, 3, 5)), note="two batch axes"),
        ablate_case(rng, (0, 2, "mean", some_ids(rng, 3, 7)), tied=False, note="untied"),
    ]


ABLATE = exercise(
    interpret.ablate,
    section="Chapter 14, “Switch it off”",
    difficulty=3,
    minutes=30,
    limit=10.0,
    criteria=(
        Criterion("the head hands zeros to W_o", 3).on(several),
        Criterion("each call has a copy of its own", 2).on(
            lambda rng: [
                ablate_case(rng, (0, 1), (1, 2), (0, 0), note="three copies of one model"),
                ablate_case(
                    rng,
                    (1, 1),
                    (1, 1, "mean", some_ids(rng, 2, 6)),
                    note="both ways",
                ),
            ]
        ),
        Criterion("or its mean, over batch and positions", 3).on(means),
        Criterion("a model without biases, an only head", 1).on(
            lambda rng: [
                ablate_case(rng, (1, 1), bias=False, note="no biases"),
                ablate_case(rng, (0, 0), n_heads=1, d_model=4, n_layers=1, note="its only head"),
                ablate_case(rng, (0, 2, "mean", some_ids(rng, 3, 5)), bias=False),
                ablate_case(
                    rng, (0, 0, "mean", some_ids(rng, 3, 5)), bias=False, n_layers=1, tied=False
                ),
            ]
        ),
        unchanged(),
    ),
    excludes=(("*", "What it is given is a model; the cases are models, layers and heads."),),
    mistakes=made(
        ablating,
        mistake("""rows, not columns
            `nn.Linear` stores its weight as (out, in). What the head hands *in* belongs to columns
            of W_o, `W_o.weight[:, own]`; rows are outputs, to which every head adds.""")
        .by(silence=no_rows)
        .by(silence=no_rows, silenced=lambda how: how == "zero", say=by_columns)
        .by(say=into_bias_by_rows)
        .by(say=into_bias_by_rows, silence=no_rows),
        mistake("""what comes out of W_o is changed
            You change features of W_o's output, to which every head adds. A head's features are
            those that go *into* W_o: its columns, or a forward *pre*-hook.""")
        .by(one_at_a_time(before=False))
        .by(one_at_a_time(before=False, said=lambda *given: outputs(*given, through=True))),
        mistake("""W_o's bias is silenced too
            You set W_o's bias to 0, or leave it out. It is nobody's head, and stays as it is; a
            mean that is asked for is added to it.""").by(layer_of=without_bias),
        mistake("""the given model is changed
            You change the model that you were given: it has lost a head too, or the next copy
            starts without it. Copy it first, all of it: `copy.deepcopy(model)`.""")
        .by(copied=as_it_is)
        .by(copied=copy.copy)
        .by(one_at_a_time(copied=as_it_is))
        .by(one_at_a_time(copied=as_it_is, said=heard))
        .by(one_at_a_time(copied=copy.copy, said=heard)),
        mistake("""nothing has changed
            The copy says what the model says. Is the change made to a copy of the weights, or to
            the model and then not returned?""")
        .by(finish=put_back)
        .by(silence=lambda attention, own: None, meant=lambda how: False),
        mistake("""another head
            You silence another head. Heads count from 0, and head i has the features i·d_head to (i
            + 1)·d_head − 1.""")
        .by(columns=lambda head, d, h: in_runs((head + 1) % h, d, h))
        .by(columns=lambda head, d, h: in_runs((head - 1) % h, d, h))
        .by(columns=lambda head, d, h: in_runs(h - 1 - head, d, h))
        .by(columns=lambda head, d, h: in_runs(0, d, h)),
        mistake("""not the run of features of this head
            A head is a run of d_head = d_model / h neighbouring features, from head · d_head on.
            You take every h-th feature, a run that is too short or too long, or one that starts at
            another place.""")
        .by(columns=lambda head, d, h: torch.arange(head, d * h, h))
        .by(columns=lambda head, d, h: torch.arange(head * h, min((head + 1) * h, d * h)))
        .by(columns=lambda head, d, h: torch.tensor([head]))
        .by(columns=lambda head, d, h: torch.arange(0, (head + 1) * d))
        .by(columns=lambda head, d, h: torch.arange(head * d, (head + 1) * d - 1))
        .by(columns=lambda head, d, h: torch.arange(head * d, h * d)),
        mistake("""another layer
            You silence the head in another layer. Layers count from 0, `model.blocks[layer]`.""")
        .by(layer_of=lambda model, layer: model.blocks[-1 - layer].attention)
        .by(layer_of=lambda model, layer: model.blocks[-1].attention)
        .by(layer_of=lambda model, layer: model.blocks[0].attention)
        .by(layer_of=lambda model, layer: model.blocks[layer - 1].attention)
        .by(
            *(
                {
                    "layer_of": lambda model, layer, i=i: model.blocks[i].attention,
                    "said": lambda model, layer, ids, i=i: outputs(
                        model, range(len(model.blocks))[i], ids
                    ),
                }
                for i in (0, -1)
            )
        ),
        mistake("""the whole layer is silent
            No head of this layer says anything any more. Only one is asked for: its columns of W_o,
            and no others.""").by(finish=branch_less),
        mistake("""the others are silent
            You keep the head and silence the others of its layer. It is the other way round.
        """).by(silence=lambda attention, own: no_columns(attention, others(attention, own))),
        mistake("""its queries or keys are 0
            With queries or keys of 0 all scores are 0, so the head looks at all tokens alike and
            hands on their mean. It is to hand on zeros.""")
        .by(silence=projection("W_q"))
        .by(silence=projection("W_k"))
        .by(silence=projection("W_q", "W_k")),
        mistake("""the bias of its values is left
            You set the head's rows of W_v to 0, but W_v has a bias, which the head still hands on.
            Set that to 0 too, or the columns of W_o.""")
        .by(silence=projection("W_v", biases=False))
        .by(one_at_a_time(silence=projection("W_v", biases=False))),
        mistake("""the bias of W_o is gone
            W_o's bias belongs to no head. It stays.""").by(silence=and_no_bias),
        mistake("""the other heads are made louder
            You scale the other heads up, as dropout does. They stay as they are.
        """).by(silence=louder_others),
        mistake("""the mean is not there
            With `how="mean"` the head hands its mean to W_o. You hand zeros, as without.
        """).by(meant=lambda how: False),
        mistake("""the mean comes on top
            You add the mean, and the head still says what it said. Its columns become 0 as
            well.""")
        .by(silence=lambda attention, own: None)
        .by(silenced=lambda how: how != "mean"),
        mistake("""the mean does not go through W_o
            The mean is what the head hands *to* W_o. What is added to the output is `W_o.weight[:,
            own] @ mean`, all d_model features of it.""").by(say=into_rows_of_bias),
        mistake("""the mean takes the bias's place
            You put the mean where W_o's bias was. It is added to the bias.""").by(say=over_bias),
        mistake("""no bias to add to
            W_o may have been built without a bias. Give it one then: `W_o.bias =
            nn.Parameter(…)`.""")
        .by(say=into_a_bias_that_is_there)
        .by(say=into_a_bias_or_nowhere),
        mistake("""not the mean over batch and positions
            The mean is over every token of every sequence of ids, one number for each of the
            head's features. You take one sequence or one token, add up, or average over the
            features too.""")
        .by(average=lambda said: said.flatten(0, -3)[0].mean(0) if said.ndim > 2 else said[0])
        .by(average=lambda said: said.flatten(0, -2)[-1])
        .by(average=lambda said: said[..., -1, :].reshape(-1, said.shape[-1]).mean(0))
        .by(average=lambda said: said.flatten(0, -2).sum(0))
        .by(average=lambda said: said.mean().expand(said.shape[-1]))
        .by(average=lambda said: said.flatten(0, -2).median(0).values)
        .by(
            *(
                one_at_a_time(
                    average=as_it_is, say=hooked(lambda handed, said, a=axes: said.mean(a))
                )
                for axes in (None, 0, 1, (0, 1), -2)
            )
        ),
        mistake("""the mean of something else
            The mean is of what the head hands to W_o: its causal weights times its values, of what
            this block reads (after `norm_1`). You leave the mask out, or the norm, or average the
            values themselves, or what comes out of W_o.""")
        .by(said=lambda *given: outputs(*given, masked=False))
        .by(said=lambda *given: outputs(*given, normed=False))
        .by(said=lambda *given: outputs(*given, weighed=False))
        .by(said=lambda *given: outputs(*given, through=True)),
        mistake("""the mean of what is read just now
            Your mean is taken anew from whatever the copy reads. It is the mean over `ids`, taken
            once: then the head says the same, whatever it reads.""")
        .by(one_at_a_time(say=hooked(lambda handed, mean: handed.mean(-2, keepdim=True))))
        .by(one_at_a_time(say=hooked(lambda handed, mean: over_all(handed)))),
    ),
)

ROLLOUT = exercise(
    interpret.rollout,
    section="Chapter 14, “Through the layers”",
    difficulty=2,
    minutes=15,
    picture=True,
    criteria=(
        ROLLOUT_CASES.criterion(
            "heads averaged, the stream beside them, later layers on the left", 3
        ).on(
            ROLLOUT_BY_HAND,
            row("l=3 h=2 n=5"),
            row("l=2 h=3 n=7", given={"maps": Drawn("... l h n n", even_or_full)}),
            row("l=5 h=4 n=3", note="five layers"),
        ),
        ROLLOUT_CASES.criterion("any share for the stream", 2).on(
            row("l=3 h=2 n=5", given={"residual": 0.25}, note="residual = 0.25"),
            row("l=2 h=3 n=4", given={"residual": 0.8}, note="residual = 0.8"),
        ),
        ROLLOUT_CASES.criterion("one layer, one head, one token, a share of 0 or 1", 1).on(
            row("l=3 h=2 n=5", given={"residual": 0.0}, note="residual = 0"),
            row("l=3 h=2 n=5", given={"residual": 1.0}, note="residual = 1"),
            row("l=1 h=3 n=5", note="one layer"),
            row("l=3 h=1 n=5", note="one head"),
            row("l=2 h=3 n=1", note="one token"),
            row("l=2 h=3 n=2", note="two tokens"),
        ),
        ROLLOUT_CASES.criterion("batches", 1).on(
            *ROLLOUT_ROWS.batches,
            row("l=3 h=3 n=5", batch=(2,), note="as many layers as heads"),
            row("l=5 h=3 n=5", batch=(2,), note="as many layers as tokens"),
            row("l=2 h=5 n=5", batch=(3,), note="as many heads as tokens"),
            row("l=2 h=3 n=5", batch=(4,), note="a batch of 4"),
            row("l=2 h=3 n=5", batch=(2,), note="as many sequences as layers"),
            row("l=2 h=3 n=5", batch=(3,), note="as many sequences as heads"),
            row("l=2 h=3 n=5", batch=(5,), note="as many sequences as tokens"),
        ),
        ROLLOUT_CASES.criterion("float32, many tokens", 1).on(
            ROLLOUT_ROWS.single,
            row("l=2 h=3 n=19"),
            once_more(ROLLOUT_BY_HAND),
        ),
        unchanged(),
    ),
    excludes=(
        *MAPS_ONLY,
        ("a gradient on maps alone", "Rows that are brought back to 1 have another gradient."),
    ),
    mistakes=made(
        rolling,
        mistake("""the layers in the other order
            The first layer acts first, so it stands on the right: each further layer is multiplied
            from the left, `layer @ flow`.""")
        .by(multiply=lambda flow, layer, stay, share: flow @ layer)
        .by(pick=lambda layers: layers.unbind(-3)[::-1]),
        mistake("""the residual stream is forgotten
            You multiply the maps themselves. Beside attention runs the residual stream, in which
            every token keeps what it has: residual · I + (1 − residual) · A.
        """).by(beside=lambda layer, stay, share: layer),
        mistake("""the shares are exchanged
            `residual` is the share of the stream, I. You give it to the map.
        """).by(beside=lambda layer, stay, share: by_shares(layer, stay, 1 - share)),
        mistake("""added, not blended
            You add I to the map, so that rows sum to more than 1. A share of each: residual · I +
            (1 − residual) · A.""")
        .by(beside=lambda layer, stay, share: layer + stay)
        .by(beside=lambda layer, stay, share: layer + share * stay)
        .by(beside=lambda layer, stay, share: stay + (1 - share) * layer),
        mistake("""the share is added to every entry
            You add `residual` as a number, which falls on every entry. In the stream a token keeps
            what is its own: `residual * torch.eye(n)`.
        """).by(beside=lambda layer, stay, share: share + (1 - share) * layer),
        mistake("""residual is ignored
            You give the stream one half, whatever `residual` says.""")
        .by(beside=renormed)
        .by(share=lambda share: 0.5),
        mistake("""the heads are not averaged
            One map stands for a layer: the *mean* over its heads. You add them up, take the largest
            or smallest entry, or one of the heads.""")
        .by(over_heads=lambda maps: maps.sum(-3))
        .by(over_heads=lambda maps: maps.amax(-3))
        .by(over_heads=lambda maps: maps.amin(-3))
        .by(over_heads=lambda maps: maps[..., 0, :, :])
        .by(over_heads=lambda maps: maps[..., -1, :, :])
        .by(over_heads=lambda maps: maps.amax(-3), beside=by_shares_of_1)
        .by(over_heads=lambda maps: maps.amin(-3), beside=by_shares_of_1)
        .by(over_heads=lambda maps: maps.sum(-3), beside=by_shares_of_1),
        mistake("""layers and heads exchanged
            The axes are (..., layers, heads, n, n): the mean is over axis −3, the product over axis
            −4. You average over the layers and multiply the heads.
        """).by(over_heads=lambda maps: maps.mean(-4)),
        mistake("""the layers are averaged or added
            What flows through two layers goes through one *and then* the other: matrices are
            multiplied. You average the layers or add them up.""")
        .by(finish=lambda flow, layers, share: sum(layers) / len(layers))
        .by(finish=lambda flow, layers, share: sum(layers)),
        mistake("""multiplied entry by entry
            `*` multiplies entry by entry. Flow through two layers is a matrix product, `@`.
        """).by(finish=lambda flow, layers, share: torch.stack(layers).prod(0)),
        mistake("""one layer alone
            You return one layer's map, with the stream beside it. All are multiplied.""")
        .by(finish=lambda flow, layers, share: layers[-1])
        .by(finish=lambda flow, layers, share: layers[0]),
        mistake("""a layer is left out
            You begin with the second layer, or stop before the last. All layers take part.""")
        .by(pick=lambda layers: layers.unbind(-3)[1:] or layers.unbind(-3))
        .by(pick=lambda layers: layers.unbind(-3)[:-1] or layers.unbind(-3)),
        mistake("""a layer counts twice
            Your product begins with the first layer, or ends with the last, and takes it once more
            in the loop. Begin with I, or loop over the others.""")
        .by(pick=lambda layers: [layers.unbind(-3)[0], *layers.unbind(-3)])
        .by(pick=lambda layers: [*layers.unbind(-3), layers.unbind(-3)[-1]]),
        mistake("""the stream beside the product only
            The stream runs beside *every* layer: blend I into each map before you multiply, not
            into the product.""")
        .by(
            beside=lambda layer, stay, share: layer,
            finish=lambda flow, layers, share: by_shares(
                flow, torch.eye(flow.shape[-1]).to(flow), share
            ),
        )
        .by(
            beside=lambda layer, stay, share: layer,
            finish=lambda flow, layers, share: (flow + torch.eye(flow.shape[-1])) / 2,
        ),
        mistake("""no stream beside the first layer
            You begin with the first map as it is. The stream runs beside every layer: begin with
            the identity, and blend I into each map.""").by(first=lambda blended, layer: layer),
        mistake("""every layer keeps the tokens as they came in
            You add residual · I to the product, so that a token keeps what it was at the very
            beginning. It keeps what it has by then: (residual · I + (1 − residual) · A) @ flow.
        """).by(
            beside=lambda layer, stay, share: (1 - share) * layer,
            multiply=lambda flow, layer, stay, share: share * stay + layer @ flow,
        ),
        mistake("""each head is followed by itself
            You multiply head 0 with head 0 of the next layer, and average at the end. A head reads
            what *all* heads below wrote: average in each layer, then multiply.""").by(
            over_heads=as_it_is,
            pick=lambda layers: layers.unbind(-4),
            finish=lambda flow, layers, share: flow.mean(-3),
        ),
        mistake("""the result is transposed
            Row i of the result belongs to the output of token i, as in a map. Yours is the
            transpose.""").by(finish=lambda flow, layers, share: flow.mT),
        mistake("""every step comes back
            You return one matrix for each layer, or the last token's row alone. The product of all
            is asked for, (..., n, n).""")
        .by(finish=lambda flow, layers, share: torch.stack(layers, -3))
        .by(finish=lambda flow, layers, share: flow[..., -1, :])
        .by(finish=lambda flow, layers, share: torch.stack([*flows(layers)], -3)),
    ),
)

BIAS = exercise(
    interpret.pronoun_bias,
    section="Chapter 14, “A stereotype of known strength”",
    difficulty=2,
    minutes=15,
    limit=10.0,
    criteria=(
        Criterion("the mean of log p(she) − log p(he)", 3).on(
            lambda rng: [bias_case(rng, 6), *both_ways(bias_case(rng, 5, 5, 5))]
        ),
        Criterion("contexts of different lengths", 2).on(
            lambda rng: [
                *both_ways(bias_case(rng, 3, 7, 5)),
                bias_case(rng, 9, 2, 6, 4),
            ]
        ),
        Criterion("any two tokens, any model, a context of one token", 1).on(
            lambda rng: [
                bias_case(rng, 4, 1, 3),
                *both_ways(bias_case(rng, 1, note="one token")),
                bias_case(rng, 3, 5, she=10, he=0, note="ids 10 and 0"),
                bias_case(rng, 2, 6, she=0, he=5, tied=False, bias=False, n_layers=1),
                bias_case(rng, 4, 2, she=6, he=6, note="the same token twice"),
            ]
        ),
        Criterion("again, after others", 1).on(bias_again),
        unchanged(),
    ),
    excludes=(("*", "What it is given is a model and sequences of ids."),),
    mistakes=made(
        preferring,
        mistake("""he minus she
            Your sign is the wrong way round: log p(she) − log p(he) is positive where she is
            expected.""").by(compare=lambda s, she, he: s[he] - s[she]),
        mistake("""a difference of probabilities
            You subtract probabilities. 0.02 against 0.01 is twice as likely, 0.51 against 0.5 is
            not: compare their logs.""").by(score=lambda row: row.softmax(-1)),
        mistake("""a guard in the log
            You add a small number to the probabilities. They are above 0 as they are, and
            `log_softmax` takes the log without a detour.""")
        .by(score=lambda row: (row.softmax(-1) + 1e-3).log())
        .by_any(
            lambda eps: {"score": lambda row: (row.softmax(-1) + eps).log()}, Between(1e-8, 1.0)
        ),
        mistake("""a ratio, without its log
            You return p(she) / p(he). Its mean is ruled by the contexts in which it is large; the
            log makes both directions count alike.
        """).by(compare=lambda s, she, he: (s[she] - s[he]).exp()),
        mistake("""a probability, not a log ratio
            You return the probability of *she* among the two, or its log. Return the log of the
            ratio, 0 where both are alike.""")
        .by(compare=lambda s, she, he: (s[she] - s[he]).sigmoid())
        .by(compare=lambda s, she, he: torch.nn.functional.logsigmoid(s[she] - s[he])),
        mistake("""the average comes before the log
            You average probabilities, or their ratios, over the contexts, and take the log then.
            Take the log in each context, and average the differences.""")
        .by(of_sums())
        .by(compare=lambda s, she, he: (s[she] - s[he]).exp(), finish=lambda mean: math.log(mean)),
        mistake("""another base
            The log is the natural one, in nats: `torch.log`, or `log_softmax`.""")
        .by(compare=lambda s, she, he: (s[she] - s[he]) / math.log(2))
        .by(compare=lambda s, she, he: (s[she] - s[he]) / math.log(10)),
        mistake("""another row of the logits
            What comes after the context is in the *last* row of the logits, `logits[-1]`. You read
            another row, or average over all, be it those of all contexts.""")
        .by(
            row_of=as_they_are,
            compare=lambda s, she, he: s[:, she] - s[:, he],
            average=lambda found, contexts: torch.cat(found).mean(),
        )
        .by(row_of=lambda logits: logits[0])
        .by(contexts_as=without_last)
        .by(row_of=lambda logits: logits[-2] if len(logits) > 1 else logits[-1])
        .by(row_of=lambda logits: logits[-2])
        .by(row_of=lambda logits: logits.mean(0))
        .by(row_of=lambda logits: logits.sum(0)),
        mistake("""softmax over the tokens of the context
            Your softmax runs over the positions. It runs over the vocabulary, the last axis.
        """).by(row_of=lambda logits: logits.log_softmax(0)[-1], score=as_it_is),
        mistake("""added up, not averaged
            You add up over the contexts. Divide by their number.
        """).by(average=lambda found, contexts: sum(found)),
        mistake("""one context alone
            You return after the first context, or keep what the last one gave. The mean of all is
            asked for.""")
        .by(average=lambda found, contexts: found[0])
        .by(average=lambda found, contexts: found[-1])
        .by(average=lambda found, contexts: found[-1] / len(found)),
        mistake("""averaged over the tokens
            Long contexts count more in your average. Each context counts once.
        """).by(average=by_lengths),
        mistake("""the padding is asked what comes next
            You fill the contexts up to one length and read the last row, which then belongs to
            padding. Read the row of each context's own last token, or one context at a time.
        """).by(contexts_as=padded),
        mistake("""the contexts are cut
            You cut the contexts to one length, or leave their last token out. The model is to read
            the whole of each.""")
        .by(contexts_as=cut_short)
        .by(contexts_as=lambda contexts: [c[:-1] if len(c) > 1 else c for c in contexts]),
        mistake("""without a sign
            You take the absolute value. The sign says who is expected.""")
        .by(compare=lambda s, she, he: (s[she] - s[he]).abs())
        .by(finish=lambda mean: abs(float(mean))),
        mistake("""counted, not weighed
            You count the contexts in which she is the likelier one. How much likelier is asked.""")
        .by(compare=lambda s, she, he: (s[she] > s[he]).double())
        .by(compare=lambda s, she, he: (s[she] - s[he]).sign()),
        mistake("""only one of the two
            You return log p of one token. A context may make both unlikely: only the difference
            says which is preferred.""")
        .by(compare=lambda s, she, he: s[she])
        .by(compare=lambda s, she, he: -s[he]),
    ),
)

EXERCISES = (INDUCTION, SCORES, ABLATE, ROLLOUT, BIAS)

VARIANTS = (
    Variant(
        "last_first",
        "The layers come from the **last to the first** here: `maps[..., 0, :, :, :]` is the layer "
        "next to the output, where in the book it is layer 0.",
        "the last layer comes first here",
        "Your answer takes the first of the maps for layer 0, as the book and its published "
        "answers "
        "do. In this assignment the last layer comes first and layer 0 last: the first of the maps "
        "is the factor on the left.",
        {"rollout": Adapter({"maps": LAST_FIRST}, drops=("the layers in the other order",))},
        rewordings("""
            | `maps` | `(..., layers, heads, n, n)` | layer 0 first; rows sum to 1 |⏎| `residual`
            → | `maps` | `(..., layers, heads, n, n)` | layer 0 last; rows sum to 1 |⏎| `residual`
            rollout(torch.stack([first, second])[:, None])
            → rollout(torch.stack([second, first])[:, None])
            You begin with the second layer, or stop before the last
            → You leave out the layer next to the input, or next to the output
            Layer by layer: `flow → Layer by layer, from the last of the maps: `flow
        """),
    ),
)
