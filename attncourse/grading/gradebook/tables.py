"""nbgrader's tables as SQLAlchemy needs them here: the columns that are read."""

from sqlalchemy import Boolean, Column, DateTime, Float, Interval, MetaData, String, Table, Text

METADATA = MetaData()


def table_of(name: str, /, **columns: type) -> Table:
    """Return a table with these columns, for queries; no key is needed to read."""
    return Table(name, METADATA, *(Column(column, kind()) for column, kind in columns.items()))


course = table_of("course", id=String)
assignment = table_of("assignment", id=String, name=String, duedate=DateTime, course_id=String)
notebook = table_of("notebook", id=String, name=String, assignment_id=String)
base_cell = table_of("base_cell", id=String, name=String, notebook_id=String)
grade_cell = table_of("grade_cells", id=String, max_score=Float)
task_cell = table_of("task_cells", id=String, max_score=Float)
student = table_of(
    "student", id=String, last_name=String, first_name=String, email=String, lms_user_id=String
)
submitted_assignment = table_of(
    "submitted_assignment",
    id=String,
    assignment_id=String,
    student_id=String,
    timestamp=DateTime,
    extension=Interval,
)
submitted_notebook = table_of(
    "submitted_notebook",
    id=String,
    assignment_id=String,
    notebook_id=String,
    late_submission_penalty=Float,
)
grade = table_of(
    "grade",
    id=String,
    cell_id=String,
    notebook_id=String,
    auto_score=Float,
    manual_score=Float,
    extra_credit=Float,
    needs_manual_grade=Boolean,
)
comment = table_of("comment", id=String, cell_id=String, notebook_id=String, manual_comment=Text)
