"""Reading submissions: damaged files are mended, or unreadable with a reason."""

import json
import random
from contextlib import suppress
from dataclasses import asdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attncourse.grading.errors import Unreadable
from attncourse.grading.judge.judge import grade_submission
from attncourse.grading.submission.newer import version_needed
from attncourse.grading.submission.notebook import (
    Assignment,
    Cell,
    Reading,
    read_cells,
    read_submission_cells,
)
from attncourse.grading.submission.plan import other_assignment_note, plan
from attncourse.grading.submission.source import names_in_cell, repaired_python
from attncourse.grading.submission.text import MAX_FILE_BYTES, conflict_sides
from corpus.damaged import FILE, conflict
from helpers.dedented_text import dedented
from helpers.small_course import NAME, RIGHT, cell, notebook, small
from helpers.small_course import solution as answer

SMALL_ASSIGNMENT = Assignment(NAME, read_cells(small()))


def test_cells_come_with_nbgraders_marks():
    tests = {c.grade_id: c for c in read_cells(small()) if c.test}
    assert list(tests) == ["setup", "points_add", "hidden_add", "points_twice"]
    assert [c.points for c in tests.values()] == [0, 2, 1, 4]
    assert SMALL_ASSIGNMENT.maximum == 7
    assert "setup" not in SMALL_ASSIGNMENT.graded


NAMES_OF_MENDED_FILES = {
    "mark",
    "utf-16",
    "utf-16-be",
    "utf-32",
    "crlf",
    "cr",
    "crlf-inside",
    "format-3",
}
NAMES_OF_MENDED_FILES |= {"no-ids", "padding", "commas", "double-save", "repeated-keys", "numbers"}
NAMES_OF_MENDED_FILES |= {
    "no-cells-among",
    "wrapped",
    "conflict-metadata",
    "percent",
    "no-line-ends",
}
NAMES_OF_MENDED_FILES |= {"much-output", "text-in-json"}


@pytest.mark.parametrize(
    "case", [c for c in FILE if c.name in NAMES_OF_MENDED_FILES], ids=lambda c: c.name
)
def test_a_mended_file_has_the_cells_of_the_intact_one(case):
    reading = read_submission_cells(case.make(small()))
    assert reading.versions == (read_cells(small()),)
    assert bool(reading.notes) == bool(case.says)


def test_an_intact_file_gives_no_notes():
    assert read_submission_cells(small()) == Reading((read_cells(small()),))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty"),
        (b" \n\t\x00\x00", "empty"),
        (b'{"cells": [\n\n  oops', "line 3"),
        (b'{"cells": [\n{"source":\n"a = 1', "line 3: the file breaks off"),
        (b'{"cells": [\n{"source": ""},\n', "line 3: the file breaks off"),
        (b"[1, 2]", "no list of cells"),
        (b'{"cells": [1]}', "no list of cells"),
        (b'{"cells": "none"}', "no list of cells"),
        (b"[" * 100_000, "nested"),
        (b'{"a": ' * 100_000, "nested"),
        (b"I could not do it, sorry.", "plain text"),
        (b"x = (1,\ny = 2", r"Python with a mistake in line 1 \('\(' was never closed\)"),
        (b"https://colab.research.google.com/drive/1a\n", "a link"),
        (b"[InternetShortcut]\nURL=https://a.b/c.ipynb\n", "a link"),
        (b'{"doc_id": "1a", "resource_key": ""}', "a link"),
        (b'<?xml version="1.0"?>\n<!DOCTYPE plist PUBLIC "-//A">\n<plist>', "a link"),
        (b'<svg xmlns="a"/>', "an SVG picture"),
        (b'<?xml version="1.0"?>\n<a/>', "an XML file"),
        (b"From: <Saved by Blink>\nSubject: a\n b\nMIME-Version: 1.0\n", "an e-mail"),
        (b"diff --git a/05.ipynb b/05.ipynb\n", "a list of changes"),
        (b"% a\n\\documentclass{article}\n", "a LaTeX document"),
        (b"Traceback (most recent call last):\n  File", "an error message"),
        (b"In [1]: import numpy\n\nIn [2]: numpy.eye(2)", "a session in a terminal"),
        (b"metadata:\nproject:\n  notebooks:\n  - blocks:\n  - blockGroup: a", "Deepnote"),
        (
            b"project:\n  notebooks:\n  - blocks:\n    - content: x = 1\n      sortingKey: a",
            "Deepnote",
        ),
        (b"f <- function(x) x\nlibrary(torch)", "an R script"),
        (b"name,points,late\nada,3,0\nbo,4,1\n", "a table"),
        (b'{"paragraphs": []}', "Zeppelin"),
        (b'{"code_file": "a.ipynb", "kernel_type": "notebook"}', "Kaggle"),
        (b"\x00\x05\x16\x07\x00\x02\x00\x00Mac OS X", "macOS notes beside a file"),
        (b"\x00\x00\x00\x18ftypheic", "a picture or a film"),
        (b"\x93NUMPY\x01\x00", "an array of NumPy's"),
        (b"PK\x03\x04....archive/data.pkl", "a file of torch's"),
        (b"<!-- saved -->\n<html lang='en'>", "HTML"),
        (b"\x89PNG\r\n", "PNG"),
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS"),
        (b'{\n<<<<<<< a\n"b\n=======\n"c\n>>>>>>> d\n}', "line 2: a merge conflict"),
        (b'{"cells": [' + b"{}," * 5000 + b"{}]}", "more than 5000 cells"),
        (b"# %%\n" * 5001, "more than 5000 cells"),
        (b" " * MAX_FILE_BYTES + b"{}", "over 100 MB|100 MB are read"),
    ],
)
def test_a_file_that_is_no_notebook_has_a_reason(data, reason):
    with pytest.raises(Unreadable, match=reason):
        read_submission_cells(data)


