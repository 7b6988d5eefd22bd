"""The verdict on an answer, as text and as HTML: criteria, points, and the student's mistake."""

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
FOLLOWS_NOTE = "follows from the above"
KEEPS_HALF = "keeps half of its points"
MAX_TEXT_LINES = 16  # of a verdict as text, unless all of it is asked for


@dataclass(frozen=True)
class CriterionVerdict:
    """The result of one criterion: whether it holds, its points, and how it failed.

    ``message`` shows the call and both results, ``brief`` says in one line what is wrong. A
    criterion that ``waits`` holds and earns nothing yet, for the reason in ``brief``. One that
    ``follows`` fails only because of the mistake that the verdict names.
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
    def reason(self) -> str:
        """Return one line on what is wrong, or that it follows from the mistake."""
        return FOLLOWS_NOTE if self.follows else self.brief

    @property
    def mark(self) -> str:
        """Return the sign in front of the criterion's line."""
        if self.passed:
            return "✓"
        return "–" if self.waits else "✗"


@dataclass(frozen=True)
class Picture:
    """A returned matrix and the expected one, to be drawn side by side."""

    got: np.ndarray
    want: np.ndarray


@dataclass(frozen=True)
class Verdict:
    """The result of ``examine``. Prints as text, shows as HTML in a notebook.

    ``diagnosis`` is the mistake that was recognised; without one, ``symptom`` may say how the
    result differs from the right one. Mending the mistake earns ``worth`` points, and ``rest`` is
    what is wrong then. ``example`` is the smallest case that fails. ``read`` and ``guide`` are the
    web addresses of the section and of the field guide's entry on the mistake. ``unjudged`` says
    why nothing was judged, and ``to_do`` what to do then. ``note`` says how a check ran the
    answer's cell. Texts are "" where there is nothing to say.
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
    printed: bool = False  # whether the answer prints, which a check does not show
    given: tuple[str, ...] = ()  # wrong answers that it calls, replaced by ours for this verdict
    unjudged: str = ""
    to_do: str = ""
    note: str = ""

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
        if self.passed:
            return DONE
        return OPEN if self.unwritten else TRIED

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
    def condition(self) -> str:
        """Return the condition of the verdict, that called answers are right; "" without one."""
        return right_given_words(self.given)

    @property
    def reason(self) -> str:
        """Return in one line what is wrong with the first criterion that fails; "" if none does."""
        return next((c.brief for c in self.criteria if not c.passed), "")

    @property
    def repeating_call(self) -> str:
        """Return the call that repeats this verdict, number for number."""
        variant = f', variant="{self.variant}"' if self.variant else ""
        return f'examine("{self.target}", {self.target.split(".")[1]}, seed={self.seed}{variant})'

    @property
    def rest_sentence(self) -> str:
        """Return a sentence on what is wrong once the mistake is mended; "" if that is nothing."""
        if not self.diagnosis or not self.rest:
            return ""
        worth = "That alone earns no point yet"
        if self.worth:
            points_lost = points_in_words(self.possible - self.earned)
            worth = f"That is worth {self.worth} of the {points_lost} lost"
        return f"{worth}; what is left after it: {self.rest}."

    @property
    def cause_lines(self) -> list[str]:
        """Return the lines on the cause: the mistake and its explanation, or the symptom, or []."""
        if self.diagnosis:
            head = f"What happened: {full_sentence(self.diagnosis.name)}"
            return [x for x in (head, self.diagnosis.explanation, self.rest_sentence) if x]
        return [f"{LOOKS_LIKE}: {self.symptom}."] if self.symptom else []

    @property
    def to_write(self) -> str:
        """Return the sentence for an answer that is not written yet."""
        return "Replace `raise NotImplementedError()` by your code."

    def __repr__(self) -> str:
        """Return what a saved notebook holds as plain text."""
        return str(self)

    def __str__(self) -> str:
        """Return the whole verdict as text."""
        if self.unjudged:
            head = f"{'○' if self.unwritten else '✗'} {self.target}: not judged ({self.score})"
            return "\n".join([head, f"  {full_sentence(self.unjudged)}", f"  {self.to_do}"])
        if self.unwritten:
            lines = [f"○ {self.target}: {NOT_ATTEMPTED} ({self.score})", f"  {self.to_write}"]
            if self.section:
                lines.append(f"  {self.section} explains it.")
            return "\n".join(lines + ([f"  {self.read}"] if self.read else []))
        lines = [f"{'✓' if self.passed else '✗'} {self.target}: {self.score}{self.condition}"]
        if self.note:
            lines.append(f"  {self.note}")
        if self.passed:
            return "\n".join(
                lines + [f"  ✓ {c.name} ({c.earned}/{c.possible})" for c in self.criteria]
            )
        example_lines = [f"    {line}" for line in self.example.splitlines()]
        end = [PRINTING_NOTE] if self.printed else []
        if self.section:
            end.append(f"Read again: {self.section}.")
        if self.read:
            end.append(f"  {self.read}")
        if not self.given:
            end.append(f"{IN_FULL}print({self.repeating_call}.full)")
        room = MAX_TEXT_LINES - len(lines) - len(self.cause_lines) - len(example_lines) - len(end)
        return "\n".join(
            [*lines, *self.cause_lines, *self.criteria_in(max(room, 3)), *example_lines, *end]
        )

    def criteria_in(self, room: int) -> list[str]:
        """Return the criteria as lines, those that fail first, in about ``room`` lines.

        Criteria with one error, those that only follow, those that wait and those that hold take a
        line each together. If there is no room for all others, the last ones share a line.
        """
        failed = [c for c in self.criteria if not c.passed and not c.waits]
        at_fault = [c for c in failed if not c.follows]
        with_same_error = [c for c in at_fault[1:] if is_same_error(c, failed[0])]
        joined = []
        if len(with_same_error) > 1:
            shared_error = f"the same error ({criteria_points(with_same_error)})"
            joined.append(f"  ✗ {shared_error}: {criterion_names(with_same_error)}")
            at_fault = [c for c in at_fault if c not in with_same_error]
        if self.consequences:
            joined.append(f"  ✗ {self.consequences_line}: {criterion_names(self.consequences)}")
        waiting = [c for c in self.criteria if c.waits]  # all of them for the same reason
        if waiting:
            joined.append(f"  – {waiting[0].brief}: {criterion_names(waiting)}")
        if passed := [c for c in self.criteria if c.passed]:
            joined.append(f"  ✓ {criterion_names(passed)}")
        room = max(room - len(joined), 1)
        lines = [f"  ✗ {criterion_with_points(c)}" for c in at_fault]
        for place, criterion in enumerate(at_fault[1:], 1):
            is_same = is_same_error(criterion, failed[0])
            error = "the same error" if is_same else shorten_to_columns(criterion.reason)
            lines[place] += f": {error}"
        if len(lines) > room:
            last = " · ".join(criterion_with_points(c) for c in at_fault[room - 1 :])
            lines = [*lines[: room - 1], f"  ✗ {last}"]
        return lines + joined

    @property
    def consequences(self) -> list[CriterionVerdict]:
        """Return the criteria that fail only because of the mistake that is named."""
        return [c for c in self.criteria if c.follows]

    @property
    def consequences_line(self) -> str:
        """Return a sentence on the criteria that only follow, with the points that they keep."""
        half = f" and {KEEPS_HALF}" if self.kept_half_line else ""
        return f"{FOLLOWS_NOTE}{half} ({criteria_points(self.consequences)})"

    @property
    def kept_half_line(self) -> str:
        """Return a sentence on the points that consequences of the mistake keep; "" for none."""
        earned = sum(c.earned for c in self.consequences)
        possible = sum(c.possible for c in self.consequences)
        return f"What only follows {KEEPS_HALF}, {earned} of {possible}." if earned else ""

    @property
    def full(self) -> str:
        """Return the whole verdict as text, with the first failing case of every criterion."""
        if self.unwritten or self.unjudged:
            return str(self)
        lines = [f"{'✓' if self.passed else '✗'} {self.target}: {self.score}", *self.cause_lines]
        for c in self.criteria:
            lines.append(f"  {c.mark} {c.name} ({c.earned}/{c.possible})")
            if c.follows:
                lines[-1] += f": {FOLLOWS_NOTE}"
            lines += ["      " + line for line in c.message.splitlines()]
        if self.kept_half_line:
            lines.append(self.kept_half_line)
        if not self.passed:
            if self.printed:
                lines.append(PRINTING_NOTE)
            lines += ["", f"Read again: {self.section}.", *filter(None, (self.read, self.guide))]
            if not self.given:
                lines.append(f"The same numbers again: {self.repeating_call}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return the whole verdict as HTML, for a notebook and for a graded student's page."""
        if self.unjudged:
            colour, mark = ("#808080", "○") if self.unwritten else (COLOUR_OF_WRONG, "✗")
            return (
                f"{FRAME_HTML.format(colour)}<div><strong>{mark} "
                f"<code>{escape(self.target)}</code> · not judged</strong> ({self.score})</div>"
                f"<div>{inline_html(full_sentence(self.unjudged))}</div>"
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
            f" · {self.score}{escape(self.condition)}</strong></div>",
        ]
        if self.note:
            parts.append(f'<div style="opacity:.8">{inline_html(full_sentence(self.note))}</div>')
        if self.diagnosis:
            more = f" {linked_text(self.guide, 'More in the field guide')}." if self.guide else ""
            parts.append(
                '<p style="margin:.5em 0">'
                f"<strong>{escape(full_sentence(self.diagnosis.name))}</strong> "
                f"{inline_html(self.diagnosis.explanation)}{more}</p>"
            )
            if self.rest_sentence:
                parts.append(f'<p style="margin:.5em 0">{inline_html(self.rest_sentence)}</p>')
        elif self.symptom:
            parts.append(
                f'<p style="margin:.5em 0">What it looks like: {inline_html(self.symptom)}.</p>'
            )
        if self.picture:
            parts.append(picture_html(self.picture))
        parts.append(f'<ul style="list-style:none;padding:0;margin:.3em 0">{rows}</ul>')
        if self.kept_half_line:
            parts.append(f'<div style="opacity:.8">{self.kept_half_line}</div>')
        if not self.passed:
            prints = f"{PRINTING_NOTE} " if self.printed else ""
            numbers = f" The same numbers again: <code>{escape(self.repeating_call)}</code>"
            parts.append(
                f'<div style="opacity:.8;font-size:90%">{prints}Read again: '
                f"{linked_text(self.read, self.section)}.{'' if self.given else numbers}</div>"
            )
        return "".join(parts) + "</div>"


