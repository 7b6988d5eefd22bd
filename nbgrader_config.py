"""nbgrader in this course: `solutions/` is the source, `exercises/` the release.

`nbgrader generate_assignment 05_kqv`, `autograde`, `generate_feedback`, `export` and the
formgrader all work with it. `nbgrader autograde` and `attncourse grade` grade with the same judge
and write the same gradebook and notebooks; the second is the faster one.
"""

import os

c = get_config()  # nbgrader provides this

c.CourseDirectory.course_id = "attention"
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "exercises"
c.CourseDirectory.submitted_directory = "submitted"
c.CourseDirectory.autograded_directory = "autograded"
c.CourseDirectory.feedback_directory = "feedback"
if os.environ.get("ATTNCOURSE_DB"):  # as for ``attncourse grade``
    address = os.environ["ATTNCOURSE_DB"]
    c.CourseDirectory.db_url = address.replace("postgresql://", "postgresql+psycopg://", 1)

# When assignments are due, and the time zone of dates that name none. `attncourse release` and
# both ways of grading enter it into the gradebook; what is not named here, stays as it is there.
# c.NbGraderAPI.timezone = "Europe/Berlin"
# c.Assignments.due = {"05_kqv": "2026-10-12 23:59"}
# What being late costs: nothing, unless a plugin says so. This one takes 10 % for each day begun.
# c.AssignLatePenalties.plugin_class = "attncourse.grading.nbgrader.late_days.LateDays"
# c.LateDays.percent = 10

# Everything in an assignment's folder is copied into the release, and from there over what
# students hand in: the answers must not be.
c.CourseDirectory.ignore = [
    ".ipynb_checkpoints",
    "__pycache__",
    "*.py",
    "*.pyc",
    "*.md",
    "*.db",
    "feedback",
]

c.ClearSolutions.code_stub = {"python": "# YOUR CODE HERE\nraise NotImplementedError()"}

# An assignment that `attncourse release --variant` put in a variant is released in it.
c.GenerateAssignment.exporter_class = "attncourse.grading.nbgrader.steps.VariantExporter"

# The judge reads and grades a submission; nbgrader saves what it finds in the graded notebook.
c.Autograde.exporter_class = "attncourse.grading.nbgrader.steps.JudgeExporter"
# c.JudgeExporter.follow_on = False  # what fails by a wrong answer that it calls earns nothing
c.Autograde.pre_convert_hook = "attncourse.grading.nbgrader.steps.accept_renamed"
c.Autograde.sanitize_preprocessors = ["nbgrader.preprocessors.CheckCellMetadata"]
c.Autograde.autograde_preprocessors = [
    "nbgrader.preprocessors.SaveAutoGrades",
    "attncourse.grading.nbgrader.steps.AssignLatePenalties",
]

# What students wrote is shown and never run, in feedback pages and in the formgrader. They see
# which tests failed, not the source of the hidden ones.
c.HTMLExporter.filters = {"markdown2html": "attncourse.grading.nbgrader.markdown.harmless_markdown"}
c.GenerateFeedback.exporter_class = "attncourse.grading.nbgrader.feedback.FeedbackExporter"
c.GenerateFeedback.preprocessors = [
    "nbgrader.preprocessors.GetGrades",
    "attncourse.grading.nbgrader.feedback.HideTests",
    "attncourse.grading.nbgrader.feedback.CleanOutputs",
    "nbconvert.preprocessors.CSSHTMLHeaderPreprocessor",
]

# A course's own settings stand in a file of their own, which an upgrade of this course leaves as it
# is: course_settings.py, beside this one, with lines such as those above, and the last word.
if os.path.exists(os.path.join(os.path.dirname(os.path.abspath(__file__)), "course_settings.py")):
    load_subconfig("course_settings.py")
