"""A notebook with a written answer."""

from helpers.small_course import RIGHT as RIGHT_ANSWERS
from helpers.small_course import cell, graded, notebook, solution

QUESTION = "## Why twice?\n\nExplain in *one* sentence, as you would to a friend."
SOLVED = "\n\n### BEGIN SOLUTION\nBecause.\n### END SOLUTION"


def with_answer(text: str) -> bytes:
    question = cell(QUESTION + text, "why", code=False, solution=True, grade=True, points=3)
    return notebook(
        solution("twice", RIGHT_ANSWERS[1]),
        graded("points_twice", "4 * (twice(2) == 4)", 4),
        question,
    )
