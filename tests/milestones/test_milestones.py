"""Milestones stand with our parts, and a mistake in a part shuts the gate that is about it."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
import torch
from matplotlib import pyplot as plt

from attncourse.checks import exercises
from attncourse.grading.cli import app
from attncourse.grading.errors import UserError
from attncourse.milestones import MILESTONE_NAMES
from attncourse.milestones import find_milestone as milestone
from attncourse.milestones.milestone import Gate, MilestoneResult, reach_milestone, try_gates
from attncourse.milestones.milestone import run_milestone as reach
from attncourse.milestones.parts import Parts, ours, read_parts
from attncourse.milestones.reaching import NotYet
from attncourse.milestones.reaching import reach as in_notebook
from helpers.forked_commands import run

pytestmark = pytest.mark.slow
HEAD = "kqv.AttentionHead"
POOL, CROSS = "cross_attention.AttentionPooling", "cross_attention.CrossAttention"


@pytest.mark.parametrize("name", MILESTONE_NAMES)
def test_a_milestone_stands_with_our_parts(name, request):
    if milestone(name).answer:  # of a real model
        request.getfixturevalue("real_model")
    outcome = reach_milestone(milestone(name), Parts(), show=False, patience=0)
    assert outcome.shut == {}
    assert outcome.passed
    figure = milestone(name).picture(outcome.model)
    assert all(ax.get_title() or ax.get_xlabel() for ax in figure.axes)
    plt.close(figure)


def test_milestones_are_named_in_the_courses_order():
    from attncourse import STEMS

    after = [STEMS.index(milestone(name).after) for name in MILESTONE_NAMES]
    assert after == sorted(after)
    for name in MILESTONE_NAMES:
        made = milestone(name)
        assert made.name == name
        assert set(made.uses) <= set(exercises())
        assert all(STEMS.index(t.split(".")[0]) <= STEMS.index(made.after) for t in made.uses)


# --- every mistake, before training ---------------------------------------------------------------

# The first gate that each mistake shuts, before training. What none shows, some training does, some
# is the check's to find (no sequence here has an odd width), and some harms nothing here: matrices
# that are learned may change names, lengths that are equal stand for each other, and where every
# query and key is turned in the same way, it does not matter in which.
# ``PYTHONPATH=tests:tests/grading python tests/milestones/test_milestones.py`` makes it anew.
TABLE = Path(__file__).parents[1] / "fixtures" / "milestone_gates.json"


def first_shut(name: str, target: str, wrong) -> str:
    """Return the first gate that a wrong part shuts before training, or ""."""
    made = milestone(name)
    untrained = replace(made, train=lambda parts, show: made.build(parts), trained=())
    torch.manual_seed(0)
    shut, _ = try_gates(untrained, Parts({target: wrong}), show=False, first=True)
    return next(iter(shut), "")


def gates_of(name: str, target: str) -> dict[str, str]:
    mistakes = exercises()[target].mistakes
    return {m.name: first_shut(name, target, m.wrong) for m in mistakes if m.wrong is not None}


def targets_built(name: str) -> list[str]:
    """Return the targets that a milestone calls directly."""
    targets_asked = []

    class AskedParts(Parts):
        def __getitem__(self, target):
            targets_asked.append(target)
            return super().__getitem__(target)

    milestone(name).build(AskedParts())
    return [target for target in milestone(name).uses if target in targets_asked]


@pytest.mark.parametrize("name", MILESTONE_NAMES)
def test_every_wrong_part_shuts_the_gate_in_the_table(name):
    table = json.loads(TABLE.read_text(encoding="utf-8"))[name]
    assert {target: gates_of(name, target) for target in targets_built(name)} == table


@pytest.mark.parametrize("name", MILESTONE_NAMES)
def test_most_mistakes_shut_a_gate_before_training(name):
    table = json.loads(TABLE.read_text(encoding="utf-8"))[name]
    seen = [gate for gates in table.values() for gate in gates.values()]
    assert sum(map(bool, seen)) > 0.5 * len(seen)


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
    ("dates", POOL, "mean pooling", "softmax of scores over √d_k"),
    ("dates", POOL, "queries is a plain tensor", "everything learns"),
    ("dates", CROSS, "the mask is ignored", "padding has no influence"),
    ("dates", CROSS, "the values are not projected", "the map is the one that blends"),
    ("dates", CROSS, "y is cut off from the gradient", "everything learns"),
    ("dates", CROSS, "no maximum subtracted", "large entries"),
    ("language", "masking.causal_mask", "the mask is inverted", "nothing ahead is seen"),
    ("language", "gpt.next_token_loss", "the targets are not shifted", "the loss is our own"),
    ("language", "gpt.attend_with_cache", "the cache is not read", "a cache changes nothing"),
    ("language", "gpt.sample_token", "the temperature is ignored", "drawn as often as likely"),
    ("language", "gpt.generate", "the beginning is lost", "it goes on with the likeliest"),
    ("language", "transformer.EncoderBlock", "the mask is ignored", "nothing ahead is seen"),
    (
        "language",
        "transformer.EncoderBlock",
        "the residual is missing",
        "branches add to the stream",
    ),
    ("digits", "vision.patchify", "patches counted column by column", "patches are squares"),
    ("digits", "vision.unpatchify", "the image is turned", "pieces make the image again"),
    ("digits", "vision.embed_image", "no positions", "places count"),
    (
        "digits",
        "vision.embed_image",
        "the class token stands last",
        "the class token answers with all",
    ),
    (
        "digits",
        "vision.attention_on_image",
        "divided by the largest",
        "attention laid over the image",
    ),
]


@pytest.mark.parametrize(("name", "target", "mistake", "gate"), GATES)
def test_a_mistake_shuts_the_gate_that_is_about_it(name, target, mistake, gate):
    made, wrong = milestone(name), mistaken(target, mistake)
    alone = replace(
        made,
        train=lambda parts, show: made.build(parts),
        untrained=[candidate for candidate in made.untrained if candidate.name == gate],
        trained=(),
    )
    torch.manual_seed(0)
    assert list(try_gates(alone, Parts({target: wrong}), show=False)[0]) == [gate]


def mistaken(target: str, mistake: str):
    return next(m.wrong for m in exercises()[target].mistakes if m.name == mistake)


def test_some_mistakes_show_only_in_training():
    """With frequencies that fall too fast it copies 8 letters and loses its way among 24."""
    target = "positions.apply_rope"
    wrong = mistaken(target, "the 2 of 2i/d is missing, or there twice")
    outcome = reach(milestone("copying"), Parts({target: wrong}), show=False)
    assert list(outcome.shut) == ["three times as long"]
    assert outcome.repair == (target,)


def test_a_loss_that_teaches_nothing_is_shown_by_training_alone():
    def deaf(logits, ids, padding_id=None):
        right = ours("gpt.next_token_loss")(logits, ids, padding_id)
        return right.detach() + 0 * logits.sum()

    parts = Parts({"gpt.next_token_loss": deaf})
    shut, _ = try_gates(milestone("language"), parts, show=False)
    assert "fresh stories, near the least loss" in shut
    assert "fresh stories cost" in shut["fresh stories, near the least loss"]
    assert "what it writes are stories" in shut


# --- whose part it is -----------------------------------------------------------------------------


class TwoParts(torch.nn.Module):
    """A model of two parts that call each other."""

    def __init__(self, parts):
        super().__init__()
        self.value = parts["kqv.attention_scores"](torch.ones(1, 1), torch.ones(1, 1))


def student_module(scale: float) -> ModuleType:
    """Return a student's module in which one part calls the other by name."""
    made = ModuleType("mine.kqv")
    code = f"""
def project(x, weight):
    return {scale} * (x @ weight)

def attention_scores(query, key):
    return project(query, key.mT)
"""
    exec(code, vars(made))
    return made


