"""The findings of one run of a plan, and how two runs are combined."""

from collections.abc import Set
from dataclasses import dataclass, field, replace

from attncourse.grading.judge.outcomes import StepOutcome, earns_more
from attncourse.grading.submission.plan import Step


@dataclass(frozen=True)
class Findings:
    """What one run of a plan found: the outcome of each step that was reached, by its number.

    ``cut`` are the steps that did not end by themselves; ``trouble`` has a sentence for each step
    that ended its process. ``changed`` are pairs of a test and the answer that changed an argument
    in place, unasked.
    """

    steps: tuple[Step, ...]
    outcomes: dict[int, StepOutcome]
    seed: int = 0  # of the tests
    cut: frozenset[int] = frozenset()
    trouble: dict[int, str] = field(default_factory=dict)
    changed: tuple[tuple[str, str], ...] = ()
    longest: float = 0.0  # seconds of processor time that one request took
    flooded: float = 0.0  # the MB that it may print, where it printed more

    def steps_with_outcomes(self) -> list[tuple[Step, StepOutcome | None]]:
        """Return each step with its outcome, None for one that was not reached."""
        return [(step, self.outcomes.get(number)) for number, step in enumerate(self.steps)]

    def test_outcomes(self) -> dict[str, StepOutcome | None]:
        """Return the outcome of each test by its grade id, None for one that was not reached."""
        return {
            step.grade_id: outcome
            for step, outcome in self.steps_with_outcomes()
            if step.kind == "test"
        }


def agreed_findings(first: dict[int, StepOutcome], doubted: Set[int], second: Findings) -> Findings:
    """Return what two runs found together; in the first the ``doubted`` steps had been cut.

    Outcomes of the first run before those are final: nobody draws cases twice. From there on the
    second run's count; but for a step that the second run cut, and for all behind the first step
    that it alone cut, the better of both outcomes does.
    """
    if not doubted:
        return second
    believed = dict(second.outcomes)
    newly_cut = min(second.cut - doubted, default=len(second.steps))
    for number, before in first.items():
        now = second.outcomes.get(number, StepOutcome("lost"))
        is_better_kept = number >= newly_cut or number in second.cut
        if number < min(doubted) or (is_better_kept and earns_more(before, now)):
            believed[number] = before
    trouble = {number: sentence for number, sentence in second.trouble.items() if number in doubted}
    return replace(second, outcomes=believed, trouble=trouble)