class CheckFailed(AssertionError):
    """Raised by ``check`` for a wrong answer. Its text is the verdict; no traceback is shown."""

    def __init__(self, verdict: Verdict, displayed: bool = False, said: str = ""):
        """Keep the verdict, and how much of it the student has seen.

        ``displayed`` says that a notebook shows it; ``said`` is the first line if it was printed
        before the rest was known.
        """
        super().__init__(str(verdict))
        self.verdict = verdict
        self.displayed = displayed
        self.said = said

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython prints in place of a traceback: what was not shown yet."""
        if self.displayed:
            return [f"{self.verdict.target}: {self.verdict.score}. The verdict is above."]
        first, *rest = str(self).splitlines()
        return rest if rest and first == self.said else [first, *rest]


def linked_text(address: str, text: str) -> str:
    """Return the text as HTML: a link, or plain if the address is ""."""
    return f'<a href="{escape(address)}">{escape(text)}</a>' if address else escape(text)


def right_given_words(names: Collection[str]) -> str:
    """Return the condition that these called answers are right, to append to a score; or ""."""
    return f", given a right {' and '.join(names)}" if names else ""


def criterion_names(criteria: Collection[CriterionVerdict]) -> str:
    """Return the names of criteria, joined in one line."""
    return " · ".join(c.name for c in criteria)


def criteria_points(criteria: Collection[CriterionVerdict]) -> str:
    """Return earned and possible points of criteria together: ``3/5``."""
    return f"{sum(c.earned for c in criteria)}/{sum(c.possible for c in criteria)}"


def criterion_with_points(criterion: CriterionVerdict) -> str:
    """Return a criterion's name with its points: ``name (0/2)``."""
    return f"{criterion.name} ({criterion.earned}/{criterion.possible})"


