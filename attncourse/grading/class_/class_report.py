"""``attncourse report``: the summary in the terminal and the page beside the reports."""

from pathlib import Path


def show(course: Path, name: str, html: Path | None = None, db: str | None = None) -> Path:
    """Prints the summary of an assignment, writes its page, and returns where that is."""
    from rich.console import Console

    from attncourse.grading.class_.collect import class_results
    from attncourse.grading.class_.report_page import page
    from attncourse.grading.class_.spreadsheet import write
    from attncourse.grading.class_.summary import summarize
    from attncourse.grading.class_.summary_text import at_a_glance

    summary = summarize(class_results(course, name, db, gradebook=False))
    console = Console()
    console.print(at_a_glance(summary))
    path = write(html or course / "reports" / name / "index.html", page(summary))
    console.print(f"page: {path}", soft_wrap=True, highlight=False, markup=False)
    return path
