"""The package's own code, for a page to show."""

import inspect
import json
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from attncourse.figures.listing import source

ROOT = Path(__file__).resolve().parents[2]  # where attncourse/ stands


def show_source(*things: Callable):
    """Return the package's own code for a page to show, so that text and code cannot drift apart.

    Under the idea stands where the whole is, with its docstring and checks: a page prints it once.
    """
    from IPython.display import Markdown

    files = ", ".join(map(linked, dict.fromkeys(map(repository_path, things))))
    whole = f"The whole, as it stands in the package: {files}"
    return Markdown(f"{fenced_code(source(*things))}\n\n{whole}")


def fenced_code(code: str) -> str:
    """Return code as Markdown that a page sets as Python."""
    return f"```python\n{code}\n```"


def repository_path(thing: Callable) -> str:
    """Return the file's path in the repository: ``attncourse/kqv.py``."""
    path = Path(inspect.getfile(sys.modules[thing.__module__])).resolve()
    return path.relative_to(ROOT).as_posix()


def linked(file: str) -> str:
    """Return the file's name, which leads to the repository where the package came from one.

    In the book, whose package is the folder beside it, the link is made from `_config.yml`.
    """
    home = repository()
    return f"[`{file}`]({home}/{file})" if home else f"`{file}`"


def repository() -> str | None:
    """Return where a file of this version can be seen, if pip took the package from a repository.

    pip writes that down (PEP 610) for an address, as the Colab notebooks give it one: of a
    release's wheel, which has a tag, or of a branch, ``git+https://…``.
    """
    try:
        said = json.loads(distribution("attncourse").read_text("direct_url.json") or "{}")
    except PackageNotFoundError:
        return None
    if "vcs_info" in said:
        return f"{said['url'].removesuffix('.git')}/blob/{said['vcs_info']['commit_id']}"
    home, release, wheel = said.get("url", "").partition("/releases/download/")
    return f"{home}/blob/{wheel.partition('/')[0]}" if release else None