def shorten_to_columns(text: str, columns: int = 90) -> str:
    """Return a text, cut with "…" if it has more than so many columns."""
    return text if len(text) <= columns else text[: columns - 1] + "…"


def is_same_error(first_criterion: CriterionVerdict, second_criterion: CriterionVerdict) -> bool:
    """True if two criteria fail with the same error, but for numbers in it.

    That is the same text, unless it tells a returned value, or the same exception in the same line.
    """
    first_text, second_text = (
        re.sub(r"\d+", "", c.brief) for c in (first_criterion, second_criterion)
    )
    if first_text == second_text and "returned" not in first_text:
        return True
    raised = r"raised (\w+): .*\(in the line `(.*?)`"
    first, second = (
        re.search(raised, first_criterion.brief),
        re.search(raised, second_criterion.brief),
    )
    return first is not None and second is not None and first.groups() == second.groups()


def points_in_words(number: int) -> str:
    """Return a number of points in words: "1 point", "2 points"."""
    return "1 point" if number == 1 else f"{number} points"


def inline_html(text: str) -> str:
    """Return a plain text as HTML; `code` in backquotes is not broken if it is short."""
    pieces = []
    for i, piece in enumerate(text.split("`")):
        if i % 2 == 0:  # outside of backquotes
            pieces.append(escape(piece))
            continue
        style = ' style="white-space:nowrap"' if len(piece) <= MAX_INLINE_LETTERS else ""
        pieces.append(f"<code{style}>{escape(piece)}</code>")
    return "".join(pieces)


