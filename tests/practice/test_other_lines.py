"""Which other lines mend a drill: what its line lacks, done where a value is set or used."""

import ast
import time
from dataclasses import replace

import pytest
from drill_making.elsewhere import changes_elsewhere, lacking_parts, with_other_lines
from drill_making.proving import drill_problem, implementation_of, mending_places

from attncourse import STEMS
from attncourse.checks import exercises
from attncourse.checks.trying.trials import try_out
from attncourse.practice.drills import MendElsewhere, drill_from, drills_of, kept_entry
from helpers.seeding import SEED

KQV = drills_of("kqv")
EVERY = [drill for stem in STEMS for drill in drills_of(stem)]
CODE = (
    "def scale_scores(scores, d_k):",
    "    root = d_k",
    "    if root > 0:",
    "        scaled = scores / root",
    "        scaled = scaled * 1.0",
    "    return scaled",
)


def scale_by_hand(**fields):
    """A drill in which the root is missing where d_k gets its name."""
    wrong = next(
        m for m in exercises()["scaling.scale_scores"].mistakes if m.name == "divided by d_k"
    )
    return replace(
        KQV[0],
        exercise="scaling.scale_scores",
        code=CODE,
        line=1,
        mended=("    root = d_k**0.5",),
        name=wrong.name,
        sentence=wrong.explanation,
        wrong_names=(),
        setup="",
        elsewhere=(),
        **fields,
    )


def test_the_line_where_a_value_is_used_mends_it_as_well():
    drill = with_other_lines(scale_by_hand(), SEED)
    assert drill.elsewhere == (MendElsewhere(3, 3, ("        scaled = scores / root**0.5",)),)
    other = drill.elsewhere[0]
    mended = implementation_of("scale_scores", "", "\n".join(other.applied_to(drill.code)))
    assert mended(6.0, 4) == 3.0
    assert implementation_of("scale_scores", "", "\n".join(CODE))(6.0, 4) == 1.5


def test_a_drill_that_keeps_silent_on_such_a_line_is_refused():
    assert drill_problem(scale_by_hand(), SEED) == "another line mends it"


def test_a_head_is_changed_without_what_is_in_it():
    changes = list(changes_elsewhere(scale_by_hand()))
    assert MendElsewhere(2, 2, ("    if root ** 0.5 > 0:",)) in changes
    assert not any(one.first == 1 for one in changes)  # the drill's own line
    for one in changes:
        ast.parse("\n".join(one.applied_to(CODE)))


def test_another_line_that_does_not_mend_it_is_refused():
    drill = next(d for d in KQV if d.name == "divided by d_k")
    line = next(i for i, row in enumerate(drill.code) if i not in (0, drill.line) and row.strip())
    untrue = replace(drill, elsewhere=(MendElsewhere(line, line, (drill.code[line],)),))
    assert drill_problem(untrue, SEED, other_lines=False) == (
        f"line {line + 1} does not mend it as well"
    )


@pytest.mark.parametrize(
    ("wrong", "right", "lacks"),
    [
        ("y = x", "y = x / n", [("x", "x / n")]),
        ("y = f(x)", "y = f(x.abs())", [("x", "x.abs()")]),
        ("y = q @ k", "y = q @ k / d", [("q @ k", "q @ k / d")]),
        ("y = q + k", "y = q * k", []),
        ("y = x / n", "y = x", []),
        ("y = x + x", "y = x.T + x.T", []),
    ],
)
def test_what_a_line_lacks(wrong, right, lacks):
    found = lacking_parts(ast.parse(wrong), ast.parse(right))
    assert [(ast.unparse(one), ast.unparse(other)) for one, other in found] == lacks


def test_other_lines_are_kept_with_a_drill():
    drill = replace(KQV[0], elsewhere=(MendElsewhere(1, 2, ("    a", "    b")),))
    setups = []
    assert drill_from(kept_entry(drill, setups), setups) == drill
    assert "elsewhere" not in kept_entry(replace(drill, elsewhere=()), setups)


def test_no_other_line_is_the_drill_s_own():
    for drill in EVERY:
        for other in drill.elsewhere:
            assert drill.line not in range(other.first, other.last + 1), drill.id
            rows = "\n".join(drill.code[other.first : other.last + 1])
            assert rows != "\n".join(other.mended), drill.id
            ast.parse("\n".join(other.applied_to(drill.code)))


def test_what_never_ends_takes_no_longer_than_right_code():
    """Of hundreds of changes many loop for ever; five seconds for each would be too long."""
    exercise = exercises()["scaling.scale_scores"]

    def right(scores, d_k):
        return scores / d_k**0.5

    def endless(scores, d_k):
        while d_k:
            scores = scores + 0

    def wrong(scores, d_k):
        return scores / d_k

    trials = try_out(exercise, wrong, SEED)
    began = time.process_time()
    assert list(
        mending_places(exercise, right, [endless, None, wrong, right, endless], trials, SEED)
    ) == [3]
    assert time.process_time() - began < exercise.limit
