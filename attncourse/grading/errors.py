"""Errors that the person at the keyboard can put right."""

import re
import sys
from importlib import metadata


class UserError(Exception):
    """An error that the user can put right: one line on what is wrong and what to do.

    The command line prints it and exits with status 2.
    """


class Unreadable(ValueError):
    """A file that is no notebook. The text says why, with the line if there is one."""


def missing_module_sentence(module: str) -> str:
    """Return what to do about a module that cannot be imported; "" for one of this package."""
    top = module.partition(".")[0]
    if top in sys.stdlib_module_names:
        return (
            f"this Python, {sys.executable}, was built without {module}: use another one, or "
            "install what that module needs (its development files) and build Python again"
        )
    package = __name__.partition(".")[0]
    if top in ("", package):
        return ""
    # A module that is in no extra is one that a package of the extra "grade" needs.
    extra = extras_of_packages().get(top.replace("_", "-").lower(), "grade")
    return f"{top} is not installed: pip install '{package}{extra and f'[{extra}]'}'"


def extras_of_packages() -> dict[str, str]:
    """Return, by package, the extra that it comes with; "" for what is always needed."""
    try:
        lines = metadata.requires(__name__.partition(".")[0]) or []
    except metadata.PackageNotFoundError:
        lines = []
    matches = [re.match(r"([\w.-]+)(?:.*extra == .(\w+))?", line) for line in lines]
    return {name[1].replace("_", "-").lower(): name[2] or "" for name in matches if name}
