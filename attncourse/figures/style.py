"""One look for every figure: colours that everyone can tell apart, vector output, quiet axes."""

import matplotlib as mpl

# Okabe and Ito's palette: told apart with every common kind of colour vision.
BLUE, ORANGE, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#AA4499"
SKY, YELLOW, GREY, BLACK = "#56B4E9", "#E69F00", "#8A8A8A", "#000000"
COLOURS = (BLUE, ORANGE, GREEN, PURPLE, SKY, YELLOW)


def set_style() -> None:
    """The course's look for every figure that follows: vector output, quiet axes, safe colours."""
    mpl.rcParams.update(
        {
            "axes.prop_cycle": mpl.cycler(color=COLOURS),
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.titlesize": "medium",
            "figure.constrained_layout.use": True,
            "figure.figsize": (6.4, 3.4),
            "font.size": 10,
            "image.cmap": "cividis",
            "legend.frameon": False,
            "svg.fonttype": "path",
            # Equal figures give equal files, so that a rebuilt page does not change.
            "svg.hashsalt": "attncourse",
        }
    )
    try:
        from matplotlib_inline.backend_inline import set_matplotlib_formats
    except ImportError:  # outside a notebook
        return
    set_matplotlib_formats("svg", metadata={"Date": None})
