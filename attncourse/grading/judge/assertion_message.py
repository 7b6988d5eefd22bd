"""The message of a failed hidden test: the instructor's own sentence, read from the test's source.

An assertion that fails has a message. Its literal text is the instructor's; what an f-string or an
exception holds may be the submission's, or what the test sent. So the line that failed is looked up
in the source, and nothing else is said than what stands there.
"""

import ast
import traceback
from functools import lru_cache
from typing import NamedTuple

VALUE_PLACEHOLDER = "…"  # in the place of a value


class AssertionMessage(NamedTuple):
    """An assertion's sentence; ``reached`` is False where the test failed before it came there."""

    sentence: str = ""
    reached: bool = True


NO_ASSERTION = AssertionMessage()


def assertion_message_of(error: BaseException, source: str, file: str) -> AssertionMessage:
    """Return the assertion of the instructor's ``source`` at which ``error`` was raised.

    ``file`` is the name that the source ran under in the traceback. Of its lines there the
    innermost that asserts counts, for a helper of the test's own may assert. Where none of them
    asserts, it is the next assertion, which the test did not reach; without one, the sentence is
    empty.
    """
    frames = traceback.extract_tb(error.__traceback__)
    lines = [f.lineno or 0 for f in frames if f.filename == file]
    sentences = assertions_in(source)
    for line in reversed(lines):
        for first, last, sentence in sentences:
            if first <= line <= last:
                return AssertionMessage(sentence)
    start = lines[0] if lines else 0
    return AssertionMessage(next((s for first, _, s in sentences if first > start > 0), ""), False)


@lru_cache(maxsize=256)
def assertions_in(source: str) -> tuple[tuple[int, int, str], ...]:
    """Return the first line, last line and sentence of each assertion in a cell, in order."""
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Assert)]
    nodes.sort(key=lambda node: node.lineno)
    return tuple((n.lineno, n.end_lineno or n.lineno, literal_text(n.msg)) for n in nodes)


def literal_text(message: ast.expr | None) -> str:
    """Return the literal text of an assertion's message; empty where there is none.

    Values in an f-string are shown as … each.
    """
    if isinstance(message, ast.Constant) and isinstance(message.value, str):
        return message.value
    if isinstance(message, ast.JoinedStr):
        parts = [literal_text(part) or VALUE_PLACEHOLDER for part in message.values]
        return "".join(parts) if any(part != VALUE_PLACEHOLDER for part in parts) else ""
    return ""
