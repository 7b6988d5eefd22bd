"""One student's feedback as an HTML page that asks nothing of any network."""

from pathlib import Path

from markupsafe import Markup

from attncourse.grading.errors import Unreadable
from attncourse.grading.feedback.exercise_feedback import feedback_by_exercise, other_cells
from attncourse.grading.graded_notebook import verdict_html
from attncourse.grading.harmless import defused_markdown, harmless_message
from attncourse.grading.nbgrader.markdown import page_markdown
from attncourse.grading.report import Report, score_in_words
from attncourse.grading.results.class_results import StudentResult
from attncourse.grading.results.page import HERE as SHARED
from attncourse.grading.results.page import load_template, name_markup, text_markup
from attncourse.grading.submission.notebook import Assignment, Cell, read_submission_cells

PAGE_FOLDER = Path(__file__).parent


def student_page(assignment: Assignment, notebook: bytes, r: StudentResult, report: Report) -> str:
    """Return the HTML page on what a student handed in.

    Every text in it is escaped, and there is no script.
    """
    try:
        cells = read_submission_cells(notebook).versions[report.version]
    except Unreadable:
        cells = ()
    exercises = feedback_by_exercise(assignment, cells, r, report)
    template = load_template(PAGE_FOLDER / "page.html.j2")
    return template.render(
        title=assignment_title(assignment),
        r=r,
        notes=[harmless_message(note) for note in report.notes],
        sandbox=report.sandbox,
        exercises=exercises,
        anchors={exercise.name: f"exercise-{n}" for n, exercise in enumerate(exercises, start=1)},
        others=list(other_cells(assignment, cells, exercises)),
        waiting=[exercise for exercise in exercises if exercise.person == "waits"],
        style=Markup(
            "".join((place / "page.css").read_text("utf-8") for place in (SHARED, PAGE_FOLDER))
        ),
        score=score_in_words,
        verdict=lambda verdict: Markup(verdict_html(verdict)),
        prose=prose_markup,
        text=text_markup,
        name=name_markup,
    )


def prose_markup(source: str, label: str) -> Markup:
    """Return an answer in words as HTML, without the heading that stands above it already."""
    head, _, rest = source.strip().partition("\n")
    return Markup(page_markdown(defused_markdown(rest if head.lstrip("# ") == label else source)))


def assignment_title(assignment: Assignment) -> str:
    """Return the heading of the assignment's notebook, or its name."""
    first: Cell | None = next((c for c in assignment.cells if not c.code), None)
    head = first.source.partition("\n")[0] if first else ""
    return head.lstrip("# ").strip() if head.startswith("# ") else assignment.name
