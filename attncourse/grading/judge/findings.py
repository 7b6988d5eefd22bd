"""The findings of one run of a plan, and how two runs are combined."""

from collections.abc import Set
from dataclasses import dataclass, field, replace

from attncourse.grading.judge.outcomes import StepOutcome, earns_more
from attncourse.grading.submission.plan import Step


@dataclass(frozen=True)
class Findings:
    """The outcome of each step, by its number; a step that was not reached has none.

    ``cut`` are the steps that did not end by themselves; ``trouble`` has a sentence for each that
    ended its process. ``changed`` are tests, and who changed what they did not ask for.
    """

    steps: tuple[Step, ...]
    outcomes: dict[int, StepOutcome]
    seed: int = 0  # of the tests
    cut: frozenset[int] = frozenset()
    trouble: dict[int, str] = field(default_factory=dict)
    changed: tuple[tuple[str, str], ...] = ()
    longest: float = 0.0  # seconds of processor time that one request took
    flooded: float = 0.0  # the MB that it may print, where it printed more

    def pairs(self) -> list[tuple[Step, StepOutcome | None]]:
        """Return each step with what came of it."""
        return [(step, self.outcomes.get(number)) for number, step in enumerate(self.steps)]

    def tests(self) -> dict[str, StepOutcome | None]:
        """Return the outcomes of the tests, by their grade ids."""
        return {step.grade_id: outcome for step, outcome in self.pairs() if step.kind == "test"}


def agreed_findings(first: dict[int, StepOutcome], doubted: Set[int], second: Findings) -> Findings:
    """Combine two runs, in the first of which the ``doubted`` steps did not end by themselves.

    What came before these there is final, and nobody draws twice. From there on the second run
    counts; but where it was cut itself, the better one does, and so it does behind what was cut in
    the second alone.
    """
    if not doubted:
        return second
    believed = dict(second.outcomes)
    doubtful = min(second.cut - doubted, default=len(second.steps))
    for number, before in first.items():
        now = second.outcomes.get(number, StepOutcome("lost"))
        either = number >= doubtful or number in second.cut
        if number < min(doubted) or (either and earns_more(before, now)):
            believed[number] = before
    trouble = {number: sentence for number, sentence in second.trouble.items() if number in doubted}
    return replace(second, outcomes=believed, trouble=trouble)