def test_an_unreadable_submission_has_a_report():
    report = grade_submission(b'{"cells": [\n', SMALL_ASSIGNMENT)
    assert (report.status, report.points, report.maximum) == ("unreadable", 0, 7)
    assert "line 2" in report.notes[0]


def test_of_too_much_code_the_longest_statements_go():
    data = "data = [\n" + "1,\n" * 400_000 + "]\n"
    source = f"def f(x):\n    return x\n\n{data}if f(1):\n    a = 1\nelse:\n    a = 2\n"
    reading = read_submission_cells(notebook(cell(source), cell("b = 3")))
    assert [c.source for c in reading.versions[0]] == [source.replace(data, ""), "b = 3"]
    (note,) = reading.notes
    assert "cell 1: `data = [ 1, 1," in note
    assert "1,200,011 characters, was left out" in note
    long_text = "x = '" + "a" * 900_000 + "'"
    assert read_submission_cells(notebook(cell(long_text))).versions[0][0].source == long_text
    picture_cell = cell("![](data:" + "A" * 2_000_000 + ")", code=False)
    assert len(read_submission_cells(notebook(picture_cell)).versions[0]) == 1
    with pytest.raises(Unreadable, match="1,200,000 characters"):
        read_submission_cells(notebook(*(cell("#" * 5000) for _ in range(240))))


@given(st.lists(st.text("ab\n '\"#", max_size=6), min_size=2))
def test_a_source_in_lines_is_joined_to_one_text(lines):
    lines = [line.replace("\n", "") for line in lines]
    ended = [line + "\n" for line in lines[:-1]] + lines[-1:]
    for source in (lines, ended, "\n".join(lines)):
        raw = {"cell_type": "markdown", "source": source, "metadata": {}}
        assert read_cells(json.dumps({"cells": [raw]}).encode())[0].source == "\n".join(lines)


@pytest.mark.parametrize("junk", [None, 3, [], {"nbgrader": 7}, {"nbgrader": {"grade_id": 5}}])
def test_damaged_metadata_counts_as_none(junk):
    raw = {"cell_type": "code", "source": ["a = 1\n", 5, "b = 2"], "metadata": junk}
    assert read_cells(json.dumps({"cells": [raw]}).encode()) == (Cell("a = 1\nb = 2"),)


def test_every_text_read_can_be_encoded():
    raw = '{"cells": [{"cell_type": "code", "source": "\\ud800", "metadata": {"nbgrader": '
    cell_read = read_submission_cells(f'{raw}{{"grade_id": "\\udfff"}}}}}}]}}'.encode()).versions[
        0
    ][0]
    assert (cell_read.source, cell_read.grade_id) == ("\ufffd", "\ufffd")


def test_zero_bytes_are_left_out():
    reading = read_submission_cells(small().replace(b"\n", b"\x00\n"))
    assert reading.versions == (read_cells(small()),)
    assert "zero bytes" in reading.notes[0]


def test_windows_text_and_utf_8_in_one_file_are_read():
    source = "# é ".encode() + b"\xe9 \x93"
    data = notebook(cell("SOURCE")).replace(b"SOURCE", source)
    reading = read_submission_cells(data)
    assert reading.versions[0][0].source == "# é é “"
    assert "not UTF-8" in reading.notes[0]


# --- conflicts --------------------------------------------------------------------------------


def test_both_sides_of_a_conflict_are_versions():
    source = "a = 1\n" + conflict("b = 2", "b = 3\nc = 4", base="b = 0") + "\nd = 5"
    reading = read_submission_cells(notebook(cell("same"), cell(source)))
    assert [version[1].source for version in reading.versions] == [
        "a = 1\nb = 2\nd = 5",
        "a = 1\nb = 3\nc = 4\nd = 5",
    ]
    with pytest.raises(Unreadable, match="conflict"):
        read_cells(notebook(cell(source)))


def test_a_side_that_is_no_notebook_is_left_out():
    lines = small().decode().split("\n")
    torn = "\n".join([lines[0], *conflict("oops", lines[1]).split("\n"), *lines[2:]])
    assert read_submission_cells(torn.encode()).versions == (read_cells(small()),)


