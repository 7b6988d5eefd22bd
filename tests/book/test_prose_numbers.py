"""The numbers in the pages' texts are what the pages compute, and a planted wrong one is found."""

from __future__ import annotations

import math
import re
import subprocess
import sys

import nbformat
import prose_numbers
import pytest
from course import load
from forked_kernel import checks_that_may_fail
from jupyter_cache.executors.utils import single_nb_execution

from attncourse.figures.prose_numbers import MIME, PROSE_TAG, compare_prose, written_numbers
from helpers.project import ROOT

PAGES = [  # that compute something
    page
    for page in load(ROOT).pages
    if prose_numbers.CODE.search((ROOT / f"{page}.md").read_text(encoding="utf-8"))
]
PAGE = """---
jupytext: x
---
# A title

A head solves 19 of 20 runs, *half* of them in 3.1 s. {cite:p}`somebody` reports 8.8 nats.

```{code-cell} ipython3
---
mystnb:
  image:
    alt: >-
      The line falls from 94
      to 72 %.
---
plot(0.123)
```
"""


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_the_numbers_of_a_page_are_what_it_computes(built, page):
    source = (ROOT / f"{page}.md").read_text(encoding="utf-8")
    executed = prose_numbers.executed_page(load(ROOT), page)
    assert not prose_numbers.read_page(source, executed).faults


def page_with(*records: tuple[str, list[str]]) -> list[str]:
    """Return the faults of the page above whose last run recorded these phrases."""
    outputs = [
        nbformat.v4.new_output(
            "display_data", {MIME: {"phrase": phrase, "differences": differences}}
        )
        for phrase, differences in records
    ]
    cell = nbformat.v4.new_code_cell("", outputs=outputs)
    return prose_numbers.read_page(PAGE, nbformat.v4.new_notebook(cells=[cell])).faults


def test_a_number_that_no_check_covers_is_found():
    faults = page_with()
    assert [re.search("“(.*?)”", fault)[1] for fault in faults] == ["19", "3.1", "94", "72"]


def test_a_phrase_covers_its_numbers_across_lines():
    assert not page_with(("19 of 20 runs", []), ("in 3.1 s", []), ("falls from 94 to 72 %", []))


@pytest.mark.parametrize("planted", ["18 of 20 runs", "19 of 21 runs", "91 of 20 runs"])
def test_a_number_that_was_changed_in_the_text_is_found(planted):
    source = PAGE.replace("19 of 20 runs", planted)
    records = nbformat.v4.new_output(
        "display_data", {MIME: {"phrase": "19 of 20 runs", "differences": []}}
    )
    run = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("", outputs=[records])])
    faults = prose_numbers.read_page(source, run).faults
    assert "“19 of 20 runs” is checked but does not stand in the page" in faults


def test_a_number_that_the_page_computes_otherwise_is_found():
    assert "“72” in “to 72 %” is 0.75" in page_with(("to 72 %", compare_prose("to 72 %", 0.75)))


@pytest.mark.parametrize(
    ("phrase", "values"),
    [
        ("97 %", [0.974]),
        ("94, 96 and 84 %", [0.94, 0.96, 0.84]),
        ("0.18–0.35", [0.184, 0.352]),
        ("1,342 of 3e-5", [1342, 3.4e-5]),
        ("−0.68, then 47\\,\\%", [-0.684, 0.47]),
        ("nineteen of twenty", [19, 20]),
        ("twice in 20 runs", [20]),
        ("twice in 20 runs", [2, 20]),
    ],
)
def test_a_number_agrees_with_what_rounds_to_it(phrase, values):
    assert compare_prose(phrase, *values) == []


@pytest.mark.parametrize(
    ("phrase", "values"),
    [
        ("97 %", [0.95]),
        ("97 %", [97]),
        ("19 of 20", [18, 20]),
        ("0.79", [0.77]),
        ("−0.68", [0.68]),
        ("nineteen", [18]),
        ("0.79", [math.nan]),
        ("26 ms", [27]),
    ],
)
def test_different_numbers_are_distinguished(phrase, values):
    assert len(compare_prose(phrase, *values)) == 1


def test_a_difference_may_be_allowed_where_the_machine_decides():
    assert compare_prose("1.7 times", 1.9)
    assert not compare_prose("1.7 times", 1.9, within=0.15)


def test_a_failing_check_is_reported_and_the_page_runs_on():
    page = nbformat.v4.new_notebook()
    for source, tags in ("share = 1 / 3", []), ("assert share > 1 / 2", [PROSE_TAG]), ("share", []):
        page.cells.append(nbformat.v4.new_code_cell(source, metadata={"tags": tags}))
    tags = [list(cell.metadata["tags"]) for cell in page.cells]
    with checks_that_may_fail(page):
        ran = single_nb_execution(page, ".", 60, False)
    assert ran.err is None
    assert [
        cell.metadata["tags"] for cell in page.cells
    ] == tags  # by which outputs are found again
    assert page.cells[2].execution_count == 3
    (fault,) = prose_numbers.read_page("", page).faults
    assert fault == "a check of the text ended in AssertionError, at “assert share > 1 / 2”"


def test_a_kernel_shows_plots():
    """Matplotlib comes after its backend has been named, or pages have none of their plots."""
    code = "import book, forked_kernel, sys; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT / "tools").returncode == 0


def test_an_error_that_a_page_shows_is_none_of_its_checks():
    error = nbformat.v4.new_output("error", ename="ValueError", evalue="x", traceback=[])
    cell = nbformat.v4.new_code_cell("raise", outputs=[error])
    assert not prose_numbers.read_page("", nbformat.v4.new_notebook(cells=[cell])).faults


def test_as_many_values_as_numbers_are_expected():
    with pytest.raises(ValueError, match="expected 3 numbers, its numbers are 19, 20"):
        compare_prose("19 of 20", 1, 2, 3)


def test_names_with_points_are_no_numbers_of_a_run():
    source = "In head 13.8, Fig. 7.4 and exercise 12.2 $0.5^{2}$ it is `0.7` and $\\approx 0.31$."
    assert [n[:6] for n in prose_numbers.uncovered_numbers(source, [])] == ["“0.31”"]
    assert written_numbers("13.8's")[0].value == 13.8
