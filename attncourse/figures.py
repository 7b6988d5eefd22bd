"""The plots that chapters share, in one style, and the source code they show."""

import ast
import inspect
import textwrap
from collections.abc import Callable, Sequence

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt

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


def weight_matrix(
    weights,
    queries: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    *,
    ax: plt.Axes | None = None,
    title: str = "",
    numbers: bool | None = None,
) -> plt.Axes:
    """A heat map of weights ``(m, n)``: row i is query i, column j is key j, from 0 to 1.

    The entries are written in where there is room (``numbers`` decides otherwise). Raises
    ``ValueError`` where the labels do not fit the matrix.
    """
    weights = np.asarray(weights, dtype=float)
    if weights.ndim != 2:
        raise ValueError(f"weights: expected shape (m, n), got {weights.shape}")
    keys = queries if keys is None and weights.shape[0] == weights.shape[1] else keys
    for name, labels, size in (("queries", queries, 0), ("keys", keys, 1)):
        if labels is not None and len(labels) != weights.shape[size]:
            raise ValueError(f"{name}: expected {weights.shape[size]} labels, got {len(labels)}")
    ax = plt.gca() if ax is None else ax
    ax.imshow(weights, vmin=0, vmax=max(1.0, float(weights.max())), cmap="cividis")
    ax.set(title=title, xlabel="key j", ylabel="query i")
    ax.set_xticks(range(weights.shape[1]), keys or range(weights.shape[1]))
    ax.set_yticks(range(weights.shape[0]), queries or range(weights.shape[0]))
    if keys:
        ax.tick_params(axis="x", rotation=45)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    if numbers if numbers is not None else max(weights.shape) <= 7:
        for (i, j), weight in np.ndenumerate(weights):
            ink = "black" if weight > 0.55 * ax.images[0].norm.vmax else "white"
            ax.text(j, i, f"{weight:.2f}", ha="center", va="center", color=ink, fontsize="small")
    return ax


def source(thing: Callable) -> str:
    """The source of a function or class of the package, without its docstrings."""
    code = textwrap.dedent(inspect.getsource(thing))
    lines = code.splitlines()
    documented = (ast.FunctionDef, ast.ClassDef)
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, documented) and ast.get_docstring(node) is not None:
            text = node.body[0]
            for number in range(text.lineno - 1, text.end_lineno):
                lines[number] = None
            after = text.end_lineno
            if after < len(lines) and lines[after] is not None and not lines[after].strip():
                lines[after] = None
    return "\n".join(line for line in lines if line is not None)


def show_source(*things: Callable):
    """The package's own code for a page to show, so that text and code cannot drift apart."""
    from IPython.display import Markdown

    code = "\n\n\n".join(source(thing) for thing in things)
    return Markdown(f"```python\n{code}\n```")
