"""Code that a test holds as text, written as it is read."""

from textwrap import dedent


def dedented(text: str) -> str:
    """Return a text without the indentation that its lines share and the breaks around them."""
    return dedent(text).strip("\n")
