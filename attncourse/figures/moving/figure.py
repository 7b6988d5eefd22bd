"""The parts of every moving figure: a first state, its numbers, a script that computes."""

import json
import re
from html import escape

from attncourse.figures.theme import has, modes, read_asset


class Moving:
    """A figure that the reader moves; a self-contained piece of HTML, equal for equal arguments.

    name: of the script ``<name>.js`` in this folder, the body of a function that gets ``root`` (the
    figure's element), ``data`` and what ``moving.js`` defines. It fills ``.am-stage``, and puts
    ``root.compute`` there: from inputs to outputs as plain arrays, which tests hold against the
    package. title: what the figure is called. body: its first state, as HTML, which stands where no
    script runs and on paper. moves: a sentence that says there what would move. data: numbers for
    the script. says: the sentence that goes with the first state, which the script replaces.
    before: scripts of this folder that its own script stands on.
    Style sheets ``<name>.css`` of these, where there are any, come along.
    """

    def __init__(
        self, name: str, title: str, body: str, moves: str, data: dict, says: str = "", before=()
    ):
        """Make a figure that a script draws from ``data``.

        ``body`` is its HTML before that, ``moves`` says what a reader can move.
        """
        self.name, self.title, self.body, self.moves, self.data = name, title, body, moves, data
        self.says = says.replace(" %", "\u00a0%")  # as the scripts say it: no line ends there
        self.before = before

    def __repr__(self) -> str:
        """Return what a saved notebook holds as plain text."""
        return f"moving figure: {self.title}. {self.moves}"

    def _repr_html_(self) -> str:
        style = (
            modes("attncourse-moving") + read_asset("moving/moving.css") + read_asset("diagram.css")
        )
        names = (*self.before, self.name)
        sheets = [f"moving/{name}.css" for name in names]
        style = lean_sheet(style + "".join(read_asset(sheet) for sheet in sheets if has(sheet)))
        scripts = "\n".join(lean(read_asset(f"moving/{name}.js")) for name in names)
        script = (
            f"(() => {{\n{lean(read_asset('moving/moving.js'))}\n"
            f"const begin = (root, data) => {{\n{scripts}\n}};\n"
            f"start({json.dumps(self.name)}, begin);\n}})();"
        )
        return (
            f'<div class="attncourse-moving tex2jax_ignore mathjax_ignore" role="group" '
            f'data-figure="{self.name}" aria-label="{escape(self.title)}"><style>{style}</style>'
            f'<p class="am-title">{escape(self.title)}</p><div class="am-stage">{self.body}</div>'
            f'<p class="am-say" role="status">{escape(self.says)}</p>'
            f'<p class="am-still">{escape(self.moves)}</p>'
            f'<script type="application/json">{self.json()}</script><script>{script}</script></div>'
        )

    def json(self) -> str:
        """Return the numbers for the script, as JSON that is safe inside ``<script>``."""
        text = json.dumps(self.data, separators=(",", ":"), allow_nan=False)  # ASCII only
        return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def lean(script: str) -> str:
    """Return a script as pages carry it: without indentation and lines that are comments."""
    lines = map(str.strip, script.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith(("//", "/*")))


def lean_sheet(sheet: str) -> str:
    """Return a style sheet as pages carry it: without indentation and spare blanks."""
    squeezed = re.sub(r"\s*([{};,])\s*|(?<=[\w-]:)\s+", r"\1", sheet)
    return re.sub(r"(?<=[{};])& (?=[.:[])", "", squeezed).replace(";}", "}")  # & is implied there
