"""An answer on the screen, piece by piece as it comes, each on as much orange as it is probable."""

import sys

from attncourse.milestones.milestone import Milestone, MilestoneResult

PAPER, ORANGE = (255, 255, 255), (230, 159, 0)


def talk(outcome: MilestoneResult, question: str = "") -> None:
    """Ask a model that answers, and show what it says; one that does not is left alone.

    Raises ``ValueError`` for a question that is no text.
    """
    answer = outcome.milestone.answer
    if answer is None:
        return
    colours = sys.stdout.isatty()
    pieces = answer(outcome.model, question) if question else answer(outcome.model)
    print()
    for number, (piece, probability) in enumerate(pieces):
        if not number:
            print(f"  > {outcome.model.said[0]}\n  ", end="")
        print(shade_piece(piece, probability) if colours else piece, end="", flush=True)
    print("\n")


def require_answers(milestone: Milestone, question: str) -> None:
    """Raise ``ValueError`` for a question to a model that does not answer."""
    if question and milestone.answer is None:
        raise ValueError(f"{milestone.name} answers no questions: leave the question out")


def shade_piece(piece: str, probability: float) -> str:
    """Return black on a shade between white and orange, for a terminal."""
    shade = (round(w + probability * (o - w)) for w, o in zip(PAPER, ORANGE, strict=True))
    colour = ";".join(map(str, shade))
    lines = piece.split("\n")
    return "\n  ".join(f"\x1b[30;48;2;{colour}m{line}\x1b[0m" if line else "" for line in lines)
