"""The parts that a milestone is made of, by name: the student's, and ours where there is none."""

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from attncourse import STEMS


class Parts:
    """``parts["kqv.AttentionHead"]`` is the student's, or ours where they have none.

    ``modules`` are those that the student's parts find each other in.
    """

    def __init__(self, theirs: Mapping[str, Callable] = {}, modules: tuple[ModuleType, ...] = ()):
        self.theirs, self.modules = dict(theirs), modules

    def __getitem__(self, target: str) -> Callable:
        """Return the student's part for a target where there is one, else ours."""
        return self.theirs[target] if target in self.theirs else ours(target)

    def owner(self, target: str) -> str:
        """Return whose a part is: "yours" or "ours"."""
        return "yours" if target in self.theirs else "ours"

    @contextmanager
    def exchanged(self, *targets: str) -> Iterator["Parts"]:
        """Yield the same parts with ours for some of them, wherever the others call those."""
        swaps = [(self.theirs[target], ours(target)) for target in targets]
        places = [
            (module, name, first, other)
            for first, other in swaps
            for module in self.modules
            for name, it in vars(module).items()
            if it is first
        ]
        for module, name, _, other in places:
            setattr(module, name, other)
        try:
            rest = {t: part for t, part in self.theirs.items() if t not in targets}
            yield Parts(rest, self.modules)
        finally:
            for module, name, first, _ in places:
                setattr(module, name, first)


def ours(target: str) -> Callable:
    """Return the course's own part. Raises ``ValueError`` for a target that is none."""
    stem, _, name = target.partition(".")
    implementation = (
        getattr(importlib.import_module(f"attncourse.{stem}"), name, None) if name else None
    )
    if implementation is None or stem not in STEMS:
        raise ValueError(f"no part is called {target!r}: expected chapter and name, kqv.project")
    return implementation


def read_parts(folder: Path) -> Parts:
    """Return the parts of a package that ``attncourse assemble`` has made.

    Raises ``ValueError`` where there is none, or where it cannot be imported.
    """
    files = {path.stem: path for path in folder.glob("*.py") if path.stem in STEMS}
    if folder.name != "mine" or not files:
        raise ValueError(
            f"there are no parts in {folder}: make them with attncourse assemble NOTEBOOK…"
        )
    for name in [name for name in sys.modules if name.split(".")[0] == "mine"]:
        del sys.modules[name]  # of another folder
    sys.path.insert(0, str(folder.parent.resolve()))
    try:
        modules = {stem: importlib.import_module(f"mine.{stem}") for stem in STEMS if stem in files}
    except Exception as error:
        raise ValueError(
            f"{folder} cannot be imported ({type(error).__name__}: {error}): make it again with "
            "attncourse assemble NOTEBOOK…"
        ) from error
    finally:
        sys.path.remove(str(folder.parent.resolve()))
    theirs = {
        f"{stem}.{name}": it
        for stem, module in modules.items()
        for name, it in vars(module).items()
        if callable(it) and getattr(it, "__module__", "") == module.__name__
    }
    return Parts(theirs, tuple(modules.values()))
