"""The display of a check: the points once they are final, then the whole verdict in their place."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any

from attncourse.checks.showing.verdict import FRAME_HTML, Verdict
from attncourse.support.output import write_line

LOOKING = "looking for what happened …"


@dataclass(frozen=True)
class Begun:
    """The first line of a verdict, as long as there is no more."""

    verdict: Verdict

    @property
    def head(self) -> str:
        """Return the verdict's first line, which has the points."""
        return str(self.verdict).splitlines()[0]

    def __repr__(self) -> str:
        """Return what a saved notebook holds as plain text."""
        return f"{self.head}\n{LOOKING}"

    def _repr_html_(self) -> str:
        lines = f"<div><strong>{escape(self.head)}</strong></div><div>{LOOKING}</div>"
        return FRAME_HTML.format("#b4541a") + lines + "</div>"


class VerdictDisplay:
    """The place where one check shows its verdict: a display in a notebook, or standard output.

    ``show`` displays something in a notebook, and gives nothing where there is none. ``said`` is
    the line that was printed.
    """

    def __init__(self, show: Callable[..., Any]):
        """Begin with nothing shown."""
        self.show = show
        self.out = sys.stdout  # while an answer runs, another takes its place
        self.display: Any = None
        self.said = ""

    def begin(self, verdict: Verdict) -> None:
        """Show the first line."""
        begun = Begun(verdict)
        self.display = self.show(begun, display_id=True)
        if not self.display:
            self.said = begun.head
            write_line(self.said, self.out)

    def end(self, verdict: Verdict) -> bool:
        """Put the verdict in the place of its first line; return whether it is displayed."""
        if not self.display:
            return bool(self.show(verdict))
        self.display.update(verdict)
        return True
