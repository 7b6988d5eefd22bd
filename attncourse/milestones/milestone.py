"""What a milestone is, and how one is run: built of parts, trained, held against its gates.

A gate asks what the whole does, not how: whether a token that is masked has influence, whether
fresh sequences are answered. Where one is shut, the student's parts are exchanged for ours one by
one, and the part whose exchange opens every gate is named.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from matplotlib.figure import Figure
from torch import nn

from attncourse.milestones.parts import Parts
from attncourse.tasks.bar import someone_looks_on


@dataclass(frozen=True)
class Gate:
    """Something that the whole must do. ``shut`` says what it does instead, or nothing."""

    name: str
    shut: Callable[[nn.Module], str]


@dataclass(frozen=True)
class Milestone:
    """A model made of parts, and what it must do.

    ``after`` is the chapter it closes, ``uses`` the targets it is made of, in the order in which
    they are exchanged. ``train`` builds and trains a model of these parts. ``untrained`` gates are
    tried first, on a model that ``build`` has just made.
    """

    name: str
    after: str
    what: str
    uses: tuple[str, ...]
    build: Callable[[Parts], nn.Module]
    train: Callable[[Parts, bool], nn.Module]
    untrained: tuple[Gate, ...]
    trained: tuple[Gate, ...]
    picture: Callable[[nn.Module], Figure]


@dataclass(frozen=True)
class Outcome:
    """What came of a milestone: the gates that are shut, each with what was seen there.

    ``repair`` is the part whose exchange for ours opens all of them; ``model`` is there once it is
    trained.
    """

    milestone: Milestone
    parts: Parts
    shut: dict[str, str]
    seconds: float
    repair: str = ""
    model: nn.Module | None = None

    @property
    def passed(self) -> bool:
        return not self.shut

    def __str__(self) -> str:
        m = self.milestone
        mine = [target for target in m.uses if self.parts.owner(target) == "yours"]
        lines = [f"{'✓' if self.passed else '✗'} {m.name}: {m.what} ({self.seconds:.0f} s)"]
        lines.append(f"  {len(mine)} of {len(m.uses)} parts are yours: {', '.join(mine) or 'none'}")
        lines += [f"  ✗ {name}: {seen}" for name, seen in self.shut.items()]
        if self.shut and self.repair:
            lines.append(f"  with our {self.repair} in place of yours it passes: look there first")
        elif self.shut and mine:
            lines.append("  no single part of yours is to blame: two of them do not fit together")
        return "\n".join(lines)


def run(milestone: Milestone, parts: Parts, show: bool | None = None) -> Outcome:
    """Builds, trains and tries a milestone. Never raises for what a part does.

    ``show`` says whether a bar is shown; unless given, where somebody looks on.
    """
    started = time.monotonic()
    show = someone_looks_on() if show is None else show
    with one_thread():
        shut, model = tried(milestone, parts, show)
        repair = repaired_by(milestone, parts, show) if shut else ""
    return Outcome(milestone, parts, shut, time.monotonic() - started, repair, model)


def repaired_by(milestone: Milestone, parts: Parts, show: bool) -> str:
    """The first of the student's parts whose exchange for ours opens every gate."""
    for target in milestone.uses:
        if parts.owner(target) == "yours":
            with parts.exchanged(target) as mended:
                if not tried(milestone, mended, show)[0]:
                    return target
    return ""


@contextmanager
def one_thread() -> Iterator[None]:
    """Matrices as small as these are multiplied faster by one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def tried(milestone: Milestone, parts: Parts, show: bool) -> tuple[dict[str, str], Any]:
    """The gates that are shut, and the trained model; it is not trained where one is before."""
    model, shut = None, {}
    try:
        torch.manual_seed(0)
        model = milestone.build(parts)
        shut = seen_at(milestone.untrained, model.eval())
        if not shut:
            model = milestone.train(parts, show)
            shut = seen_at(milestone.trained, model.eval())
    except Exception as error:  # a student's
        shut = {"it runs": f"{type(error).__name__}: {first_line(error)}"}
    return shut, model


@torch.no_grad()
def seen_at(gates: Iterable[Gate], model: nn.Module) -> dict[str, str]:
    """What is seen at the gates that are shut."""
    return {gate.name: seen for gate in gates if (seen := gate.shut(model))}


def first_line(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0][:200]
