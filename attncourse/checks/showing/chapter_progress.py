"""The table at a notebook's end: what the checks of this session saw, and what comes next."""

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

from attncourse import MILESTONES, STEMS
from attncourse.checks.exercise import HIDDEN_POINTS, Exercise
from attncourse.checks.index import question_points
from attncourse.checks.reading.cells import cells_here
from attncourse.checks.showing.verdict import (
    MARK_STATES,
    NOT_ATTEMPTED,
    OPEN,
    Verdict,
    inline_html,
    points_in_words,
)

MARK_OF_STATE = dict(zip(MARK_STATES, "✓✗○", strict=True))
CELL_STYLE = "padding:.15em 1.2em .15em 0;text-align:left;vertical-align:top"
last_verdicts: dict[str, Verdict] = {}  # by target, the newest of this process


@dataclass(frozen=True)
class ProgressRow:
    """One exercise: its state, the points of its newest check, and the verdict in one line."""

    exercise: Exercise
    state: str
    earned: int
    said: str = ""


@dataclass(frozen=True)
class ChapterProgress:
    """A chapter's exercises as the checks of this session saw them."""

    stem: str
    rows: tuple[ProgressRow, ...]
    answered: frozenset[str] | None = None  # questions, where the notebook's file is known

    @property
    def questions(self) -> dict[str, int]:
        """Return the points of the chapter's questions in words, by name: a person gives them."""
        return {
            t.split(".")[1]: p
            for t, p in question_points().items()
            if t.startswith(f"{self.stem}.")
        }

    def count(self, state: str) -> int:
        """Return how many exercises are in a state."""
        return sum(row.state == state for row in self.rows)

    @property
    def summary(self) -> str:
        """Return one line: how many exercises are done, tried and open, and the points."""
        done_words = (
            f"{self.count('done')} of {len(self.rows) + len(self.questions)} exercises done"
        )
        rest = [f"{n} {state}" for state in MARK_STATES[1:] if (n := self.count(state))]
        earned = sum(row.earned for row in self.rows)
        possible = sum(row.exercise.points for row in self.rows)
        person = sum(self.questions.values())
        more = f"; {points_in_words(person)} for a person" if person else ""
        return f"{', '.join([done_words, *rest])} · {earned} of {points_in_words(possible)}{more}"

    @property
    def question_rows(self) -> list[tuple[str, str, str]]:
        """Return mark, name and text of each question: answered or not, where that is known."""
        states = {
            None: ("–", ""),
            True: ("✓", "answered: "),
            False: ("○", "not answered yet: "),
        }
        rows = []
        for name, number in self.questions.items():
            mark, prefix = states[None if self.answered is None else name in self.answered]
            rows.append((mark, name, f"{prefix}a person gives its {points_in_words(number)}"))
        return rows

    @property
    def hidden_tests(self) -> str:
        """Return a sentence on the points of hidden tests, which no check shows."""
        return hidden_tests_sentence(len(self.rows))

    @property
    def next_step(self) -> str:
        """Return what to do next: a tried exercise, else an open one, else the next chapter.

        After some chapters a milestone comes first.
        """
        for state in MARK_STATES[1:]:
            for row in self.rows:
                if row.state == state:
                    return f"next: {row.exercise.name} (about {row.exercise.minutes} minutes)"
        number = STEMS.index(self.stem) + 2  # of the next chapter; the first has the number 1
        last = "that was the last chapter"
        after = f"chapter {number}" if number <= len(STEMS) else last
        if self.stem not in MILESTONES:
            return after if after == last else f"next: {after}"
        train = f"attncourse assemble, attncourse milestone {MILESTONES[self.stem]}"
        return f"next: train a model made of your parts ({train}); then {after}"

    def __repr__(self) -> str:
        """Return what a saved notebook holds as plain text."""
        return str(self)

    def __str__(self) -> str:
        """Return the table as text: a line for each exercise and question, and what is next."""
        names = [*(row.exercise.name for row in self.rows), *self.questions]
        width = max(map(len, names), default=0)
        lines = [
            f"{MARK_OF_STATE[row.state]} {row.exercise.name:{width}}  "
            f"{row.earned:2} of {row.exercise.points:2}  {row.said}".rstrip()
            for row in self.rows
        ]
        lines += [f"{mark} {name:{width}}  {text}" for mark, name, text in self.question_rows]
        return "\n".join([self.summary, *lines, self.hidden_tests, self.next_step])

    def _repr_html_(self) -> str:
        """Return the table as HTML, for a notebook."""
        rows = "".join(row_html(row) for row in self.rows)
        rows += "".join(question_html(*about) for about in self.question_rows)
        return (
            '<div class="attncourse-progress" style="max-width:46em;line-height:1.45">'
            f"<strong>{escape(self.summary)}</strong>"
            f'<table style="border-collapse:collapse;margin:.4em 0">{rows}</table>'
            f'<div style="opacity:.8;font-size:90%">{escape(self.hidden_tests)}</div>'
            f"<div>{escape(self.next_step)}</div></div>"
        )


def hidden_tests_sentence(exercises: int) -> str:
    """Return a sentence on the points of so many exercises' hidden tests."""
    more = points_in_words(HIDDEN_POINTS * exercises).replace(" ", " more ")
    return f"{more} for tests that are run only when your notebook is graded."


def progress_of(stem: str, exercises: Iterable[Exercise]) -> ChapterProgress:
    """Return the progress table of a chapter's exercises in this session."""
    cell_runs = cells_here()
    answered = cell_runs.answered_questions() if cell_runs else None
    return ChapterProgress(
        stem, tuple(progress_row(e, last_verdicts.get(e.target)) for e in exercises), answered
    )


def question_html(mark: str, name: str, text: str) -> str:
    """Return the HTML of the table's row on a question that a person marks."""
    description = f'<div style="padding-left:1.4em;opacity:.8">{inline_html(text)}</div>'
    content = f"{mark}&nbsp;<code>{escape(name)}</code>{description}"
    return f'<tr><td colspan="2" style="{CELL_STYLE}">{content}</td></tr>'


def progress_row(exercise: Exercise, verdict: Verdict | None) -> ProgressRow:
    """Return the table's row on an exercise; its newest verdict is None if no check has run."""
    if verdict is None:  # its cell may have failed, or the check be deleted
        return ProgressRow(exercise, OPEN, 0, "no check of it has run")
    if verdict.state == OPEN:
        return ProgressRow(
            exercise, OPEN, 0, verdict.in_short if verdict.unjudged else NOT_ATTEMPTED
        )
    line = verdict.condition.removeprefix(", ") if verdict.passed else verdict.in_short
    return ProgressRow(exercise, verdict.state, verdict.earned, line)


def row_html(row: ProgressRow) -> str:
    """Return the HTML of an exercise's row: two columns, to fit on a phone, texts below names."""
    name = f"{MARK_OF_STATE[row.state]}&nbsp;<code>{escape(row.exercise.name)}</code>"
    line_below = f'<div style="padding-left:1.4em;opacity:.8">{inline_html(row.said)}</div>'
    cells = (
        name + (line_below if row.said else ""),
        f"{row.earned}&nbsp;of&nbsp;{row.exercise.points}",
    )
    return "<tr>" + "".join(f'<td style="{CELL_STYLE}">{cell}</td>' for cell in cells) + "</tr>"