def small_milestone(made: ModuleType) -> tuple:
    sum_gate = Gate(
        "the sum is 1", lambda model: "" if model.value == 1 else f"it is {model.value}"
    )
    plain = replace(
        milestone("recall"),
        uses=("kqv.project", "kqv.attention_scores"),
        build=TwoParts,
        train=lambda parts, show: TwoParts(parts),
        untrained=(sum_gate,),
        trained=(),
    )
    students_parts = {
        f"kqv.{name}": getattr(made, name) for name in ("project", "attention_scores")
    }
    return plain, Parts(students_parts, (made,))


def test_the_repairing_part_is_named_and_parts_are_restored():
    made = student_module(2)
    students_project = made.project
    wrong = milestone("recall").name
    plain, parts = small_milestone(made)
    seen: list[str] = []
    with parts.exchanged("kqv.project") as mended:
        assert made.project is ours("kqv.project") is mended["kqv.project"]
        assert (mended.owner("kqv.project"), mended.owner("kqv.attention_scores")) == (
            "ours",
            "yours",
        )
        seen.append(str(mended["kqv.attention_scores"](torch.ones(1, 1), torch.ones(1, 1)).item()))
    assert seen == ["1.0"]
    assert made.project is students_project
    outcome = reach(plain, parts, show=False)
    assert not outcome.passed
    assert outcome.repair == ("kqv.project",)  # and not the one that calls it
    only = Parts({"kqv.project": students_project}, (made,))
    assert reach(plain, only, show=False).passed  # ours does not call theirs
    assert wrong in str(outcome)
    assert "with our kqv.project in place of yours it passes" in str(outcome)
    assert reach(*small_milestone(student_module(1)), show=False).passed


