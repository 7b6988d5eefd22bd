"""A seed as it is given on the command line."""

from attncourse.grading.errors import UserError


def whole_number(text: str, otherwise: int) -> int:
    """Return the number given for ``--seed``, or ``otherwise`` for an empty text.

    Raises ``UserError`` for what is no whole number.
    """
    if not text:
        return otherwise
    try:
        return int(text)
    except ValueError:
        raise UserError(f"--seed takes a whole number, say --seed 7; got {text!r}") from None
