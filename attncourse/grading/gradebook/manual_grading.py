"""Entering scores and comments that people give by hand, where the formgrader shows them."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from attncourse.grading.errors import UserError
from attncourse.grading.gradebook.connection import CourseGradebook, open_gradebook


class ManualChange(NamedTuple):
    """A new score or comment for a student's cell: ``field`` is "points" or "comment"."""

    student: str
    cell: str
    field: str
    before: float | str | None
    after: float | str


class CommentEdit(NamedTuple):
    """An edit of the comment on a student's cell: ``edit`` makes the new text of the old one."""

    student: str
    cell: str
    edit: Callable[[str], str]


def enter_manual_changes(book: CourseGradebook, name: str, changes: Sequence[ManualChange]) -> None:
    """Enter a person's scores and comments, all of them or none."""
    with open_gradebook(book) as gradebook:
        for change in changes:
            place = change.cell, name, name, change.student
            if change.field == "points":
                grade: Any = gradebook.find_grade(*place)
                grade.manual_score = change.after
                grade.needs_manual_grade = False
            else:
                comment: Any = gradebook.find_comment(*place)
                comment.manual_comment = change.after
        gradebook.db.commit()


def edit_comments(book: CourseGradebook, name: str, edits: Sequence[CommentEdit]) -> None:
    """Edit people's comments, all of them or none.

    Raises ``UserError`` for a student of whom nothing is graded.
    """
    from nbgrader.api import MissingEntry

    with open_gradebook(book) as gradebook:
        comments: list[Any] = []
        for student, cell, _ in edits:
            try:
                comments.append(gradebook.find_comment(cell, name, name, student))
            except MissingEntry:
                raise UserError(
                    f"nothing of {student} is graded in {name}, so no page would have the answer: "
                    f"attncourse grade {name} --student {student}, or leave this answer empty "
                    "where nothing was handed in"
                ) from None
        for comment, (_, _, edit) in zip(comments, edits, strict=True):
            comment.manual_comment = edit(comment.manual_comment or "")
        gradebook.db.commit()