def test_parts_that_fail_only_together_are_named_together():
    def twice(x, weight):
        return 2 * (x @ weight)

    def thrice(query, key):
        return 3 * (query @ key.mT)

    class Two(torch.nn.Module):
        def __init__(self, parts):
            super().__init__()
            ones = torch.ones(1, 1)
            first, second = (
                parts["kqv.project"](ones, ones),
                parts["kqv.attention_scores"](ones, ones),
            )
            self.value = first * second

    plain, _ = small_milestone(student_module(1))
    plain = replace(plain, build=Two, train=lambda parts, show: Two(parts))
    wrong = Parts({"kqv.project": twice, "kqv.attention_scores": thrice})
    outcome = reach(plain, wrong, show=False)
    assert set(outcome.repair) == {"kqv.project", "kqv.attention_scores"}
    assert "it takes ours for kqv.attention_scores and kqv.project to pass" in str(outcome)
    impatient = reach(plain, wrong, show=False, patience=-1)
    assert impatient.repair == ()
    assert "which part it is was not found" in str(impatient)


def test_a_part_to_blame_among_many_is_found_by_halves():
    trials = []

    class Chain(torch.nn.Module):
        def __init__(self, parts):
            super().__init__()
            trials.append(parts)
            self.value = 1 + (parts.owner(made.uses[5]) == "yours")

    made = milestone("language")
    sum_gate = Gate("the sum is 1", lambda model: "" if model.value == 1 else "it is 2")
    plain = replace(
        made, build=Chain, train=lambda p, show: Chain(p), untrained=(sum_gate,), trained=()
    )
    outcome = reach(plain, Parts({target: ours(target) for target in made.uses}), show=False)
    assert outcome.repair == (made.uses[5],)
    assert len(trials) < 20


def test_a_milestone_needs_a_part_of_the_students():
    with pytest.raises(ValueError, match="none of the 4 parts of recall is yours yet: write one"):
        reach(milestone("recall"), Parts({"tokens.embed": ours("tokens.embed")}))


def test_a_part_that_raises_is_reported_in_one_line():
    def raises(*args):
        raise RuntimeError("no\nmore")

    plain, _ = small_milestone(student_module(1))
    outcome = reach(plain, Parts({"kqv.attention_scores": raises}), show=False)
    assert outcome.shut == {"it runs": "RuntimeError: no"}
    assert outcome.repair == ("kqv.attention_scores",)


def test_an_outcome_says_whose_parts_and_what_was_seen():
    made = milestone("recall")
    outcome = MilestoneResult(
        made, Parts({HEAD: ours(HEAD)}), {"fresh questions": "12% right"}, 3.2
    )
    lines = str(outcome).splitlines()
    assert lines[0] == "✗ recall: a head answers c5 a1 h7 … c? with 5 (3 s)"
    assert str(MilestoneResult(made, Parts({t: ours(t) for t in made.uses}), {}, 3.2)).startswith(
        "✓ recall is yours: a head answers"
    )
    assert lines[1] == "  1 of 4 parts are yours: kqv.AttentionHead"
    rest = "kqv.project, kqv.attention_scores, kqv.scaled_dot_product_attention"
    assert lines[2] == f"  ours, until yours are right: {rest}"
    assert lines[3] == "  ✗ fresh questions: 12% right"
    assert "was not found" in lines[4]


# --- in a notebook --------------------------------------------------------------------------------


