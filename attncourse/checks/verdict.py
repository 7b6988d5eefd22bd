"""The verdict on an answer: what holds, what does not, and what the student did."""

import re
from dataclasses import dataclass
from html import escape

import numpy as np

from attncourse.checks.exercise import Misconception


@dataclass(frozen=True)
class CriterionVerdict:
    """Whether one criterion holds, and if not, on which call it failed and how."""

    name: str
    passed: bool
    earned: int
    possible: int
    message: str


@dataclass(frozen=True)
class Picture:
    """A returned matrix and the expected one."""

    got: np.ndarray
    want: np.ndarray


@dataclass(frozen=True)
class Verdict:
    """What ``examine`` found. Prints as text, shows as HTML in a notebook."""

    target: str
    criteria: tuple[CriterionVerdict, ...]
    diagnosis: Misconception | None
    seed: int
    section: str = ""
    picture: Picture | None = None

    @property
    def passed(self) -> bool:
        return all(criterion.passed for criterion in self.criteria)

    @property
    def earned(self) -> int:
        return sum(criterion.earned for criterion in self.criteria)

    @property
    def possible(self) -> int:
        return sum(criterion.possible for criterion in self.criteria)

    @property
    def score(self) -> str:
        return f"{self.earned} of {points(self.possible)}"

    @property
    def again(self) -> str:
        """The call that repeats this verdict, number for number."""
        return f'examine("{self.target}", {self.target.split(".")[1]}, seed={self.seed})'

    def __str__(self) -> str:
        lines = [f"{'✓' if self.passed else '✗'} {self.target}: {self.score}"]
        told = ""  # the first failure in full, the others in a line, the same ones not again
        for c in self.criteria:
            lines.append(f"  {'✓' if c.passed else '✗'} {c.name} ({c.earned}/{c.possible})")
            if c.message and not told:
                lines += ["      " + line for line in c.message.splitlines()]
                told = c.message.splitlines()[-1]
            elif c.message and not c.message.endswith(told):
                lines.append("      " + brief(c.message))
        if self.diagnosis:
            lines += [
                "",
                f"What happened: {sentence(self.diagnosis.name)}",
                self.diagnosis.explanation,
            ]
        if not self.passed:
            lines += ["", f"Read again: {self.section}.", f"The same numbers again: {self.again}"]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        colour = "#1a7f5a" if self.passed else "#b4541a"
        first = next((c for c in self.criteria if not c.passed), None)
        rows = "".join(criterion_html(c, is_open=c is first) for c in self.criteria)
        parts = [
            f'<div class="attncourse-verdict" style="border-left:4px solid {colour};'
            'padding:.4em .9em;margin:.4em 0;max-width:46em;line-height:1.45">',
            f"<div><strong>{'✓' if self.passed else '✗'} <code>{escape(self.target)}</code>"
            f" · {self.score}</strong></div>",
        ]
        if self.diagnosis:
            parts.append(
                '<p style="margin:.5em 0">'
                f"<strong>{escape(sentence(self.diagnosis.name))}</strong> "
                f"{inline(self.diagnosis.explanation)}</p>"
            )
        if self.picture:
            parts.append(picture_html(self.picture))
        parts.append(f'<ul style="list-style:none;padding:0;margin:.3em 0">{rows}</ul>')
        if not self.passed:
            parts.append(
                f'<div style="opacity:.8;font-size:90%">Read again: {escape(self.section)}. '
                f"The same numbers again: <code>{escape(self.again)}</code></div>"
            )
        return "".join(parts) + "</div>"


class CheckFailed(AssertionError):
    """Raised by ``check`` for a wrong answer. Its text is the verdict; no traceback is shown."""

    def __init__(self, verdict: Verdict, displayed: bool = False):
        super().__init__(str(verdict))
        self.verdict = verdict
        self.displayed = displayed

    def _render_traceback_(self) -> list[str]:
        """What IPython prints in place of a traceback."""
        if self.displayed:
            return [f"{self.verdict.target}: {self.verdict.score}. The verdict is above."]
        return str(self).splitlines()


