"""A milestone, and how one is run: built of parts, trained, held against its gates.

A gate asks what the whole does, not how: whether a token that is masked has influence, whether
fresh sequences are answered. Where one is shut, the student's parts are exchanged for ours, and the
part whose exchange opens every gate is named.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
from matplotlib.figure import Figure
from torch import nn

from attncourse.checks.trying.settings import as_a_process_starts
from attncourse.milestones import as_reached
from attncourse.milestones.parts import Parts
from attncourse.pretrained.model import NoModel
from attncourse.support.output import someone_looks_on


@dataclass(frozen=True)
class Gate:
    """Something that the whole must do. ``shut`` says what it does instead, or nothing."""

    name: str
    shut: Callable[[Any], str]


@dataclass(frozen=True)
class Milestone:
    """A model made of parts, and what it must do.

    ``after`` is the chapter it closes, ``uses`` the targets it is made of, in the order in which
    they are exchanged. ``train`` builds and trains a model of these parts. ``untrained`` gates are
    tried first, on a model that ``build`` has just made. ``answer``, of a model that talks, gives
    the pieces of an answer to a question as they come, each with its probability.
    """

    name: str
    after: str
    what: str
    uses: tuple[str, ...]
    build: Callable[[Parts], nn.Module]
    train: Callable[[Parts, bool], nn.Module]
    untrained: tuple[Gate, ...]
    trained: tuple[Gate, ...]
    picture: Callable[[Any], Figure]
    answer: Callable[..., Iterator[tuple[str, float]]] | None = None


@dataclass(frozen=True)
class MilestoneResult:
    """The result of a milestone: the gates that are shut, each with what was seen there.

    ``repair`` are the parts whose exchange for ours opens all of them, one as a rule; ``model`` is
    there once it is trained.
    """

    milestone: Milestone
    parts: Parts
    shut: dict[str, str]
    seconds: float
    repair: tuple[str, ...] = ()
    model: Any = None

    @property
    def passed(self) -> bool:
        """True if every gate opened."""
        return not self.shut

    @property
    def ours(self) -> list[str]:
        """The parts that are not the student's."""
        return [t for t in self.milestone.uses if self.parts.owner(t) != "yours"]

    def __str__(self) -> str:
        """Return the result as a notebook prints it."""
        m = self.milestone
        mine = [target for target in m.uses if self.parts.owner(target) == "yours"]
        head = f"✓ {m.name} {as_reached(len(self.ours))}" if self.passed else f"✗ {m.name}"
        lines = [f"{head}: {m.what} ({self.seconds:.0f} s)"]
        lines.append(f"  {len(mine)} of {len(m.uses)} parts are yours: {', '.join(mine) or 'none'}")
        if self.ours:
            lines.append(f"  ours, until yours are right: {', '.join(self.ours)}")
        lines += [f"  ✗ {name}: {seen}" for name, seen in self.shut.items()]
        which = " and ".join(self.repair)
        if len(self.repair) == 1:
            lines.append(f"  with our {which} in place of yours it passes: look there first")
        elif self.repair:
            lines.append(f"  it takes ours for {which} to pass: look at them together")
        elif self.shut:
            lines.append("  which part it is was not found: try your parts one by one with check")
        return "\n".join(lines)


def run_milestone(
    milestone: Milestone, parts: Parts, show: bool | None = None, patience: float = 60.0
) -> MilestoneResult:
    """Build, train and try a milestone. Never raises for what a part does.

    ``show`` says whether a bar is shown; unless given, where somebody looks on. ``patience`` is for
    how many seconds it looks for the part to blame. Raises ``ValueError`` where no part is the
    student's, and ``NoModel`` where a real model is asked for and not within reach.
    """
    if not any(parts.owner(target) == "yours" for target in milestone.uses):
        targets_of_chapter = [t for t in milestone.uses if t.startswith(f"{milestone.after}.")]
        raise ValueError(
            f"none of the {len(milestone.uses)} parts of {milestone.name} is yours yet: write one, "
            f"say {targets_of_chapter[-1]}, then make your parts with attncourse assemble NOTEBOOK…"
        )
    return reach_milestone(milestone, parts, someone_looks_on() if show is None else show, patience)


def reach_milestone(
    milestone: Milestone, parts: Parts, show: bool, patience: float
) -> MilestoneResult:
    """Run a milestone with these parts, whoever's they are, and return the result."""
    started = time.monotonic()
    with single_thread(), as_a_process_starts():
        shut, model = try_gates(milestone, parts, show)
        repair = to_blame(milestone, parts, show, time.monotonic() + patience) if shut else ()
    return MilestoneResult(milestone, parts, shut, time.monotonic() - started, repair, model)


def to_blame(milestone: Milestone, parts: Parts, show: bool, until: float) -> tuple[str, ...]:
    """Return the fewest of the student's parts that must be ours for every gate to open.

    Nothing where that is not known until then.

    Of a part and those that it calls, the called one. By Junker (2004), QuickXplain: for one wrong
    part among n, some 2 log n trials, where one by one would take n.
    """

    def needed(parts_given: list[str], rest: list[str]) -> list[str]:
        """Return those of rest that must be ours as well, where the given ones are."""
        if opens(parts_given):
            return []
        if len(rest) == 1:
            return rest
        half = len(rest) // 2
        first = needed([*parts_given, *rest[half:]], rest[:half])
        return first + needed([*parts_given, *first], rest[half:])

    def opens(parts_given: list[str]) -> bool:
        if time.monotonic() > until:
            raise TimeoutError
        with parts.exchanged(*parts_given) as mended:
            return bool(parts_given) and not try_gates(milestone, mended, show, first=True)[0]

    mine = [t for t in reversed(milestone.uses) if parts.owner(t) == "yours"]
    try:
        return tuple(needed([], mine)) if mine else ()
    except TimeoutError:
        return ()


@contextmanager
def single_thread() -> Iterator[None]:
    """Compute in one thread, which is faster for matrices as small as these."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def try_gates(
    milestone: Milestone, parts: Parts, show: bool, first: bool = False
) -> tuple[dict[str, str], Any]:
    """Return the gates that are shut, or the first of them, and the trained model.

    It is not trained where a gate before is shut.
    """
    model, shut = None, {}
    try:
        torch.manual_seed(0)
        model = milestone.build(parts)
        shut = seen_at(milestone.untrained, model.eval(), first)
        if not shut:
            model = milestone.train(parts, show)
            shut = seen_at(milestone.trained, model.eval(), first)
    except NoModel:  # ours to say
        raise
    except Exception as error:  # a student's
        shut = {"it runs": f"{type(error).__name__}: {error_line(error)}"}
    return shut, model


@torch.no_grad()
def seen_at(gates: Iterable[Gate], model: nn.Module, first: bool = False) -> dict[str, str]:
    """Return what is seen at the gates that are shut, or at the first of them."""
    shut_gates = ((gate.name, seen) for gate in gates if (seen := gate.shut(model)))
    return dict(islice(shut_gates, 1 if first else None))


def error_line(error: Exception) -> str:
    """Return the first line of an error's message, cut."""
    return (str(error).splitlines() or [""])[0][:200]