def full_sentence(text: str) -> str:
    """Return a text with a capital in front and a full stop; a name in front, d_k or x, stays."""
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
    """Return one criterion's HTML; what went wrong is folded unless ``is_open``."""
    head = f"{c.mark} {escape(c.name)} <span style='opacity:.7'>{c.earned}/{c.possible}</span>"
    if c.follows:
        head += f" <em>{FOLLOWS_NOTE}</em>"
    if not c.message:
        return f"<li>{head}</li>"
    state = " open" if is_open else ""
    return (
        f"<li><details{state}><summary>{head}</summary>"
        f'<pre style="{MESSAGE_STYLE}">{escape(c.message)}</pre></details></li>'
    )


def picture_html(picture: Picture) -> str:
    """Return the HTML of the two matrices as shaded tables, side by side, on one scale.

    If their rounded numbers are all the same, their difference stands beside them.
    """
    top = float(np.nanmax(np.abs(np.where(np.isfinite(picture.want), picture.want, 0)))) or 1.0
    matrices = [matrix_html("yours", picture.got, top), matrix_html("expected", picture.want, top)]
    if matrix_cells(picture.got, top) == matrix_cells(picture.want, top):
        differences = picture.got.astype(float) - picture.want.astype(float)
        most = float(np.abs(differences[np.isfinite(differences)]).max(initial=0)) or 1.0
        matrices.append(matrix_html("yours − expected", differences, most))
    return (
        '<div style="display:flex;flex-wrap:wrap;gap:1.5em;margin:.5em 0">'
        + "".join(matrices)
        + "</div>"
    )


def matrix_cells(matrix: np.ndarray, top: float) -> list[list[str]]:
    """Return a matrix's entries as texts; ``top`` is the largest entry of the scale."""
    return [[short_number(x, top) for x in row] for row in matrix]


def matrix_html(title: str, matrix: np.ndarray, top: float) -> str:
    """Return a matrix as a small HTML table, each cell shaded by its share of ``top``."""
    rows = "".join("<tr>" + "".join(cell_html(x, top) for x in row) + "</tr>" for row in matrix)
    return (
        '<table style="border-collapse:collapse;font-size:80%">'
        f'<caption style="white-space:nowrap">{title} '
        f"{matrix.shape[0]} × {matrix.shape[1]}</caption>{rows}</table>"
    )


def cell_html(x: float, top: float) -> str:
    """Return the HTML of one entry: its number, on a blue as strong as its share of ``top``."""
    strength = min(abs(float(x)) / top, 1.0) if np.isfinite(x) else 0.0
    return (
        f'<td style="padding:.1em .35em;text-align:right;border:1px solid rgba(128,128,128,.35);'
        f'background:rgba(0,84,147,{0.55 * strength:.2f})">{short_number(x, top)}</td>'
    )


def short_number(x: float, top: float) -> str:
    """Return an entry in two digits; "0" for a rounding error beside the largest entry, ``top``."""
    return "0" if abs(float(x)) < 1e-9 * top else f"{float(x):.2g}"