def test_a_milestone_in_a_notebook_takes_parts_by_name(capsys):
    in_notebook("recall", AttentionHead=ours(HEAD))
    output = capsys.readouterr().out
    assert output.startswith("✓ recall runs, with 3 of ours: a head answers")
    assert "1 of 4 parts are yours: kqv.AttentionHead" in output
    with pytest.raises(NotYet, match="✗ scores over √d_k") as failed:
        in_notebook("recall", AttentionHead=mistaken(HEAD, "no scale"))
    assert f"with our {HEAD} in place of yours it passes" in str(failed.value)
    with pytest.raises(ValueError, match=r"recall is made of project, .*, not of apply_rope"):
        in_notebook("recall", apply_rope=ours("positions.apply_rope"))
    with pytest.raises(ValueError, match="expected a function or a class, got 3"):
        in_notebook("recall", project=3)


# --- a package of parts ---------------------------------------------------------------------------

STUDENT_SOURCE = """
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


def write_student_package(folder: Path, divisor: str = "self.W_q.out_features ** 0.5") -> Path:
    mine = folder / "mine"
    mine.mkdir(parents=True)
    (mine / "__init__.py").write_text("")
    (mine / "kqv.py").write_text(STUDENT_SOURCE.format(divisor=divisor))
    return mine


@pytest.fixture(autouse=True)
def forget_student_modules():
    yield
    for name in [name for name in sys.modules if name.split(".")[0] == "mine"]:
        del sys.modules[name]


def test_a_package_owns_what_it_defines_not_imports(tmp_path):
    first = read_parts(write_student_package(tmp_path / "a"))
    second = read_parts(write_student_package(tmp_path / "b", "1"))
    assert list(first.theirs) == [HEAD]
    assert first.owner("kqv.scaled_dot_product_attention") == "ours"
    assert first[HEAD] is not second[HEAD]
    assert "out_features" in (tmp_path / "a/mine/kqv.py").read_text()
    assert str(tmp_path) not in " ".join(sys.path)


def test_a_folder_that_is_no_package_is_refused(tmp_path):
    with pytest.raises(ValueError, match="attncourse assemble"):
        read_parts(tmp_path / "mine")
    (write_student_package(tmp_path) / "kqv.py").write_text("import nowhere_at_all")
    with pytest.raises(ValueError, match="cannot be imported"):
        read_parts(tmp_path / "mine")
    with pytest.raises(ValueError, match="no part is called"):
        ours("kqv.attention")
    with pytest.raises(ValueError, match="no milestone is called 'reverse'"):
        milestone("reverse")


def test_a_milestone_on_the_command_line(tmp_path):
    """One in a process of its own; the command is the same in this one."""
    write_student_package(tmp_path)
    process = run("milestone", "recall", cwd=tmp_path)
    assert (process.returncode, process.stderr) == (0, "")
    assert "1 of 4 parts are yours" in process.stdout
    assert (tmp_path / "recall.png").read_bytes().startswith(b"\x89PNG")
    assert process.stdout.startswith("✓ recall runs, with 3 of ours: ")
    assert json.loads((tmp_path / "mine" / "reached.json").read_text()) == {"recall": 3}


def run_milestone_command(folder: Path, *arguments: str) -> tuple[int, str]:
    """Run the command in this process; return its status and why it refuses."""
    try:
        return app(["milestone", *arguments, "--parts", str(folder)], standalone_mode=False), ""
    except UserError as problem:
        return 2, str(problem)


def test_a_milestone_that_is_not_reached_names_the_part(tmp_path, capsys):
    place = tmp_path / "recall.png"
    status, _ = run_milestone_command(
        write_student_package(tmp_path, "1"), "recall", "--picture", str(place)
    )
    output = capsys.readouterr().out
    assert status == 1
    assert "✗ scores over √d_k: scores spread 4 times as far" in output
    assert f"with our {HEAD} in place of yours it passes" in output
    assert not place.exists()
    assert not (tmp_path / "mine" / "reached.json").exists()


def test_a_faulty_command_is_refused_in_one_line(tmp_path):
    assert "there are no parts in" in run_milestone_command(tmp_path / "mine", "recall")[1]
    mine = write_student_package(tmp_path)
    assert "no milestone is called 'dance'" in run_milestone_command(mine, "dance")[1]
    status, why = run_milestone_command(mine, "digits")
    assert status == 2
    assert why.startswith("none of the 11 parts of digits is yours yet: write one, say vision.")
    (mine / "kqv.py").write_text("from attncourse.kqv import gone_in_this_version")
    assert "cannot be imported" in run_milestone_command(mine, "recall")[1]


if __name__ == "__main__":
    table = {
        name: {target: gates_of(name, target) for target in targets_built(name)}
        for name in MILESTONE_NAMES
    }
    TABLE.write_text(json.dumps(table, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
