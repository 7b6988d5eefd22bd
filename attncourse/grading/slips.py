"""A number and a name that stand together and are two people's: a column has slipped by a row."""

from typing import NamedTuple

from attncourse.grading.errors import UserError

TRUSTED = ("numbers", "names")


class Slip(NamedTuple):
    """A number and a name in one place that are two people's, and which rows have them."""

    place: str
    number: str
    name: str
    by_number: str
    by_name: str

    def __str__(self) -> str:
        """Return the slip as a sentence."""
        return (
            f"{self.place}: {self.number} is of {self.by_number}, but {self.name} is {self.by_name}"
        )


def settle_owner(by_number: set[str], by_name: set[str], trust: str) -> set[str] | None:
    """Return who is meant by a number and a name; None if they disagree and none is trusted.

    ``trust`` is *numbers*, *names* or empty. If one of both means nobody, the other decides.
    """
    if by_number and by_name and not by_number & by_name:
        return {"numbers": by_number, "names": by_name}.get(trust)
    return by_number & by_name or by_number or by_name


def require_trust(trust: str) -> None:
    """Raise ``UserError`` for a text that is none of ``TRUSTED``."""
    if trust and trust not in TRUSTED:
        raise UserError(f"--trust: expected {' or '.join(TRUSTED)}, got {trust}")


def require_no_slip(slips: list[Slip], undone: str) -> None:
    """Raise ``UserError`` with the first slip, if any; ``undone`` says what did not happen."""
    if not slips:
        return
    more = f", and {len(slips) - 1} more like it" if slips[1:] else ""
    raise UserError(
        f"{slips[0]}{more}: {undone}; has a column slipped? Mend the list, or say what is right "
        "in it: --trust numbers or --trust names"
    )
