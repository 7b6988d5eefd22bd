"""The verdict on an answer: what holds, what does not, and what the student did."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from html import escape

import numpy as np

from attncourse.checks.exercise import Mistake

MARK_STATES = ("done", "tried", "open")  # of an exercise, the better one first
DONE, TRIED, OPEN = MARK_STATES
NOT_ATTEMPTED = "not attempted"
FRAME_HTML = (
    '<div class="attncourse-verdict" style="border-left:4px solid {};'
    'padding:.4em .9em;margin:.4em 0;max-width:46em;line-height:1.45">'
)
IN_FULL = "In full: "
LOOKS_LIKE = "What it looks like"
COLOUR_OF_WRONG = "#b4541a"
PRINTING_NOTE = "Your code prints. A check, which calls it many times, does not show that."
FOLLOWS = "follows from the above"
KEEPS_HALF = "keeps half of its points"
MAX_TEXT_LINES = 16  # of a verdict as text, unless all of it is asked for


@dataclass(frozen=True)
class CriterionVerdict:
    """The result of one criterion: passed or not, and on which call it failed and how.

    ``message`` shows the call and both results, ``brief`` says in one line what is wrong. It
    ``waits`` where it holds and earns nothing yet, for the reason that ``brief`` says. It
    ``follows`` where it fails for no other reason than the mistake that the verdict names.
    """

    name: str
    passed: bool
    earned: int
    possible: int
    message: str = ""
    brief: str = ""
    waits: bool = False
    follows: bool = False

    @property
    def said(self) -> str:
        """Return one line that says what is wrong."""
        return FOLLOWS if self.follows else self.brief

    @property
    def mark(self) -> str:
        """Return the sign in front of the criterion's line."""
        return "✓" if self.passed else "–" if self.waits else "✗"


@dataclass(frozen=True)
class Picture:
    """A returned matrix and the expected one."""

    got: np.ndarray
    want: np.ndarray


