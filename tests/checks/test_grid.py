"""What the cases of every exercise cover: no kind of input that its text allows is left out."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from grid import covered, mixed, owed, report
from torch import nn

from attncourse.checks import exercises
from attncourse.checks.callers import (
    call_module_twice,
    call_module_with_each_gradient,
    each_gradient,
)
from attncourse.checks.exercise import Case
from attncourse.checks.judging import judge
from attncourse.checks.trying.outcome import Unusable, copy_of
from attncourse.checks.writing.cases import CaseTable, Count, Drawn, hole, once_more, row, standard

EXERCISES = exercises()
ATTENTION = EXERCISES["kqv.scaled_dot_product_attention"]
HEAD = EXERCISES["kqv.AttentionHead"]


def target_of(exercise) -> str:
    return exercise.target


@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=target_of)
def test_every_allowed_kind_of_input_is_among_the_cases(exercise):
    coverage = report(exercise)
    lines = "\n    ".join(("", *coverage.missing))
    assert not coverage.missing, f"no case of {exercise.target} has:{lines}"
    assert not coverage.stale, f"excluded, but covered or never owed: {', '.join(coverage.stale)}"


@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=target_of)
def test_a_rare_kind_of_input_costs_one_point_at_most(exercise):
    mixed_criteria = mixed(exercise)
    lines = "".join(
        f"\n    {name}: {', '.join(sorted(kinds))}" for name, kinds in mixed_criteria.items()
    )
    assert not mixed_criteria, f"{exercise.target} takes several points for rare inputs:{lines}"


# --- the test can fail -----------------------------------------------------------------------


def test_rare_inputs_in_an_ordinary_criterion_are_named():
    criterion = next(c for c in ATTENTION.criteria if c.points == 3)
    table = CaseTable({"query": "... m d_k", "key": "... n d_k", "value": "... n d_v"})
    single = table(row("m=5 n=1 d_k=4 d_v=3", dtype="float32"))

    def with_single(cases):
        return lambda rng: [*cases(rng), *single(rng)]

    alone = replace(criterion, cases=single)
    beside = replace(criterion, cases=with_single(criterion.cases))
    assert mixed(replace(ATTENTION, criteria=(alone,))) == {}
    assert mixed(replace(ATTENTION, criteria=(beside,))) == {criterion.name: {"float32", "n of 1"}}
    assert mixed(replace(ATTENTION, criteria=(replace(beside, points=1),))) == {}


def without_criteria(exercise, *criteria: str):
    """Return the exercise without the cases of these criteria."""
    criteria_left = tuple(
        replace(c, cases=lambda rng: ()) if c.name in criteria else c for c in exercise.criteria
    )
    assert criteria_left != exercise.criteria
    return replace(exercise, criteria=criteria_left)


def test_missing_kinds_of_input_are_named():
    assert report(without_criteria(ATTENTION, "batches")).missing == (
        "one batch axis, not contiguous",
        "two batch axes",
        "two batch axes, not contiguous",
        "three batch axes",
        "three batch axes, not contiguous",
        "m of 1",
        "m of 17 or more",
        "n of 2",
        "n of 17 or more",
        "d_k = m",
        "d_k = batch",
        "d_v = n",
        "d_v = batch",
    )
    assert report(
        without_criteria(ATTENTION, "a mask, True where attention is allowed")
    ).missing == (
        "mask of two axes, in a batch as long as the first",
        "a square mask that its transpose differs from",
    )
    assert report(without_criteria(ATTENTION, "float32, large and small scores")).missing == (
        "float32",
        "a row of very small numbers",
        "a row of very large numbers",
        "entries that cancel",
        "a row whose exp overflows",
        "the first call once more, after others",
    )
    assert report(without_criteria(ATTENTION, "another scale")).missing == (
        "scale of 0",
        "scale given",
    )
    assert report(without_criteria(ATTENTION, "gradients reach query, key and value")).missing == (
        "a gradient on query alone",
        "a gradient on key alone",
        "a gradient on value alone",
    )


def test_missing_kinds_of_module_calls_are_named():
    assert report(without_criteria(HEAD, "bias=True adds a bias to each projection")).missing == (
        "W_q.weight of 0",
        "W_k.weight of 0",
        "W_v.weight of 0",
        "W_q.bias of 0",
        "W_k.bias of 0",
        "W_v.bias of 0",
    )
    assert report(without_criteria(HEAD, "attention between three projections of x")).missing == (
        "two calls of one object, of the same lengths",
        "two calls of one object, of other lengths",
    )
    assert (
        report(without_criteria(HEAD, "weights(x, mask) returns the attention map")).missing == ()
    )
    assert report(without_criteria(HEAD, "a mask, True where attention is allowed")).missing == (
        "mask of two axes, in a batch as long as the first",
    )
    maskless = without_criteria(HEAD, "a mask, True where attention is allowed",
                       "gradients reach x and every weight")  # fmt: skip
    assert "mask given" in report(maskless).missing
    assert "a gradient on W_k.bias alone" in report(maskless).missing


def test_exclusions_hold_and_stale_ones_are_reported():
    assert "integers in query" in report(replace(ATTENTION, excludes=())).missing
    covered_one = replace(ATTENTION, excludes=(*ATTENTION.excludes, ("m of 1", "no reason")))
    assert report(covered_one).stale == ("m of 1",)
    never_owed = replace(ATTENTION, excludes=(*ATTENTION.excludes, ("h of 1", "no reason")))
    assert report(never_owed).stale == ("h of 1",)


def test_a_cases_note_counts_as_no_coverage():
    noted_case = Case((np.ones((5, 3)),), note="three batch axes, not contiguous, float32")
    criterion = replace(ATTENTION.criteria[0], cases=lambda rng: [noted_case])
    cells = covered(replace(EXERCISES["self_attention.self_attention"], criteria=(criterion,)))
    assert cells == {"d, n all different"}


def test_a_kind_is_owed_where_the_signature_allows_it():
    assert "integers in X" in owed(EXERCISES["mixing.mix"])
    assert not [c for c in owed(EXERCISES["mixing.mix"]) if "gradient" in c or "exp" in c]
    assert not [
        c for c in owed(EXERCISES["masking.causal_mask"]) if "batch" in c or "integers" in c
    ]
    assert {"n_keys given", "n_keys left out", "m = n"} <= set(
        owed(EXERCISES["masking.causal_mask"])
    )
    assert {"h = batch", "d_head = n"} <= set(owed(EXERCISES["multihead.split_heads"]))
    assert "a row whose exp overflows" in owed(EXERCISES["lookup.softmax"])
    assert "temperature given" in owed(EXERCISES["lookup.softmax"])
    assert "temperature of 0" not in owed(EXERCISES["lookup.softmax"])  # it is refused
    assert "scale of 0" in owed(ATTENTION)
    assert "a row whose exp overflows" not in owed(EXERCISES["masking.leak"])  # f takes it, if any
    assert owed(EXERCISES["tokens.tokenize"]) == ["the first call once more, after others"]


# --- wrong answers that no case tried before -------------------------------------------------


def attend(query, key, value, mask=None, *, scale=None):
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    scores = query @ key.mT * scale
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return scores.softmax(-1) @ value


def no_third_batch_axis(query, key, value, mask=None, *, scale=None):
    return attend(query, key, value, mask, scale=scale if query.ndim < 5 else 1.0)


def first_sixteen_keys(query, key, value, mask=None, *, scale=None):
    mask = None if mask is None else mask[..., :16]
    return attend(query, key[..., :16, :], value[..., :16, :], mask, scale=scale)


def scale_or_default(query, key, value, mask=None, *, scale=None):
    return attend(query, key, value, mask, scale=scale or None)


def turned_by_its_sizes(query, key, value, mask=None, *, scale=None):
    key = key.mT if key.shape[-2:] == (4, 4) and key.ndim == 3 else key
    return attend(query, key, value, mask, scale=scale)


def in_memory_order(query, key, value, mask=None, *, scale=None):
    if not query.is_contiguous() and query.ndim == 4:
        query = query.permute(3, 2, 1, 0).contiguous().view(query.shape)
    return attend(query, key, value, mask, scale=scale)


class RightOnce:
    """Right until it is called with arguments that it has seen."""

    def __init__(self):
        self.seen = []

    def __call__(self, query, key, value, mask=None, *, scale=None):
        again = any(torch.equal(query, seen_query) for seen_query in self.seen if mask is None)
        self.seen.append(query.detach())
        return attend(query, key, value, mask, scale=scale) + again


def mask_as_padding(query, key, value, mask=None, *, scale=None):
    if mask is not None and mask.ndim == 2 and query.ndim == 3 and len(mask) == len(query):
        mask = mask.unsqueeze(1)
    return attend(query, key, value, mask, scale=scale)


def key_cut_off(query, key, value, mask=None, *, scale=None):
    if not query.requires_grad and not value.requires_grad:
        key = key.detach()
    return attend(query, key, value, mask, scale=scale)


@pytest.mark.parametrize(
    "wrong",
    [
        no_third_batch_axis,
        first_sixteen_keys,
        scale_or_default,
        turned_by_its_sizes,
        in_memory_order,
        mask_as_padding,
        key_cut_off,
    ],
)
def test_a_wrong_answer_of_an_unusual_kind_fails(wrong):
    assert judge(ATTENTION, attend, seed=0).passed
    assert not judge(ATTENTION, wrong, seed=0).passed


def test_an_answer_that_differs_at_the_second_call_fails():
    verdict = judge(ATTENTION, RightOnce(), seed=0)
    assert "the first call once more" in "".join(c.message for c in verdict.criteria)


class HeadThatRemembers(HEAD.reference):
    """Adds to each output something of what it was called on before."""

    last = 0

    def forward(self, x, mask=None):
        output = super().forward(x, mask) + self.last
        self.last = float(x.detach().sum())
        return output


def test_an_object_that_remembers_a_call_fails():
    verdict = judge(HEAD, HeadThatRemembers, seed=0)
    message = verdict.criteria[0].message
    assert "(x), then (x_2) and (x)" in message
    assert "the second call" in message


class MapOfTheFirstCall(HEAD.reference):
    """Keeps the map, and shows the same one again."""

    stored_map = None

    def weights(self, x, mask=None):
        if self.stored_map is None or self.kept.shape[-1] != x.shape[-2]:
            self.stored_map = super().weights(x, mask)
        return self.stored_map


def test_a_method_that_returns_its_first_result_again_fails():
    failed = [c for c in judge(HEAD, MapOfTheFirstCall, seed=0).criteria if not c.passed]
    assert [c.name for c in failed] == ["weights(x, mask) returns the attention map"]
    assert "weights(x), then (x_2) and (x)" in failed[0].message


# --- tables ----------------------------------------------------------------------------------

RNG = np.random.default_rng


def test_a_row_of_a_table_is_a_case():
    table = CaseTable({"x": "... n h*d_head", "weight": "h 2", "n_heads": Count("h")})
    (case,) = table(
        row("n=5 h=3 d_head=2", batch=(2, 7), turned=True, dtype="float32", note="all at once",
            arguments={"scale": 0.5, "mask": hole("... 1 n"), "weight": Drawn("3 1")})
    )(RNG(0))  # fmt: skip
    x, weight, n_heads, mask = case.args
    assert (x.shape, weight.shape, n_heads, mask.shape) == ((2, 7, 5, 6), (3, 1), 3, (2, 7, 1, 5))
    assert not x.is_contiguous()
    assert not copy_of(x).is_contiguous()
    assert x.dtype == torch.float32
    assert mask.dtype == torch.bool
    assert mask.any(-1).all()
    assert not mask.all(-1).any()
    assert (case.kwargs, case.note) == ({"scale": 0.5}, "all at once")


def test_a_rows_numbers_have_the_size_and_dtype_named():
    table = CaseTable({"x": "n d", "y": "n d"}, tensors=False)
    plain = row("n=5 d=3")
    rows = (
        plain.but(factor={"x": 1e7}),
        plain.but(cancel=True, factor=1e-6),
        plain.but(zero=("y",)),
        plain.but(dtype="int64"),
    )
    (large, y), (small, _), (_, zero), (whole_numbers, _) = (c.args for c in table(*rows)(RNG(0)))
    assert np.abs(large).max() > 1e6 > np.abs(y).max()
    assert np.abs(small.sum(-1)).max() < 1e-15 < np.abs(small).max() < 1e-5
    assert not zero.any()
    assert whole_numbers.dtype == np.int64
    assert len(np.unique(whole_numbers)) > 3


def test_standard_rows_need_no_torch_in_numpy():
    rows = standard(CaseTable({"A": "... m n", "X": "... n d"}, tensors=False), d=2)
    assert rows.gradients == ()
    assert rows.integers[0].dtype == "int64"
    sizes = rows.batches[0].sizes
    assert sizes["d"] == 2
    assert len({*sizes.values()}) == 3
    both = Case((np.eye(2),))
    assert once_more(both).args is both.args


def test_each_gradient_is_asked_for_alone():
    x, w = (torch.ones(2, 2, requires_grad=False) for _ in range(2))
    outputs = each_gradient(x=0, w=1)(lambda x, w: x @ w, x, w)
    assert list(outputs) == ["the output", "the gradient of x", "the gradient of w"]
    with pytest.raises(Unusable, match="no gradient reaches w"):
        each_gradient(x=0, w=1)(lambda x, w: x @ (w if x.requires_grad else w.detach()), x, w)


def test_each_gradient_of_a_module_is_asked_for_alone():
    state = {"weight": torch.ones(3, 2), "bias": torch.ones(3)}
    call = {"make": ((2, 3), {}), "method": "", "inputs": ("x",), "x": torch.ones(5, 2)} | state
    outputs = call_module_with_each_gradient(nn.Linear, **call)
    assert list(outputs) == ["the output", *(f"the gradient of {n}" for n in ("x", *state))]

    class Cut(nn.Linear):
        def forward(self, x):
            bias = self.bias if self.weight.requires_grad else self.bias.detach()
            return x @ self.weight.mT + bias

    with pytest.raises(Unusable, match="no gradient reaches bias"):
        call_module_with_each_gradient(Cut, **call)


def test_a_module_is_called_twice():
    call = {"make": ((2, 1), {"bias": False}), "method": "", "weight": torch.ones(1, 2)}
    inputs = {"x": torch.ones(5, 2), "x_2": torch.zeros(3, 2)}
    outputs = call_module_twice(nn.Linear, **call, inputs=("x",), others=("x_2",), **inputs)
    sizes = [(len(y), y.sum().item()) for y in map(torch.detach, outputs.values())]
    assert sizes == [(5, 10), (3, 0), (5, 10)]
