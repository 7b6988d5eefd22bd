"""Milestones stand with our parts, and a mistake in a part shuts the gate that is about it."""

import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
import torch
from matplotlib import pyplot as plt
from test_cli import refuses, run

from attncourse.checks import exercises
from attncourse.milestones import NAMES, milestone
from attncourse.milestones.milestone import Gate, Outcome, tried
from attncourse.milestones.milestone import run as reach
from attncourse.milestones.parts import Parts, ours, parts_of

HEAD = "kqv.AttentionHead"


@pytest.mark.parametrize("name", NAMES)
def test_a_milestone_stands_with_our_parts(name):
    outcome = reach(milestone(name), Parts(), show=False)
    assert outcome.shut == {}
    assert outcome.passed
    assert outcome.seconds < 60
    figure = milestone(name).picture(outcome.model)
    assert all(ax.get_title() or ax.get_xlabel() for ax in figure.axes)
    plt.close(figure)


def test_milestones_are_named_in_the_courses_order():
    from attncourse import STEMS

    after = [STEMS.index(milestone(name).after) for name in NAMES]
    assert after == sorted(after)
    for name in NAMES:
        made = milestone(name)
        assert made.name == name
        assert set(made.uses) <= set(exercises())
        assert all(STEMS.index(t.split(".")[0]) <= STEMS.index(made.after) for t in made.uses)


# --- every mistake, before training ---------------------------------------------------------------

# What an untrained model does not show. Some of it training does, some is the check's to find (no
# sequence here has an odd width), and some harms nothing here: matrices that are learned may change
# names, lengths that are equal stand for each other, and where every query and key is turned in the
# same way, it does not matter in which.
UNSEEN = {
    "recall": {
        "kqv.AttentionHead": {
            "a guard in the denominator",
            "key and query swapped",
            "one view for query and key",
            "the biases are there and not used",
        }
    },
    "copying": {
        "kqv.scaled_dot_product_attention": {
            "a guard in the denominator",
            "a scale of 0 is taken for none",
            "divided by scale",
            "no maximum subtracted",
            "scale comes on top of 1/√d_k",
            "scale is ignored",
        },
        "multihead.split_heads": {
            "a width that n_heads does not divide is not refused",
            "axes counted from the front",
        },
        "multihead.merge_heads": {"axes counted from the front"},
        "masking.causal_mask": {
            "rows and columns are not queries and keys",
            "the diagonal does not follow the sizes",
            "the old keys are shut out",
        },
        "positions.apply_rope": {
            "a reflection in place of a rotation",
            "all angles times one number",
            "all exponents times one number",
            "an odd d is accepted in silence",
            "angles in float32",
            "another base",
            "base is ignored",
            "divided by d outside the power",
            "frequencies counted from 1",
            "neighbours on one side, halves on the other",
            "one frequency for all pairs",
            "pairs (i, i + d/2)",
            "positions counted from 1",
            "positions of its own",
            "positions taken for whole numbers",
            "sine and cosine exchanged",
            "the 2 of 2i/d is missing, or there twice",
            "the exponent has the wrong sign",
            "the exponent is divided by another number than d",
            "the sign of the position is lost",
            "the slowest pair first",
            "turned the other way",
        },
    },
}


def wrong_parts() -> list:
    return [
        pytest.param(name, target, id=f"{name}-{target}")
        for name in NAMES
        for target in direct(name)
    ]


def direct(name: str) -> list[str]:
    """The targets that a milestone calls itself; what they call in turn is theirs."""
    return [HEAD] if name == "recall" else list(milestone(name).uses)


def shut_before_training(name: str, target: str, wrong) -> set[str]:
    made = milestone(name)
    untrained = replace(made, train=lambda parts, show: made.build(parts), trained=())
    torch.manual_seed(0)
    return set(tried(untrained, Parts({target: wrong}), show=False)[0])


@pytest.mark.parametrize(("name", "target"), wrong_parts())
def test_an_untrained_model_shows_the_mistakes_of_its_parts(name, target):
    found = {
        m.name
        for m in exercises()[target].misconceptions
        if m.wrong is not None and not shut_before_training(name, target, m.wrong)
    }
    assert found == UNSEEN[name].get(target, set())


