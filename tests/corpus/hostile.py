"""The corpus: every hostile and damaged submission, and the honest ones beside them."""

from corpus import escaping, exhausting, forging, honest, spying, wire
from corpus.assignment import CHAPTER_5, SMALL, Hostile
from corpus.damaged import DAMAGED, Damaged


def as_submission(case: Damaged) -> Hostile:
    """A damaged submission in the form of the others."""
    work = CHAPTER_5 if case.kqv else SMALL
    deserves = work.points if case.deserves is None else case.deserves
    return Hostile(
        case.name, "damage", case.why, deserves, honest=True, damage=case.make, work=work
    )


HOSTILE = [
    *forging.CASES,
    *spying.CASES,
    *escaping.CASES,
    *exhausting.CASES,
    *wire.CASES,
]
HONEST = honest.CASES
DAMAGE = [as_submission(case) for case in DAMAGED]
