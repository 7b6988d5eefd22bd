"""nbgrader in this course: `solutions/` is the source, `exercises/` the release.

`nbgrader generate_assignment 05_kqv`, `autograde`, `generate_feedback`, `export` and the
formgrader all work with it; so does `attncourse grade`, which writes the same gradebook.
"""

c = get_config()  # nbgrader provides this

c.CourseDirectory.course_id = "attention"
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "exercises"
c.CourseDirectory.submitted_directory = "submitted"
c.CourseDirectory.autograded_directory = "autograded"
c.CourseDirectory.feedback_directory = "feedback"

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

# A cell that never ends costs itself; the first one also waits for torch to be imported.
c.Execute.timeout = 60
c.Execute.interrupt_on_timeout = True

# Students see which tests failed, not the source of the hidden ones.
c.GenerateFeedback.preprocessors = [
    "nbgrader.preprocessors.GetGrades",
    "nbgrader.preprocessors.ClearHiddenTests",
    "nbconvert.preprocessors.CSSHTMLHeaderPreprocessor",
]
