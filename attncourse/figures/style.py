"""One look for every figure: colours that everyone can tell apart, vector output, quiet axes.

The colours are those of the light page. In the book each is replaced by a name of the style sheet
(``tools/inline_svg.py``), so that figures follow light and dark; elsewhere they stand on white.
"""

import matplotlib as mpl
from matplotlib.colors import LinearSegmentedColormap, to_rgba
from matplotlib.rcsetup import cycler

# Told apart with every common kind of colour vision, and at least 3 : 1 from the page.
BLUE, ORANGE, GREEN, PURPLE = "#005f99", "#b34700", "#00704f", "#d63ae0"
SKY, YELLOW, GREY = "#3b9ac4", "#a8863c", "#848a90"
COLOURS = (BLUE, ORANGE, GREEN, PURPLE, SKY, YELLOW)
# Told apart without colour too.
DASHES = ("-", (0, (5, 1.8)), (0, (1.2, 1.4)), (0, (7, 1.5, 1.2, 1.5)), (0, (2.4, 1.6)),
          (0, (13, 2.5)))  # fmt: skip

# Whatever else a picture shows, these mean the same on every page.
QUERY, KEY, VALUE = BLUE, ORANGE, GREEN
INK = "#1f2328"  # text, axes; weights are ink, as dense as the weight is large
WEIGHT = INK
PAPER = "#fefefe"  # the page behind the figure
BLACK = "#000000"
# Numbers in cells, which have to be read on any shade from paper to ink.
DEEP = "#010101"  # on little ink: black on a light page, white on a dark one
FIXED = "#020202"  # on half of it: black on both

WIDTH, HEIGHT = 4.3, 3.0  # inches; the letters have 12 px where a phone is 390 px wide
LEVELS = 32  # shades of a weight, besides none

mpl.colormaps.register(
    # matplotlib 3.10.0 takes a pair of colour and alpha for one of position and colour.
    LinearSegmentedColormap.from_list(
        "weights", [to_rgba(INK, 0.0), to_rgba(INK, 1.0)], N=LEVELS + 1
    ),
    force=True,
)


def set_style() -> None:
    """Set the course's look for every figure that follows: vector output, quiet axes."""
    inked = ("axes.edgecolor", "axes.labelcolor", "patch.edgecolor", "text.color")
    mpl.rcParams.update(
        dict.fromkeys((*inked, "xtick.color", "ytick.color"), INK)
        | {
            "axes.facecolor": "none",
            "axes.prop_cycle": cycler(color=COLOURS, linestyle=DASHES),
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.titlesize": "medium",
            "figure.constrained_layout.use": True,
            "figure.figsize": (WIDTH, HEIGHT),
            "font.size": 10.5,
            "hatch.linewidth": 0.6,
            "image.cmap": "cividis",
            "legend.frameon": False,
            "legend.handlelength": 2.4,
            "lines.dash_capstyle": "butt",
            "lines.scale_dashes": True,
            "svg.fonttype": "path",
            # Equal figures give equal files, so that a rebuilt page does not change.
            "svg.hashsalt": "attncourse",
        }
    )
    try:
        from matplotlib_inline.backend_inline import set_matplotlib_formats
    except ImportError:  # outside a notebook
        return
    set_matplotlib_formats("svg", metadata={"Date": None}, pad_inches=0.03)
