"""What a milestone is, and how one is run: built of parts, trained, held against its gates.

A gate asks what the whole does, not how: whether a token that is masked has influence, whether
fresh sequences are answered. Where one is shut, the student's parts are exchanged for ours, and the
part whose exchange opens every gate is named.
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

    ``repair`` are the parts whose exchange for ours opens all of them, one as a rule; ``model`` is
    there once it is trained.
    """

    milestone: Milestone
    parts: Parts
    shut: dict[str, str]
    seconds: float
    repair: tuple[str, ...] = ()
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
        which = " and ".join(self.repair)
        if len(self.repair) == 1:
            lines.append(f"  with our {which} in place of yours it passes: look there first")
        elif self.repair:
            lines.append(f"  it takes ours for {which} to pass: look at them together")
        elif self.shut and mine:
            lines.append("  with ours in their place it does no better: start Python again")
        return "\n".join(lines)


def run(milestone: Milestone, parts: Parts, show: bool | None = None) -> Outcome:
    """Builds, trains and tries a milestone. Never raises for what a part does.

    ``show`` says whether a bar is shown; unless given, where somebody looks on.
    """
    started = time.monotonic()
    show = someone_looks_on() if show is None else show
    with one_thread():
        shut, model = tried(milestone, parts, show)
        repair = to_blame(milestone, parts, show) if shut else ()
    return Outcome(milestone, parts, shut, time.monotonic() - started, repair, model)


def to_blame(milestone: Milestone, parts: Parts, show: bool) -> tuple[str, ...]:
    """The fewest of the student's parts that must be ours for every gate to open.

    Of a part and those that it calls, the called one. By Junker (2004), QuickXplain: for one wrong
    part among n, some 2 log n trials, where one by one would take n.
    """

    def needed(given: list[str], rest: list[str]) -> list[str]:
        """Those of rest that must be ours as well, where the given ones are."""
        if opens(given):
            return []
        if len(rest) == 1:
            return rest
        half = len(rest) // 2
        first = needed([*given, *rest[half:]], rest[:half])
        return first + needed([*given, *first], rest[half:])

    def opens(given: list[str]) -> bool:
        with parts.exchanged(*given) as mended:
            return bool(given) and not tried(milestone, mended, show)[0]

    mine = [t for t in reversed(milestone.uses) if parts.owner(t) == "yours"]
    return tuple(needed([], mine)) if opens(mine) else ()


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
