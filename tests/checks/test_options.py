"""Mistakes in one branch are known by what the calls say besides their arrays."""

import torch
from torch import nn

from attncourse.checks import examine, exercises
from attncourse.checks.callers import call_module
from attncourse.checks.exercise import Case, Criterion
from attncourse.checks.explaining.options import case_branches, options_of
from attncourse.checks.trying.outcome import Outcome
from attncourse.checks.trying.trials import ReferenceOutcome, Trial
from attncourse.transformer import EncoderBlock


def trial(wrong: bool, **case) -> Trial:
    right = Outcome("value", value=1.0)
    return Trial(Criterion("", 1), Case(**case), right, Outcome("value", value=2.0 - (not wrong)))


def test_a_calls_options_are_settings_and_arguments():
    plain = trial(False, kwargs={"how": "mean", "mask": torch.ones(2), "scale": None})
    assert options_of(plain) == {
        "`how='mean'`",
        "`how` is given",
        "`mask` is given",
        "`scale=None`",
    }
    made = {"make": ((12, 3), {"pre_norm": False}), "method": "", "inputs": ("x", "mask"), "x": 0}
    block = trial(False, kwargs=made, use=call_module)
    assert options_of(block) == {"`pre_norm=False`", "`pre_norm` is given", "`mask` is given"}


def test_an_argument_of_every_call_is_no_option():
    """By position or by name: an argument without a default is there in each case."""
    exercise = exercises()["lookup.softmax"]  # softmax(x, axis=-1, temperature=1.0)
    calls = {
        "by name": Case((torch.ones(2),), {"temperature": 2.0}),
        "by position": Case((torch.ones(2), -1, 2.0)),
        "all by name": Case((), {"x": torch.ones(2), "temperature": 2.0}),
    }
    right = {name: ReferenceOutcome(exercise, case) for name, case in calls.items()}
    options = {
        name: options_of(Trial(Criterion("", 1), case, right[name], None))
        for name, case in calls.items()
    }
    assert options["by name"] == options["all by name"] == {"`temperature` is given"}
    assert options["by position"] == {"`temperature` is given", "`axis` is given"}


def test_wrong_cases_of_one_branch_are_recognised():
    with_scale, without_scale = {"kwargs": {"scale": 2.0}}, {}
    two_sides = [trial(True, **with_scale), trial(True, **with_scale), trial(False), trial(False)]
    assert list(case_branches(tuple(two_sides))) == [("only where `scale` is given", [0, 1])]
    other_way = [trial(False, **with_scale)] * 2 + [trial(True, **without_scale)] * 2
    assert list(case_branches(tuple(other_way))) == [("except where `scale` is given", [2, 3])]
    assert list(case_branches((*two_sides, trial(True)))) == []  # wrong elsewhere, too
    assert list(case_branches(tuple(two_sides[1:]))) == []  # one case is too few
    mostly_right = [*two_sides, *[trial(False, **with_scale)] * 3]
    assert list(case_branches(tuple(mostly_right))) == []


class OneBranch(EncoderBlock):
    """Post-norm as it should be, pre-norm without what ``way`` leaves out."""

    def before(self, x, mask):
        raise NotImplementedError

    def forward(self, x, mask=None):
        return self.before(x, mask) if self.pre_norm else super().forward(x, mask)


class OneNormMissing(OneBranch):
    def before(self, x, mask):
        x = x + self.dropout(self.attention(self.norm_1(x), mask=mask))
        return x + self.dropout(self.feed_forward(x))


class OddBranch(OneBranch):
    def before(self, x, mask):
        return nn.functional.elu(EncoderBlock.forward(self, x, mask)) * 1.5


def test_a_mistake_in_one_branch_has_its_name_and_where():
    verdict = examine("transformer.EncoderBlock", OneNormMissing, seed=2)
    assert verdict.diagnosis.name == "a norm is missing"
    assert verdict.diagnosis.explanation.endswith("that is so except where `pre_norm=False`.")
    assert verdict.guide.endswith("a-norm-is-missing")


def test_an_unnamed_mistake_is_told_by_its_branch():
    verdict = examine("transformer.EncoderBlock", OddBranch, seed=2)
    assert verdict.diagnosis is None
    assert verdict.symptom == "the result is wrong except where `pre_norm=False`"
