"""The table at a notebook's end, and answers that are not there: what a session is told of them."""

import re
from contextlib import suppress

import pytest

from attncourse import mixing
from attncourse.checks import CheckFailed, check, examine, exercises, observe, progress
from attncourse.checks.exercise import HIDDEN_POINTS
from attncourse.checks.index import INDEX_FILE, guide_place, index
from attncourse.checks.showing.chapter_progress import progress_of
from attncourse.checks.showing.verdict import NOT_ATTEMPTED


@pytest.fixture(autouse=True)
def empty_session(monkeypatch):
    """Start a session in which no check has run."""
    monkeypatch.setattr("attncourse.checks.last_verdicts", made := {})
    monkeypatch.setattr("attncourse.checks.showing.chapter_progress.last_verdicts", made)
    return made


def stub(*args, **kwargs):
    raise NotImplementedError()


def run_check(target: str, answer) -> None:
    """Run a check as a notebook does, whether it passes or fails."""
    with suppress(CheckFailed):
        check(target, answer)


def table(stem: str):
    return progress_of(stem, [e for e in exercises().values() if e.stem == stem])


# --- the table ------------------------------------------------------------------------------------


def test_the_progress_table_says_what_the_checks_found(capsys):
    run_check("mixing.mix", mixing.mix)
    run_check("mixing.normalize_rows", stub)
    run_check("mixing.uniform_weights", lambda n: mixing.uniform_weights(n) * 2)
    progress_table = table("mixing")
    assert [row.state for row in progress_table.rows] == [
        "done",
        "open",
        "open",
        "tried",
        "open",
        "open",
    ]
    assert progress_table.summary == "1 of 6 exercises done, 1 tried, 4 open · 7 of 32 points"
    remarks = [row.said for row in progress_table.rows]
    assert remarks[:3] == ["", NOT_ATTEMPTED, "no check of it has run"]
    assert "twice" in remarks[3] or "2 times" in remarks[3]
    assert (
        progress_table.hidden_tests
        == "6 more points for tests that are run only when your notebook is graded."
    )
    assert progress_table.next_step == "next: uniform_weights (about 5 minutes)"
    capsys.readouterr()
    progress("mixing")
    assert capsys.readouterr().out == f"{progress_table}\n"
    html = progress_table._repr_html_()
    for text in (
        progress_table.summary,
        progress_table.hidden_tests,
        progress_table.next_step,
        "<code>window_weights</code>",
    ):
        assert text in html
    assert all(len(line) <= 80 for line in str(progress_table).splitlines()), str(progress_table)


def test_the_last_verdict_counts():
    run_check("mixing.mix", lambda A, X: X)
    assert table("mixing").rows[0].state == "tried"
    run_check("mixing.mix", mixing.mix)
    assert table("mixing").rows[0].state == "done"


def test_next_is_an_open_exercise_or_the_next_chapter():
    assert table("tokens").next_step == "next: tokenize (about 10 minutes)"
    for target, exercise in exercises().items():
        if exercise.stem in ("mixing", "tokens"):
            run_check(target, exercise.reference)
    assert table("mixing").next_step == "next: chapter 3"
    assert "open" not in table("mixing").summary


def test_judging_for_a_grade_is_no_progress(empty_session):
    with observe(seed=3):
        run_check("mixing.mix", mixing.mix)
    examine("mixing.mix", mixing.mix)
    assert empty_session == {}


def test_an_unknown_chapter_has_no_progress_table():
    with pytest.raises(ValueError, match=r"expected a chapter .*tokens.*, got 'mix'"):
        progress("mix")


# --- not attempted --------------------------------------------------------------------------------


def class_of(*methods: str):
    """Return an ``AttentionHead`` with these methods as in the released notebook."""
    from attncourse.kqv import AttentionHead

    return type("AttentionHead", (AttentionHead,), dict.fromkeys(methods, stub))


@pytest.mark.parametrize("methods", [("__init__",), ("forward", "weights")])
def test_a_class_whose_stub_is_left_is_not_attempted(methods):
    verdict = examine("kqv.AttentionHead", class_of(*methods), seed=1)
    assert verdict.unwritten
    assert verdict.state == "open"


def test_a_class_of_which_a_part_works_counts_as_tried():
    verdict = examine("kqv.AttentionHead", class_of("weights"), seed=1)
    assert (verdict.unwritten, verdict.state) == (False, "tried")
    assert verdict.earned > 0


def test_a_verdict_on_a_stub_says_only_what_to_do():
    verdict = examine("mixing.mix", stub, seed=1)
    assert str(verdict).splitlines() == [
        "○ mixing.mix: not attempted (0 of 7 points)",
        "  Replace `raise NotImplementedError()` by your code.",
        "  Chapter 2, “A row of weights for every token” explains it.",
        f"  {index()['mixing.mix'].address}",
    ]
    assert verdict.full == str(verdict)
    html = verdict._repr_html_()
    assert "not attempted" in html
    assert "✗" not in html


# --- addresses ------------------------------------------------------------------------------------


def test_a_verdict_leads_to_the_section_and_to_the_field_guide():
    verdict = examine("mixing.normalize_rows", lambda A: A / A.sum(axis=0), seed=1)
    section = index()["mixing.normalize_rows"].address
    assert re.fullmatch(r"https://\S+/book/02_mixing\.html#two-constraints-\S+", section)
    assert verdict.guide.startswith(section.split("02_mixing")[0] + "field_guide.html#mixing-")
    for address in (section, verdict.guide):
        assert f'<a href="{address}">' in verdict._repr_html_()
        assert address in verdict.full
    assert str(verdict).count("https://") == 1
    assert section in str(verdict)
    assert examine("mixing.mix", mixing.mix)._repr_html_().count("href") == 0


def test_the_index_knows_every_exercise():
    assert list(index()) == list(exercises())
    for target, exercise in exercises().items():
        known = index()[target]
        assert (known.points, known.minutes) == (exercise.points, exercise.minutes)
    assert HIDDEN_POINTS == 1
    assert INDEX_FILE.stat().st_size < 20_000


def test_every_mistake_has_a_place_of_its_own_in_the_guide():
    places = [guide_place(e, m) for e in exercises().values() for m in e.mistakes]
    assert len(set(places)) == len(places)
    assert guide_place(exercises()["mixing.mix"], None) == ""
