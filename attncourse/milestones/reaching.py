"""A milestone in a notebook, and in an instructor's test: parts by name, points for a model."""

import sys
from collections.abc import Callable

from attncourse.checks.trying.settings import as_a_process_imports, as_a_process_starts
from attncourse.milestones import find_milestone
from attncourse.milestones.milestone import Milestone, MilestoneResult, run_milestone
from attncourse.milestones.parts import Parts
from attncourse.milestones.talking import require_answers, talk
from attncourse.support.output import write_line

SECONDS_OF_PATIENCE = 10.0  # seconds to look for the part to blame: a test has 20 for all
WITH_A_REAL_MODEL = 60.0  # such a milestone is no test, and each trial reads a text


class NotYet(AssertionError):
    """A milestone that is not reached. The message says at which gates, and whose part it is."""

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython shows in place of a traceback."""
        return [str(self)]


def reach(name: str, /, ask: str = "", **parts: Callable) -> None:
    """Train the milestone's model, made of these parts and ours for the rest; show its picture.

    ``reach("recall", AttentionHead=AttentionHead)``. ``ask``: a question for a model that answers.
    Raises ``NotYet`` where it cannot do what it must, ``ValueError`` for a milestone or a part that
    there is not, ``NoModel`` where a real model is asked for and not within reach.
    """
    with as_a_process_imports():
        made = find_milestone(name)
    require_answers(made, ask)
    patience = WITH_A_REAL_MODEL if made.answer else SECONDS_OF_PATIENCE
    outcome = run_milestone(made, Parts(parts_by_target(made, parts), modules()), patience=patience)
    if not outcome.passed:
        raise NotYet(str(outcome))
    write_line(str(outcome), sys.stdout)
    with as_a_process_starts():
        talk(outcome, ask)
        show_outcome(outcome)


def parts_by_target(made: Milestone, parts: dict[str, Callable]) -> dict[str, Callable]:
    """Return the parts by their targets."""
    known = {target.split(".")[1]: target for target in made.uses}
    for name, part in parts.items():
        if name not in known:
            raise ValueError(f"{made.name} is made of {', '.join(known)}, not of {name}")
        if not callable(part):
            raise ValueError(f"{name}: expected a function or a class, got {part!r}")
    return {known[name]: part for name, part in parts.items()}


def modules() -> tuple:
    """Return where the parts find each other: the notebook."""
    return (sys.modules["__main__"],)


def show_outcome(outcome: MilestoneResult) -> None:
    """Draw the picture where a notebook can show it."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is not None and hasattr(shell, "kernel"):
        from IPython.display import display
        from matplotlib import pyplot as plt

        figure = outcome.milestone.picture(outcome.model)
        display(figure)
        plt.close(figure)
