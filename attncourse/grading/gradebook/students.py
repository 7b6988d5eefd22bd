"""Students in the gradebook: entered from a list, counted, emptied of comments, or removed."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from attncourse.grading.gradebook.connection import CourseGradebook, connect_to, open_gradebook
from attncourse.grading.gradebook.read import with_submission
from attncourse.grading.report import count

if TYPE_CHECKING:
    from sqlalchemy import Select


def enter_students(book: CourseGradebook, fields: Mapping[str, Mapping[str, str]]) -> None:
    """Enter students by id, with nbgrader's fields for them; nobody is taken out."""
    with open_gradebook(book) as gradebook:
        for student, entered in fields.items():
            # pyrefly: ignore [bad-argument-type]  nbgrader says that each of these is a dict
            gradebook.update_or_create_student(student, **entered)


def count_queries(student: str) -> "dict[str, Select]":
    """Return queries, by what they count, for what the gradebook has of a student."""
    from sqlalchemy import func, select

    from attncourse.grading.gradebook.tables import comment, grade, submitted_assignment

    number = select(func.count())
    is_theirs = submitted_assignment.c.student_id == student
    grades = number.select_from(with_submission(grade)).where(is_theirs)
    comments = number.select_from(with_submission(comment)).where(is_theirs)
    return {
        "submission": number.select_from(submitted_assignment).where(is_theirs),
        "score by a person": grades.where(grade.c.manual_score.is_not(None)),
        "comment": comments.where(func.coalesce(comment.c.manual_comment, "") != ""),
    }


def student_records(book: CourseGradebook, student: str) -> str:
    """Return what the gradebook has of a student, in words; "" if it does not have them."""
    from sqlalchemy import func, select

    from attncourse.grading.gradebook.tables import student as students

    with connect_to(book, to_read=True) as connection:
        query = select(func.count()).where(students.c.id == student)
        if not connection.execute(query).scalar_one():
            return ""
        numbers = {
            noun: connection.execute(query).scalar_one()
            for noun, query in count_queries(student).items()
        }
    scores = numbers.pop("score by a person")
    parts = [count(number, noun) for noun, number in numbers.items()]
    return f"the student, {', '.join(parts)}, {count(scores, 'score')} by a person"


def remove_student(book: CourseGradebook, student: str) -> None:
    """Remove a student with all submissions, and their deleted rows from an SQLite file."""
    with open_gradebook(book) as gradebook:
        gradebook.remove_student(student)
    rewrite_sqlite_file(book)


def empty_comments(book: CourseGradebook, student: str) -> None:
    """Remove comments that were written to a student; the points stay."""
    with open_gradebook(book) as gradebook:
        for submission in gradebook.find_student(student).submissions:
            for comment in (c for notebook in submission.notebooks for c in notebook.comments):
                comment.auto_comment = comment.manual_comment = None
        gradebook.db.commit()
    rewrite_sqlite_file(book)


def rewrite_sqlite_file(book: CourseGradebook) -> None:
    """Have an SQLite file written anew, without the contents of deleted rows."""
    if book.file is not None:
        with connect_to(book) as connection:
            connection.exec_driver_sql("vacuum")
