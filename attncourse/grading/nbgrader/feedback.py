"""The page of ``nbgrader generate_feedback``; nbgrader_config.py names these classes."""

from importlib.resources import files
from pathlib import Path
from typing import Any

import nbgrader
from nbconvert.exporters import HTMLExporter
from nbconvert.preprocessors import Preprocessor
from nbgrader.preprocessors import ClearHiddenTests
from nbgrader.utils import is_grade, is_solution
from traitlets import List

from attncourse.grading.nbgrader.markdown import clean_html, page_markdown

KINDS_SHOWN = ("text/html", "text/plain", "image/png", "image/jpeg")


class CleanOutputs(Preprocessor):
    """Cleans the outputs of cells, whoever has graded the notebook."""

    # pyrefly: ignore [bad-override]  nbconvert leaves the return type out
    def preprocess_cell(self, cell: Any, resources: Any, index: int) -> tuple[Any, Any]:
        """Return the cell with outputs of known kinds alone, and their HTML cleaned."""
        for output in cell.get("outputs", ()):
            output.metadata = {}
            if "data" in output:
                output.data = {
                    kind: output.data[kind] for kind in KINDS_SHOWN if kind in output.data
                }
            if "text/html" in output.get("data", {}):
                output.data["text/html"] = clean_html(output.data["text/html"], styles=True)
        return cell, resources


class HideTests(ClearHiddenTests):
    """Takes hidden tests out of the instructor's cells, which alone have any."""

    display_data_priority = List(config=True)  # set for all of nbgrader's steps

    def preprocess_cell(self, cell: Any, resources: Any, cell_index: int) -> tuple[Any, Any]:
        """Return an instructor's test without its hidden part; another cell as it is."""
        if is_grade(cell) and not is_solution(cell):
            return super().preprocess_cell(cell, resources, cell_index)
        return cell, resources


class FeedbackExporter(HTMLExporter):
    """nbgrader's feedback page in this course's template."""

    @property
    def default_config(self) -> Any:
        """Return the configuration of nbgrader's page, with this course's template and Markdown."""
        config: Any = super().default_config.copy()  # a Config of traitlets
        formgrader_templates = (
            Path(nbgrader.__file__).parent / "server_extensions" / "formgrader" / "templates"
        )
        config.FeedbackExporter.template_name = "attncourse_feedback"
        config.FeedbackExporter.extra_template_basedirs = [
            str(files("attncourse.grading.nbgrader") / "templates"),
            str(formgrader_templates),
        ]
        config.FeedbackExporter.extra_template_paths = [str(formgrader_templates)]
        config.FeedbackExporter.filters = {"markdown2html": page_markdown}
        return config
