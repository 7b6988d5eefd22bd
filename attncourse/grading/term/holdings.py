"""A gradebook's records of one student: counted, emptied of comments, or removed by nbgrader."""

from attncourse.grading.course.gradebook import Book, connected, opened
from attncourse.grading.report import count

COUNTS = {
    "submission": "select count(*) from submitted_assignment where student_id = :id",
    "score by a person": """
        select count(*) from grade g join submitted_notebook n on n.id = g.notebook_id
        join submitted_assignment s on s.id = n.assignment_id
        where s.student_id = :id and g.manual_score is not null""",
    "comment": """
        select count(*) from comment c join submitted_notebook n on n.id = c.notebook_id
        join submitted_assignment s on s.id = n.assignment_id
        where s.student_id = :id and coalesce(c.manual_comment, '') != ''""",
}


def held_by(book: Book, student: str) -> str:
    """Return what the gradebook has of a student, in words; empty where it does not know them."""
    from sqlalchemy import text

    with connected(book, to_read=True) as connection:
        query = text("select count(*) from student where id = :id")
        if not connection.execute(query, {"id": student}).scalar_one():
            return ""
        numbers = {
            what: connection.execute(text(query), {"id": student}).scalar_one()
            for what, query in COUNTS.items()
        }
    scores = numbers.pop("score by a person")
    parts = [count(number, what) for what, number in numbers.items()]
    return f"the student, {', '.join(parts)}, {count(scores, 'score')} by a person"


def remove_student(book: Book, student: str) -> None:
    """Remove a student with all submissions, and what an SQLite file keeps of deleted rows."""
    with opened(book) as gradebook:
        gradebook.remove_student(student)
    compact(book)


def empty_comments(book: Book, student: str) -> None:
    """Remove what was written to a student; the points stay."""
    with opened(book) as gradebook:
        for submission in gradebook.find_student(student).submissions:
            for comment in (c for notebook in submission.notebooks for c in notebook.comments):
                comment.auto_comment = comment.manual_comment = None
        gradebook.db.commit()
    compact(book)


def compact(book: Book) -> None:
    """Have an SQLite file written anew, without what stood in its deleted rows."""
    if book.file is not None:
        with connected(book) as connection:
            connection.exec_driver_sql("vacuum")
