"""The display of a check: the points once they are final, then the whole verdict in their place."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any

from attncourse.checks.showing.verdict import FRAME_HTML, Verdict
from attncourse.support.output import write_line

SEARCHING_NOTE = "looking for what happened …"


@dataclass(frozen=True)
class FirstLine:
    """The first line of a verdict, shown while the cause is still searched for."""

    verdict: Verdict

    @property
    def head(self) -> str:
        """Return the verdict's first line, which has the points."""
        return str(self.verdict).splitlines()[0]

    def __repr__(self) -> str:
        """Return the line as plain text, with a note that the search goes on."""
        return f"{self.head}\n{SEARCHING_NOTE}"

    def _repr_html_(self) -> str:
        """Return the line as HTML, with a note that the search goes on."""
        lines = f"<div><strong>{escape(self.head)}</strong></div><div>{SEARCHING_NOTE}</div>"
        return FRAME_HTML.format("#b4541a") + lines + "</div>"


class VerdictDisplay:
    """The place where one check shows its verdict: a display in a notebook, or standard output.

    ``show`` displays something in a notebook and returns its display; outside of one it returns
    None. ``first_line`` is the line that was printed there, "" so far.
    """

    def __init__(self, show: Callable[..., Any]):
        """Begin with nothing shown."""
        self.show = show
        self.out = sys.stdout  # kept, since another stream replaces it while an answer runs
        self.display: Any = None
        self.first_line = ""

    def show_points(self, verdict: Verdict) -> None:
        """Show the first line of a verdict: displayed, or printed outside of a notebook."""
        begun = FirstLine(verdict)
        self.display = self.show(begun, display_id=True)
        if not self.display:
            self.first_line = begun.head
            write_line(self.first_line, self.out)

    def show_verdict(self, verdict: Verdict) -> bool:
        """Display the verdict in place of its first line; return False outside of a notebook."""
        if not self.display:
            return bool(self.show(verdict))
        self.display.update(verdict)
        return True
