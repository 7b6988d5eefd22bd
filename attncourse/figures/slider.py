"""A slider for a page where a parameter is the point: frames computed ahead, moved by the reader.

The page needs no kernel and no network: what the browser draws from stands in the HTML, together
with one frame drawn already, for a reader without JavaScript and for print.
"""

import io
import json
from collections.abc import Sequence
from html import escape
from string import Template

from matplotlib.figure import Figure

from attncourse.figures.bars import Bars
from attncourse.figures.curves import Curves
from attncourse.figures.matrix import Matrix
from attncourse.figures.svg import HEIGHT, WIDTH, increasing
from attncourse.figures.theme import modes, read_asset

HTML = Template(
    '<div class="attncourse-slider tex2jax_ignore mathjax_ignore" role="group" aria-label="$name">'
    '<style>$css</style><label class="as-control" hidden><span>$name</span>'
    '<input type="range" data-part="at" min="0" max="$last" step="1" value="$start" '
    'autocomplete="off" aria-valuetext="$now. $says"></label>'
    '<div class="as-read"><span class="as-now">$now.</span> '
    '<span class="as-says">$says</span></div>'
    '<div class="as-panels">$panels</div>'
    '<div class="as-note">One of $count pictures, $name from $first to $final. '
    "Where JavaScript runs, a slider leads through them.</div>"
    '<script type="application/json">$data</script><script>$js</script></div>'
)
PANEL = Template(
    '<div class="as-panel"><div class="as-title">$title</div>'
    '<svg class="as-plot" viewBox="0 0 $width $height" role="img" aria-label="$alt">$svg</svg>'
    '<div class="as-key">$key</div></div>'
)


class Slider:
    """The result of `slider`: shows itself in a notebook or on a page of the book.

    ``_repr_html_()`` is one self-contained piece of HTML, equal for equal arguments;
    ``figure()`` the same as a few pictures side by side.
    """

    def __init__(self, name, values, panels, says, start, form):
        """Make a slider over ``values``, written in ``form``, that begins at place ``start``."""
        self.name, self.values, self.panels = name, values, panels
        self.says, self.start = says, start
        self.shown = [format(value, form) for value in values]

    def __repr__(self) -> str:
        """Return what a saved notebook holds as plain text."""
        return f"slider: {self.name} from {self.shown[0]} to {self.shown[-1]}"

    def now(self, frame: int) -> str:
        """Return the parameter and its value, as a reader sees them."""
        return f"{self.name} = {self.shown[frame]}"

    def _repr_html_(self) -> str:
        panels = "".join(
            PANEL.substitute(
                width=WIDTH,
                height=HEIGHT,
                title=escape(panel.title),
                alt=escape(panel.alt),
                svg=panel.svg(self.start),
                key="".join(f"<span>{entry}</span>" for entry in panel.key(self.start)),
            )
            for panel in self.panels
        )
        return HTML.substitute(
            name=escape(self.name),
            now=escape(self.now(self.start)),
            says=escape(self.says[self.start]),
            start=self.start,
            last=len(self.values) - 1,
            count=len(self.values),
            first=escape(self.shown[0]),
            final=escape(self.shown[-1]),
            panels=panels,
            data=self.json(),
            css=modes("attncourse-slider") + read_asset("slider.css"),
            js=read_asset("slider.js"),
        )

    def json(self) -> str:
        """Return the data that the browser draws from, as JSON that is safe inside ``<script>``."""
        data = {
            "name": self.name,
            "values": self.shown,
            "says": self.says,
            "panels": [panel.data() for panel in self.panels],
        }
        text = json.dumps(data, separators=(",", ":"), allow_nan=False)  # ASCII only
        return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")

    def figure(self, frames: Sequence[int] | None = None) -> Figure:
        """Return the same as a static figure: a row for each panel, a column for each frame.

        frames: which values to show, counted from 0; by default the first, the one the slider
        starts at and the last (the middle one where it starts at an end).
        """
        last = len(self.values) - 1
        if frames is None:
            frames = sorted({0, self.start if 0 < self.start < last else last // 2, last})
        size = (2.2 * len(frames), 2.2 * len(self.panels))
        fig = Figure(figsize=size, layout="constrained")
        grid = fig.subplots(len(self.panels), len(frames), squeeze=False, sharey="row")
        for row, panel in zip(grid, self.panels, strict=True):
            for ax, frame in zip(row, frames, strict=True):
                panel.draw(ax, frame)
            for ax in row[1:]:
                ax.set_ylabel("")
        for ax, frame in zip(grid[0], frames, strict=True):
            ax.set_title(self.now(frame), fontsize="medium")
        named = {}
        for ax in grid[:, 0]:
            handles, names = ax.get_legend_handles_labels()
            named.update(zip(names, handles, strict=True))
        if named:
            fig.legend(named.values(), named, loc="outside lower center", ncols=4, frameon=False)
        return fig

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.figure().savefig(file, dpi=150, metadata={"Software": None})
        return file.getvalue()


def slider(
    name: str,
    values: Sequence[float],
    panels: Sequence[Curves | Bars | Matrix],
    says: Sequence[str],
    *,
    start: float | None = None,
    form: str = "g",
) -> Slider:
    """Return a slider over a parameter, with panels that show one frame for each of its values.

    name: what the parameter is called, as in ``temperature T``. values: two or more numbers,
    increasing. panels: each with as many frames as there are values. says: for each value a
    sentence, which is read out to those who cannot see the panels. start: the value shown first,
    by default the middle one. form: how a value is written, as in ``format(value, form)``.

    Raises ``ValueError`` where values do not increase, panels or sentences are not as many as
    the values, or start is none of them.
    """
    values = increasing("values", values).tolist()
    says = list(says)
    if len(says) != len(values) or not all(isinstance(s, str) and s.strip() for s in says):
        raise ValueError(f"says: expected {len(values)} sentences, one for each value, got {says}")
    if not panels:
        raise ValueError("panels: expected one or more, got none")
    for number, panel in enumerate(panels):
        counts = panel.frames()
        if not counts:
            raise ValueError(f"panel {number}: nothing in it moves")
        for what, count in counts.items():
            if count != len(values):
                raise ValueError(f"panel {number}, {what}: expected {len(values)} frames, one for "
                                 f"each value, got {count}")  # fmt: skip
    if start is not None and start not in values:
        raise ValueError(f"start: expected one of the values, got {start!r}")
    at = len(values) // 2 if start is None else values.index(start)
    return Slider(name, values, list(panels), says, at, form)
