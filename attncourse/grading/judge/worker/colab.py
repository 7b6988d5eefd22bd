"""A stand-in for ``google.colab``, so that a notebook that was written there runs here."""

import sys
import types
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import Any

ANSWERS = {"upload": dict, "get": str}  # what is given back instead of files and secrets


class Nothing:
    """Something that can be called, and whose every attribute is like it."""

    def __init__(self, name: str = ""):
        self._name = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return ANSWERS.get(self._name, lambda: None)()

    def __getattr__(self, name: str) -> "Nothing":
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing(name)


class Module(types.ModuleType):
    """A module in which there is whatever is looked for, and nothing happens."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing(name)


class Colab(MetaPathFinder, Loader):
    """Finds ``google.colab`` and what is below it, where nobody else does.

    It is not there before it is imported: ``"google.colab" in sys.modules`` says where one is.
    """

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: Any = None
    ) -> ModuleSpec | None:
        if name == "google" or name.startswith("google.colab"):
            return ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        return types.ModuleType(spec.name) if spec.name == "google" else Module(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def stand_in() -> None:
    """Has ``google.colab`` found from now on."""
    sys.meta_path.append(Colab())
