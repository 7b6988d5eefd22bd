"""The colours of what a page draws: queries blue, keys orange, values green, weights in ink.

Each piece of HTML brings them along, because a notebook in Colab has no style sheet of ours. They
follow the page's light or dark mode, and print in light. ``--flip`` is the filter for a picture
of pixels, which has ink and transparent paper and cannot ask for colours by name.
"""

from functools import cache
from importlib.resources import files
from string import Template

COLOUR_ROLES = ("query", "key", "value", "ink", "quiet")

LIGHT = (
    "color-scheme: light; --query: #005f99; --key: #b34700; --value: #00704f; "
    "--ink: #1f2328; --page: #fff; --rim: #d0d7de; --quiet: #59636e; --flip: none;"
)
DARK = (
    "color-scheme: dark; --query: #6cb8f0; --key: #f0a060; --value: #4fd0a5; "
    "--ink: #e6edf3; --page: #161b22; --rim: #444c56; --quiet: #9198a1; --flip: invert(1);"
)
MODES = Template("""\
$here { $light }
@media (prefers-color-scheme: dark) { $here { $dark } }
:is([data-theme=light], html[theme=light], [data-jp-theme-light=true], .vscode-light) $here { $light }
:is([data-theme=dark], html[theme=dark], [data-jp-theme-light=false], .vscode-dark) $here { $dark }
@media print { $here$here$here { $light break-inside: avoid; } }
""")  # noqa: E501


def modes(name: str) -> str:
    """Return the style sheet that gives a class ``name`` the colours of light and dark."""
    return MODES.substitute(here=f".{name}", light=LIGHT, dark=DARK)


@cache
def read_asset(name: str) -> str:
    """Return a file that lies in this folder or below it."""
    return files("attncourse.figures").joinpath(name).read_text(encoding="utf-8")


def has(name: str) -> bool:
    """True if there is such a file in this folder or below it."""
    return files("attncourse.figures").joinpath(name).is_file()