GATES = [
    ("recall", HEAD, "no scale", "scores over √d_k"),
    ("recall", HEAD, "the mask is ignored", "what is forbidden has no influence"),
    ("recall", HEAD, "weights ignores the mask", "the map is the one that blends"),
    ("recall", HEAD, "softmax over the queries", "weights are shares"),
    ("recall", HEAD, "no maximum subtracted", "large entries"),
    ("copying", "masking.causal_mask", "the mask is inverted", "nothing ahead is seen"),
    ("copying", "masking.causal_mask", "the mask is inverted", "everything behind is seen"),
    ("copying", "multihead.split_heads", "a head takes every h-th feature", "heads apart"),
    ("copying", "multihead.merge_heads", "features of the heads interleaved", "heads apart"),
    ("copying", "positions.apply_rope", "a frequency for each feature", "distances alone"),
]


@pytest.mark.parametrize(("name", "target", "mistake", "gate"), GATES)
def test_a_mistake_shuts_the_gate_that_is_about_it(name, target, mistake, gate):
    wrong = next(m.wrong for m in exercises()[target].misconceptions if m.name == mistake)
    assert gate in shut_before_training(name, target, wrong)


def test_what_only_training_shows():
    """With frequencies that fall too fast it copies 8 letters and loses its way among 24."""
    mistake = "the 2 of 2i/d is missing, or there twice"
    found = exercises()["positions.apply_rope"].misconceptions
    parts = Parts({"positions.apply_rope": next(m.wrong for m in found if m.name == mistake)})
    outcome = reach(milestone("copying"), parts, show=False)
    assert list(outcome.shut) == ["three times as long"]
    assert outcome.repair == "positions.apply_rope"


# --- whose part it is -----------------------------------------------------------------------------


class Sum(torch.nn.Module):
    """A model of two parts that call each other."""

    def __init__(self, parts):
        super().__init__()
        self.value = parts["kqv.attention_scores"](torch.ones(1, 1), torch.ones(1, 1))


def module(scale: float) -> ModuleType:
    """A student's chapter, where one part calls the other by its name in the module."""
    made = ModuleType("mine.kqv")
    code = f"""
def project(x, weight):
    return {scale} * (x @ weight)

def attention_scores(query, key):
    return project(query, key.mT)
"""
    exec(code, vars(made))
    return made


def small(made: ModuleType) -> tuple:
    one = Gate("the sum is 1", lambda model: "" if model.value == 1 else f"it is {model.value}")
    plain = replace(
        milestone("recall"),
        uses=("kqv.attention_scores", "kqv.project"),
        build=Sum,
        train=lambda parts, show: Sum(parts),
        untrained=(one,),
        trained=(),
    )
    theirs = {f"kqv.{name}": getattr(made, name) for name in ("project", "attention_scores")}
    return plain, Parts(theirs, (made,))


def test_the_part_that_repairs_it_is_named_and_all_is_put_back():
    made = module(2)
    own = made.project
    wrong = milestone("recall").name
    plain, parts = small(made)
    seen: list[str] = []
    with parts.exchanged("kqv.project") as mended:
        assert made.project is ours("kqv.project") is mended["kqv.project"]
        assert (mended.owner("kqv.project"), mended.owner("kqv.attention_scores")) == (
            "ours",
            "yours",
        )
        seen.append(str(mended["kqv.attention_scores"](torch.ones(1, 1), torch.ones(1, 1)).item()))
    assert seen == ["1.0"]
    assert made.project is own
    outcome = reach(plain, parts, show=False)
    assert not outcome.passed
    assert outcome.repair == "kqv.attention_scores"  # the first in order, ours calls our project
    only = Parts({"kqv.project": own}, (made,))
    assert reach(plain, only, show=False).passed  # ours does not call theirs
    assert wrong in str(outcome)
    assert "with our kqv.attention_scores in place of yours it passes" in str(outcome)
    assert reach(*small(module(1)), show=False).passed