@pytest.mark.parametrize(
    "text",
    [
        "=======\na title\n=======",
        "<<<<<<< a\nb",
        "<<<<<<< a\nb\n>>>>>>> c",
        "<<<<<<<< a\nb\n=======\nc\n>>>>>>>> d",
        ">>>>>>> a\n<<<<<<< b",
        "print('<<<<<<< and >>>>>>>')",
    ],
)
def test_incomplete_conflict_markers_are_no_conflict(text):
    assert conflict_sides(text) is None


# --- Python -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a =\u00a01", "a = 1"),
        ("a = “b”", 'a = "b"'),
        ("a = 1 − 2", "a = 1 - 2"),
        ("a\u200b = '\u201c'", "a = '\u201c'"),  # the quote inside a string is no mistake
        ("a = '\u00a0'", None),
        ("a = “", None),
        ("plain nonsense", None),
    ],
)
def test_characters_are_replaced_only_where_that_makes_python(source, expected):
    assert repaired_python(source) == expected


def test_names_in_cell_finds_bound_and_read_names():
    loop = "import a.b as c, d.e\nfor f in g:\n    h: int = i\n"
    source = loop + dedented("""
        def j(k=l):
            m = k
        class n(o): p = q
    """)
    cell_names = names_in_cell(source)
    assert cell_names.bound == set("cdfhjn")
    assert cell_names.read == {*"giloq", "int"}
    assert names_in_cell("return 1") is None
    assert names_in_cell("def f(:") is None


@pytest.mark.parametrize(
    "source",
    ["(" * 90_000, "-" * 90_000 + "1", "a." * 45_000 + "a", "x+" * 45_000 + "x", "!l\n" * 30_000],
)
def test_hostile_sources_are_planned_unchanged(source):
    reading = read_submission_cells(
        notebook(cell(source), cell(source + " "), answer("add", RIGHT[0]))
    )
    steps, _ = plan(reading.versions[0], SMALL_ASSIGNMENT)
    assert len(steps) == 3 + 4


@pytest.mark.parametrize(
    "data",
    [
        b'{"cells": "' + b'\\"' * 9_000_000,
        b'{"cells": [' + b", " * 9_000_000,
        b'{"cells": "' + b"\xe4" * 19_000_000,
        b"<<<<<<<\n" * 2_000_000 + b">>>>>>> ",
        b" " * 19_000_000 + b"<?xml",
    ],
    ids=["quotes", "commas", "bytes", "conflict", "spaces"],
)
def test_twenty_hostile_megabytes_are_read_in_time(data):
    """A reader that takes quadratic time would need days."""
    with pytest.raises(Unreadable):
        read_submission_cells(data)


# --- anything at all ----------------------------------------------------------------------------


def read_if_readable(data: bytes) -> None:
    """Read and plan; assert that each test is planned once and all texts can be encoded."""
    try:
        reading = read_submission_cells(data)
    except Unreadable:
        return
    for version in reading.versions:
        steps, notes = plan(version, SMALL_ASSIGNMENT)
        json.dumps([asdict(step) for step in steps]).encode()
        "".join((*reading.notes, *notes)).encode()
        assert sorted(s.grade_id for s in steps if s.kind == "test") == sorted(
            SMALL_ASSIGNMENT.graded
        )


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_unreadable(data):
    read_if_readable(data)


@settings(max_examples=150, deadline=None)
@given(
    st.recursive(
        st.none() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "cells",
                        "worksheets",
                        "source",
                        "input",
                        "cell_type",
                        "metadata",
                        "nbgrader",
                        "grade_id",
                    ]
                ),
                inner,
            )
        ),
    )
)
def test_any_json_is_read_or_unreadable(content):
    read_if_readable(json.dumps({"cells": content}).encode())


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(["flip", "cut", "insert", "swap"]))
def test_a_torn_notebook_is_read_or_unreadable(seed, change):
    draw = random.Random(seed)
    data = bytearray(small())
    for _ in range(draw.randint(1, 4)):
        a, b = sorted(draw.randrange(len(data)) for _ in range(2))
        if change == "flip":
            data[a] ^= 1 << draw.randrange(8)
        elif change == "cut":
            del data[a : min(b, a + 30)]
        elif change == "insert":
            data[a:a] = draw.randbytes(draw.randint(1, 9))
        else:
            data[a:b] = data[a:b][::-1]
    read_if_readable(bytes(data))


@pytest.mark.parametrize(
    "text",
    [
        "# %%\n# %%time\n" + "#" * 60 + "\nx = 1",  # comments that mark no cell
        "# %%\n" + "\n" * 300_000 + "type = = 1",
        "In [1]: x\n" + "\n" * 90_000 + "= 1",
    ],
)
def test_hostile_texts_are_read_in_linear_time(text):
    """Each of these once kept a regular expression busy for minutes, or for ever."""
    with suppress(Unreadable):
        for cell in read_submission_cells(text.encode()).versions[0]:
            version_needed(cell.source)


def test_a_heading_is_searched_in_linear_time():
    cells = (Cell("\n" * 300_000 + "x", code=False), Cell('check("scoring.bilinear", f)'))
    assignment = Assignment(
        "01_small", (Cell("f()", grade_id="points_f", grade=True, locked=True),)
    )
    assert "this is the notebook of scoring" in other_assignment_note(cells, assignment)