@dataclass(frozen=True)
class Verdict:
    """The result of ``examine``. Prints as text, shows as HTML in a notebook.

    ``diagnosis`` is the mistake that was recognised; where none was, ``symptom`` may say what the
    result has to do with the right one. Mending the mistake earns ``worth`` points, and ``rest``
    is what is wrong then. ``example`` is the smallest case that fails. ``read`` and ``guide`` are
    the addresses of the section and of the field guide's entry on the mistake. ``unjudged`` says
    why there was nothing to judge, and ``to_do`` what to do then. ``note`` says what a check did
    with the answer's cell.
    """

    target: str
    criteria: tuple[CriterionVerdict, ...]
    seed: int
    section: str = ""
    diagnosis: Mistake | None = None
    symptom: str = ""
    rest: str = ""
    worth: int = 0
    example: str = ""
    picture: Picture | None = None
    variant: str = ""
    unwritten: bool = False  # nothing but ``raise NotImplementedError()``
    read: str = ""
    guide: str = ""
    printed: bool = False  # whether the answer prints, which nobody is shown
    given: tuple[str, ...] = ()  # wrong answers that it calls, and which were ours for this verdict
    unjudged: str = ""
    to_do: str = ""
    note: str = ""  # what was done with its cell that the cell itself did not do

    @property
    def passed(self) -> bool:
        """True if every criterion holds."""
        return all(criterion.passed for criterion in self.criteria)

    @property
    def earned(self) -> int:
        """Return the points of all criteria together."""
        return sum(criterion.earned for criterion in self.criteria)

    @property
    def possible(self) -> int:
        """Return the points that a right answer earns."""
        return sum(criterion.possible for criterion in self.criteria)

    @property
    def state(self) -> str:
        """Return the state of the exercise: done, tried, or open (not attempted)."""
        return DONE if self.passed else OPEN if self.unwritten else TRIED

    @property
    def in_short(self) -> str:
        """Return one line: the mistake, else the symptom, else the first thing that is wrong."""
        if self.unjudged:
            return f"not judged: {re.split('[:;]', self.unjudged)[0]}"
        text = self.diagnosis.name if self.diagnosis else self.symptom or self.reason
        return (text.splitlines() or [""])[0]

    @property
    def score(self) -> str:
        """Return the points in words: ``3 of 5 points``."""
        return f"{self.earned} of {points_in_words(self.possible)}"

    @property
    def provided(self) -> str:
        """On what condition it holds: with our own answers in place of wrong ones that it calls."""
        return given_right(self.given)

    @property
    def reason(self) -> str:
        """Return the first thing that is wrong, in one line."""
        return next((c.brief for c in self.criteria if not c.passed), "")

    @property
    def again(self) -> str:
        """Return the call that repeats this verdict, number for number."""
        variant = f', variant="{self.variant}"' if self.variant else ""
        return f'examine("{self.target}", {self.target.split(".")[1]}, seed={self.seed}{variant})'

    @property
    def remainder(self) -> str:
        """Return a sentence on what is left to do once the mistake is mended."""
        if not self.diagnosis or not self.rest:
            return ""
        lost = self.possible - self.earned
        worth = (
            f"That is worth {self.worth} of the {points_in_words(lost)} lost"
            if self.worth
            else ("That alone earns no point yet")
        )
        return f"{worth}; what is left after it: {self.rest}."

    @property
    def told(self) -> list[str]:
        """Return the lines that say what happened, by the mistake's name or by its symptom."""
        if self.diagnosis:
            head = f"What happened: {sentence(self.diagnosis.name)}"
            return [x for x in (head, self.diagnosis.explanation, self.remainder) if x]
        return [f"{LOOKS_LIKE}: {self.symptom}."] if self.symptom else []

    @property
    def to_write(self) -> str:
        """Return the sentence for an answer that is not written yet."""
        return "Replace `raise NotImplementedError()` by your code."

    def __repr__(self) -> str:
        """Return what a saved notebook holds as plain text."""
        return str(self)  # what a saved notebook holds as plain text

    def __str__(self) -> str:
        """Return the whole verdict as text."""
        if self.unjudged:
            head = f"{'○' if self.unwritten else '✗'} {self.target}: not judged ({self.score})"
            return "\n".join([head, f"  {sentence(self.unjudged)}", f"  {self.to_do}"])
        if self.unwritten:
            lines = [f"○ {self.target}: {NOT_ATTEMPTED} ({self.score})", f"  {self.to_write}"]
            if self.section:
                lines.append(f"  {self.section} explains it.")
            return "\n".join(lines + ([f"  {self.read}"] if self.read else []))
        lines = [f"{'✓' if self.passed else '✗'} {self.target}: {self.score}{self.provided}"]
        if self.note:
            lines.append(f"  {self.note}")
        if self.passed:
            return "\n".join(
                lines + [f"  ✓ {c.name} ({c.earned}/{c.possible})" for c in self.criteria]
            )
        shown = [f"    {line}" for line in self.example.splitlines()]
        end = [PRINTING_NOTE] if self.printed else []
        if self.section:
            end.append(f"Read again: {self.section}.")
        if self.read:
            end.append(f"  {self.read}")
        if not self.given:
            end.append(f"{IN_FULL}print({self.again}.full)")
        room = MAX_TEXT_LINES - len(lines) - len(self.told) - len(shown) - len(end)
        return "\n".join([*lines, *self.told, *self.criteria_in(max(room, 3)), *shown, *end])

    def criteria_in(self, room: int) -> list[str]:
        """Return the criteria in at most so many lines, or three: what fails first.

        What only follows is one line: it keeps points together, and not each its own.
        """
        failed = [c for c in self.criteria if not c.passed and not c.waits]
        at_fault = [c for c in failed if not c.follows]
        alike = [c for c in at_fault[1:] if fail_alike(c, failed[0])]
        joined = []
        if len(alike) > 1:
            said = f"the same error ({criteria_points(alike)})"
            joined.append(f"  ✗ {said}: {criterion_names(alike)}")
            at_fault = [c for c in at_fault if c not in alike]
        if self.following:
            joined.append(f"  ✗ {self.consequence}: {criterion_names(self.following)}")
        waiting = [c for c in self.criteria if c.waits]  # all of them for the same reason
        if waiting:
            joined.append(f"  – {waiting[0].brief}: {criterion_names(waiting)}")
        if held := [c for c in self.criteria if c.passed]:
            joined.append(f"  ✓ {criterion_names(held)}")
        room = max(room - len(joined), 1)
        lines = [f"  ✗ {criterion_with_points(c)}" for c in at_fault]
        lines[1:] = [
            f"{line}: {'the same error' if fail_alike(c, failed[0]) else cut_to_line(c.said)}"
            for line, c in zip(lines[1:], at_fault[1:], strict=True)
        ]
        if len(lines) > room:
            last = " · ".join(criterion_with_points(c) for c in at_fault[room - 1 :])
            lines = [*lines[: room - 1], f"  ✗ {last}"]
        return lines + joined

    @property
    def following(self) -> list[CriterionVerdict]:
        """The criteria that fail only because of the mistake that is named."""
        return [c for c in self.criteria if c.follows]

    @property
    def consequence(self) -> str:
        """The sentence on the criteria that only follow, with the points that they keep."""
        half = f" and {KEEPS_HALF}" if self.kept_half else ""
        return f"{FOLLOWS}{half} ({criteria_points(self.following)})"

    @property
    def kept_half(self) -> str:
        """The sentence on the points that what only follows keeps; "" where it keeps none."""
        points = [(c.earned, c.possible) for c in self.following]
        earned_points = sum(earned for earned, _ in points)
        of_all = sum(possible for _, possible in points)
        return (
            f"What only follows {KEEPS_HALF}, {earned_points} of {of_all}." if earned_points else ""
        )

    @property
    def full(self) -> str:
        """Return the verdict with the first case that fails of every criterion."""
        if self.unwritten or self.unjudged:
            return str(self)
        lines = [f"{'✓' if self.passed else '✗'} {self.target}: {self.score}", *self.told]
        for c in self.criteria:
            lines.append(f"  {c.mark} {c.name} ({c.earned}/{c.possible})")
            if c.follows:
                lines[-1] += f": {FOLLOWS}"
            lines += ["      " + line for line in c.message.splitlines()]
        if self.kept_half:
            lines.append(self.kept_half)
        if not self.passed:
            if self.printed:
                lines.append(PRINTING_NOTE)
            lines += ["", f"Read again: {self.section}.", *filter(None, (self.read, self.guide))]
            if not self.given:
                lines.append(f"The same numbers again: {self.again}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        if self.unjudged:
            colour, mark = ("#808080", "○") if self.unwritten else (COLOUR_OF_WRONG, "✗")
            return (
                f"{FRAME_HTML.format(colour)}<div><strong>{mark} "
                f"<code>{escape(self.target)}</code> · not judged</strong> ({self.score})</div>"
                f"<div>{inline_html(sentence(self.unjudged))}</div>"
                f"<div>{inline_html(self.to_do)}</div></div>"
            )
        if self.unwritten:
            head = f"○ <code>{escape(self.target)}</code> · {NOT_ATTEMPTED}"
            hint = (
                f"{inline_html(self.to_write)} {linked_text(self.read, self.section)} explains it."
            )
            return (
                f"{FRAME_HTML.format('#808080')}<div><strong>{head}</strong> ({self.score})</div>"
                f"<div>{hint}</div></div>"
            )
        colour = "#1a7f5a" if self.passed else COLOUR_OF_WRONG
        first = next((c for c in self.criteria if not c.passed), None)
        rows = "".join(criterion_html(c, is_open=c is first) for c in self.criteria)
        parts = [
            FRAME_HTML.format(colour),
            f"<div><strong>{'✓' if self.passed else '✗'} <code>{escape(self.target)}</code>"
            f" · {self.score}{escape(self.provided)}</strong></div>",
        ]
        if self.note:
            parts.append(f'<div style="opacity:.8">{inline_html(sentence(self.note))}</div>')
        if self.diagnosis:
            more = f" {linked_text(self.guide, 'More in the field guide')}." if self.guide else ""
            parts.append(
                '<p style="margin:.5em 0">'
                f"<strong>{escape(sentence(self.diagnosis.name))}</strong> "
                f"{inline_html(self.diagnosis.explanation)}{more}</p>"
            )
            if self.remainder:
                parts.append(f'<p style="margin:.5em 0">{inline_html(self.remainder)}</p>')
        elif self.symptom:
            parts.append(
                f'<p style="margin:.5em 0">What it looks like: {inline_html(self.symptom)}.</p>'
            )
        if self.picture:
            parts.append(picture_html(self.picture))
        parts.append(f'<ul style="list-style:none;padding:0;margin:.3em 0">{rows}</ul>')
        if self.kept_half:
            parts.append(f'<div style="opacity:.8">{self.kept_half}</div>')
        if not self.passed:
            prints = f"{PRINTING_NOTE} " if self.printed else ""
            numbers = f" The same numbers again: <code>{escape(self.again)}</code>"
            parts.append(
                f'<div style="opacity:.8;font-size:90%">{prints}Read again: '
                f"{linked_text(self.read, self.section)}.{'' if self.given else numbers}</div>"
            )
        return "".join(parts) + "</div>"


class CheckFailed(AssertionError):
    """Raised by ``check`` for a wrong answer. Its text is the verdict; no traceback is shown.

    It says whether the verdict is ``displayed``, and what of it was ``said`` already.
    """

    def __init__(self, verdict: Verdict, displayed: bool = False, said: str = ""):
        """Keep the verdict; ``said`` is the line that was printed before it was whole."""
        super().__init__(str(verdict))
        self.verdict = verdict
        self.displayed = displayed
        self.said = said

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython prints in place of a traceback."""
        if self.displayed:
            return [f"{self.verdict.target}: {self.verdict.score}. The verdict is above."]
        first, *rest = str(self).splitlines()
        return rest if rest and first == self.said else [first, *rest]


def linked_text(address: str, text: str) -> str:
    """Return the text as HTML, as a link where there is an address."""
    return f'<a href="{escape(address)}">{escape(text)}</a>' if address else escape(text)


def given_right(names: Collection[str]) -> str:
    """Return the condition in words, behind what holds on it."""
    return f", given a right {' and '.join(names)}" if names else ""


def criterion_names(criteria: Collection[CriterionVerdict]) -> str:
    """Return the names of criteria in one line."""
    return " · ".join(c.name for c in criteria)


def criteria_points(criteria: Collection[CriterionVerdict]) -> str:
    """Return the points that criteria earn together, of those that they are worth."""
    return f"{sum(c.earned for c in criteria)}/{sum(c.possible for c in criteria)}"


def criterion_with_points(criterion: CriterionVerdict) -> str:
    """Return a criterion's name, with its points."""
    return f"{criterion.name} ({criterion.earned}/{criterion.possible})"


def cut_to_line(text: str, columns: int = 90) -> str:
    """Return the text, as far as it fits in a line."""
    return text if len(text) <= columns else text[: columns - 1] + "…"


def fail_alike(first_criterion: CriterionVerdict, second_criterion: CriterionVerdict) -> bool:
    """True if two criteria fail with one exception, in one line, whatever the sizes there."""
    sizeless, other = (re.sub(r"\d+", "", c.brief) for c in (first_criterion, second_criterion))
    if sizeless == other and "returned" not in sizeless:
        return True
    raised = r"raised (\w+): .*\(in the line `(.*?)`"
    first, second = (
        re.search(raised, first_criterion.brief),
        re.search(raised, second_criterion.brief),
    )
    return first is not None and second is not None and first.groups() == second.groups()


def points_in_words(number: int) -> str:
    """Return a number of points with its unit."""
    return "1 point" if number == 1 else f"{number} points"


def inline_html(text: str) -> str:
    """Return a plain text as HTML; `code` in backquotes stays in one line if it is short."""
    pieces = text.split("`")
    whole = [
        (' style="white-space:nowrap"' if len(piece) <= MAX_INLINE_LETTERS else "")
        for piece in pieces
    ]
    return "".join(
        f"<code{style}>{escape(piece)}</code>" if i % 2 else escape(piece)
        for i, (piece, style) in enumerate(zip(pieces, whole, strict=True))
    )


def sentence(text: str) -> str:
    """Return the text as a sentence. A name in front, `d_k` or x, stays as it is written."""
    word = re.match(r"(a|[a-z]{2,})(?![\w(=.])", text)
    return f"{text[0].upper() if word else text[0]}{text[1:]}."


MAX_INLINE_LETTERS = 24  # letters of code
MESSAGE_STYLE = (
    "white-space:pre-wrap;word-break:normal;overflow-wrap:normal;overflow-x:auto;"
    "font-family:monospace;"
    "margin:.2em 0 .4em 1.4em;"
    "padding:.4em;border:1px solid rgba(128,128,128,.4);background:transparent;color:inherit"
)


def criterion_html(c: CriterionVerdict, is_open: bool) -> str:
    """Return one criterion; what went wrong is folded unless it is the first to read."""
    head = f"{c.mark} {escape(c.name)} <span style='opacity:.7'>{c.earned}/{c.possible}</span>"
    if c.follows:
        head += f" <em>{FOLLOWS}</em>"
    if not c.message:
        return f"<li>{head}</li>"
    state = " open" if is_open else ""
    return (
        f"<li><details{state}><summary>{head}</summary>"
        f'<pre style="{MESSAGE_STYLE}">{escape(c.message)}</pre></details></li>'
    )


def picture_html(picture: Picture) -> str:
    """Return the two matrices as shaded tables, side by side, on one scale.

    Where they would look the same, what is too much or too little stands beside them.
    """
    top = float(np.nanmax(np.abs(np.where(np.isfinite(picture.want), picture.want, 0)))) or 1.0
    shown = [matrix_html("yours", picture.got, top), matrix_html("expected", picture.want, top)]
    if matrix_cells(picture.got, top) == matrix_cells(picture.want, top):
        differences = picture.got.astype(float) - picture.want.astype(float)
        most = float(np.abs(differences[np.isfinite(differences)]).max(initial=0)) or 1.0
        shown.append(matrix_html("yours − expected", differences, most))
    return (
        '<div style="display:flex;flex-wrap:wrap;gap:1.5em;margin:.5em 0">'
        + "".join(shown)
        + "</div>"
    )


def matrix_cells(matrix: np.ndarray, top: float) -> list[list[str]]:
    """Return a matrix as texts, rounded as its largest number needs."""
    return [[short_number(x, top) for x in row] for row in matrix]


def matrix_html(title: str, matrix: np.ndarray, top: float) -> str:
    """Return a matrix as a small table, each cell shaded by its number."""
    rows = "".join("<tr>" + "".join(cell_html(x, top) for x in row) + "</tr>" for row in matrix)
    return (
        '<table style="border-collapse:collapse;font-size:80%">'
        f'<caption style="white-space:nowrap">{title} '
        f"{matrix.shape[0]} × {matrix.shape[1]}</caption>{rows}</table>"
    )


def cell_html(x: float, top: float) -> str:
    """Return one entry: its number, on a blue as strong as the entry is large."""
    strength = min(abs(float(x)) / top, 1.0) if np.isfinite(x) else 0.0
    return (
        f'<td style="padding:.1em .35em;text-align:right;border:1px solid rgba(128,128,128,.35);'
        f'background:rgba(0,84,147,{0.55 * strength:.2f})">{short_number(x, top)}</td>'
    )


def short_number(x: float, top: float) -> str:
    """Return an entry in two digits; what is left of a rounding is 0 beside the largest entry."""
    return "0" if abs(float(x)) < 1e-9 * top else f"{float(x):.2g}"