def test_a_part_that_raises_is_told_in_a_line():
    def raises(*args):
        raise RuntimeError("no\nmore")

    outcome = reach(milestone("copying"), Parts({"masking.causal_mask": raises}), show=False)
    assert outcome.shut == {"it runs": "RuntimeError: no"}
    assert outcome.repair == "masking.causal_mask"


def test_an_outcome_says_whose_parts_and_what_was_seen():
    made = milestone("recall")
    outcome = Outcome(made, Parts({HEAD: ours(HEAD)}), {"fresh questions": "12% right"}, 3.2)
    lines = str(outcome).splitlines()
    assert lines[0] == "✗ recall: a head answers c5 a1 h7 … c? with 5 (3 s)"
    assert lines[1] == "  1 of 4 parts are yours: kqv.AttentionHead"
    assert lines[2] == "  ✗ fresh questions: 12% right"
    assert "no single part" in lines[3]


# --- a package of parts ---------------------------------------------------------------------------

OWN = """
import torch
from torch import nn
from attncourse.kqv import scaled_dot_product_attention


class AttentionHead(nn.Module):
    def __init__(self, d_model, d_k, d_v=None, bias=False):
        super().__init__()
        self.W_q, self.W_k = nn.Linear(d_model, d_k, bias=bias), nn.Linear(d_model, d_k, bias=bias)
        self.W_v = nn.Linear(d_model, d_v or d_k, bias=bias)

    def forward(self, x, mask=None):
        return self.weights(x, mask) @ self.W_v(x)

    def weights(self, x, mask=None):
        scores = self.W_q(x) @ self.W_k(x).mT / {divisor}
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        return torch.softmax(scores, dim=-1)
"""


def package(folder: Path, divisor: str = "self.W_q.out_features ** 0.5") -> Path:
    mine = folder / "mine"
    mine.mkdir(parents=True)
    (mine / "__init__.py").write_text("")
    (mine / "kqv.py").write_text(OWN.format(divisor=divisor))
    return mine


@pytest.fixture(autouse=True)
def _forget():
    yield
    for name in [name for name in sys.modules if name.split(".")[0] == "mine"]:
        del sys.modules[name]


def test_what_a_package_defines_is_theirs_and_what_it_imports_is_ours(tmp_path):
    first = parts_of(package(tmp_path / "a"))
    second = parts_of(package(tmp_path / "b", "1"))
    assert list(first.theirs) == [HEAD]
    assert first.owner("kqv.scaled_dot_product_attention") == "ours"
    assert first[HEAD] is not second[HEAD]
    assert "out_features" in (tmp_path / "a/mine/kqv.py").read_text()
    assert str(tmp_path) not in " ".join(sys.path)


def test_what_is_no_package_is_refused(tmp_path):
    with pytest.raises(ValueError, match="attncourse assemble"):
        parts_of(tmp_path / "mine")
    (package(tmp_path) / "kqv.py").write_text("import nowhere_at_all")
    with pytest.raises(ValueError, match="cannot be imported"):
        parts_of(tmp_path / "mine")
    with pytest.raises(ValueError, match="no part is called"):
        ours("kqv.attention")
    with pytest.raises(ValueError, match="no milestone is called 'reverse'"):
        milestone("reverse")


def test_a_milestone_on_the_command_line(tmp_path):
    refuses(run("milestone", "recall", cwd=tmp_path), "there are no parts in mine")
    package(tmp_path)
    done = run("milestone", "recall", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "1 of 4 parts are yours" in done.stdout
    assert (tmp_path / "recall.png").read_bytes().startswith(b"\x89PNG")
    refuses(run("milestone", "dance", cwd=tmp_path), "no milestone is called 'dance'")


def test_a_milestone_that_is_not_reached_names_the_part(tmp_path):
    package(tmp_path, "1")
    done = run("milestone", "recall", cwd=tmp_path)
    assert done.returncode == 1
    assert "✗ scores over √d_k: scores spread 4 times as far" in done.stdout
    assert f"with our {HEAD} in place of yours it passes" in done.stdout
    assert not (tmp_path / "recall.png").exists()