def points(number: int) -> str:
    return "1 point" if number == 1 else f"{number} points"


def brief(message: str) -> str:
    """A message in one line: the call, and what came of it."""
    lines = message.splitlines()
    call = lines[0].removesuffix(", where")
    told = next((x.rstrip() for x in lines[1:] if x.startswith((*VERBS, *PARTS))), "")
    if told == "returned":  # followed by the whole array
        told = "returned other numbers"
    if told.startswith(PARTS) and told.endswith(":"):
        told += " other numbers"
    told = told.removesuffix(":")
    return f"{call}: {told}" if told else call


PARTS = ("the output:", "the gradient of ")  # of what a module or a function with gradients gives
VERBS = (
    *(
        "returned",
        "raised",
        "did not",
        "not tried",
        "not written",
        "changed",
        "at [",
        "row",
        "counts",
    ),
    *("your module", "no gradient", "called", "built"),
)


def inline(text: str) -> str:
    """Plain text as HTML, with `code` in backquotes."""
    pieces = escape(text).split("`")
    return "".join(f"<code>{p}</code>" if i % 2 else p for i, p in enumerate(pieces))


def sentence(text: str) -> str:
    """The text as a sentence. A name in front, `d_k` or x, stays as it is written."""
    word = re.match(r"(a|[a-z]{2,})(?![\w(=.])", text)
    return f"{text[0].upper() if word else text[0]}{text[1:]}."


MESSAGE_STYLE = (
    "white-space:pre-wrap;overflow-wrap:anywhere;font-family:monospace;margin:.2em 0 .4em 1.4em;"
    "padding:.4em;border:1px solid rgba(128,128,128,.4);background:transparent;color:inherit"
)


def criterion_html(c: CriterionVerdict, is_open: bool) -> str:
    """One criterion; what went wrong is folded unless it is the first to read."""
    mark = "✓" if c.passed else "✗"
    head = f"{mark} {escape(c.name)} <span style='opacity:.7'>{c.earned}/{c.possible}</span>"
    if not c.message:
        return f"<li>{head}</li>"
    state = " open" if is_open else ""
    return (
        f"<li><details{state}><summary>{head}</summary>"
        f'<pre style="{MESSAGE_STYLE}">{escape(c.message)}</pre></details></li>'
    )


def picture_html(picture: Picture) -> str:
    """The two matrices as shaded tables, side by side, on one scale."""
    top = float(np.nanmax(np.abs(np.where(np.isfinite(picture.want), picture.want, 0)))) or 1.0
    return (
        '<div style="display:flex;flex-wrap:wrap;gap:1.5em;margin:.5em 0">'
        + matrix_html("yours", picture.got, top)
        + matrix_html("expected", picture.want, top)
        + "</div>"
    )


def matrix_html(title: str, matrix: np.ndarray, top: float) -> str:
    rows = "".join("<tr>" + "".join(cell_html(x, top) for x in row) + "</tr>" for row in matrix)
    return (
        f'<table style="border-collapse:collapse;font-size:80%"><caption>{title} '
        f"{matrix.shape[0]} × {matrix.shape[1]}</caption>{rows}</table>"
    )


def cell_html(x: float, top: float) -> str:
    """One entry: its number, on a blue as strong as the entry is large, readable in both modes."""
    strength = min(abs(float(x)) / top, 1.0) if np.isfinite(x) else 0.0
    return (
        f'<td style="padding:.1em .35em;text-align:right;border:1px solid rgba(128,128,128,.35);'
        f'background:rgba(0,84,147,{0.55 * strength:.2f})">{short_number(x, top)}</td>'
    )


def short_number(x: float, top: float) -> str:
    """An entry in two digits; what is left of a rounding is 0 beside the largest entry."""
    return "0" if abs(float(x)) < 1e-9 * top else f"{float(x):.2g}"
