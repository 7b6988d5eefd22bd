"""Honest submissions that something has happened to, and the points a fair person gives them.

``make`` takes the notebook as its student left it, with every answer right, and returns what was
handed in. Most use the assignment of ``small_course``, some chapter 5's with the sample answers.
"""

import codecs
import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from helpers.small_course import RIGHT, STUB

FULL = {"points_add": 2.0, "hidden_add": 1.0, "points_twice": 4.0}
NOTHING = dict.fromkeys(FULL, 0.0)
ONLY_TWICE = NOTHING | {"points_twice": 4.0}
Cells = list[dict[str, Any]]


@dataclass(frozen=True)
class Damaged:
    """One case. ``deserves`` None stands for everything; ``kqv`` for chapter 5's assignment.

    ``says`` is part of a note that the student gets.
    """

    name: str
    make: Callable[[bytes], bytes] = field(repr=False)
    why: str
    deserves: dict[str, float] | None = None
    says: str = ""
    kqv: bool = False


def cells(change: Callable[[Cells], Cells | None]) -> Callable[[bytes], bytes]:
    """A case that changes the list of cells, in place or to another."""

    def make(data: bytes) -> bytes:
        content = json.loads(data)
        changed = change(content["cells"])
        content["cells"] = content["cells"] if changed is None else changed
        return json.dumps(content, indent=1).encode()

    return make


def text(change: Callable[[str], str], encoding: str = "utf-8") -> Callable[[bytes], bytes]:
    """A case that changes the file's text, or saves it in another encoding."""
    return lambda data: change(data.decode()).encode(encoding)


def content_of(change: Callable[[dict], Any]) -> Callable[[bytes], bytes]:
    """A case that makes another JSON of the notebook's."""
    return lambda data: json.dumps(change(json.loads(data))).encode()


def by_number(content: dict) -> dict:
    return content | {"cells": dict(enumerate(content["cells"]))}


def noted(comment: str, encoding: str) -> Callable[[bytes], bytes]:
    """A case with a comment in every cell of code, saved in a code page."""

    def make(data: bytes) -> bytes:
        content = json.loads(data)
        for cell in content["cells"]:
            if cell["cell_type"] == "code":
                cell["source"] = f"# {comment}\n{''.join(cell['source'])}  # {comment}"
        return json.dumps(content, ensure_ascii=False).encode(encoding)

    return make


def other_file(data: bytes) -> Callable[[bytes], bytes]:
    return lambda _: data


def cell_of_id(notebook_cells: Cells, grade_id: str) -> dict[str, Any]:
    return next(c for c in notebook_cells if nbgrader_metadata(c).get("grade_id") == grade_id)


def nbgrader_metadata(cell: dict[str, Any]) -> dict[str, Any]:
    return cell["metadata"].get("nbgrader", {})


def new_cell(source: str, kind: str = "code", **metadata: Any) -> dict[str, Any]:
    more = {"outputs": [], "execution_count": None} if kind == "code" else {}
    return {"cell_type": kind, "metadata": metadata, "source": source, **more}


def answered(grade_id: str, source: str) -> Callable[[bytes], bytes]:
    """The right notebook with another text in one cell."""
    return cells(lambda notebook_cells: cell_of_id(notebook_cells, grade_id).update(source=source))


def is_test(cell: dict[str, Any]) -> bool:
    return bool(nbgrader_metadata(cell).get("locked"))


# --- the file -----------------------------------------------------------------------------------


def old_format(data: bytes) -> bytes:
    content = json.loads(data)
    for cell in content["cells"]:
        cell.pop("id", None)
        cell["input"] = cell.pop("source").splitlines(keepends=True)
    return json.dumps({"nbformat": 3, "worksheets": [{"cells": content["cells"]}]}).encode()


def without_ids(notebook_cells: Cells) -> None:
    for cell in notebook_cells:
        del cell["id"]
        cell["source"] = cell["source"].splitlines(keepends=True)


def windows_text(data: bytes) -> bytes:
    source = "# Größe – für „alle“\n" + RIGHT[1]
    content = json.loads(answered("twice", source)(data))
    return json.dumps(content, ensure_ascii=False, indent=1).encode("cp1252")


def line_ends(notebook_cells: Cells) -> None:
    for cell in notebook_cells:
        cell["source"] = cell["source"].replace("\n", "\r\n")


def spare_commas(data: str) -> str:
    return data.replace("}\n ]", "},\n ]").replace('"metadata": {}', '"metadata": {"a, ]": 1,}')


def double_save(data: str) -> str:
    return data + data[len(data) // 2 :]


def repeated_keys(data: str) -> str:
    return data.replace('"source": ', '"source": "raise SystemExit", "source": ')


def strange_numbers(data: str) -> str:
    huge = "9" * 5000
    return data.replace(
        '"metadata": {', f'"metadata": {{"a": NaN, "b": -Infinity, "c": {huge}, ', 1
    )


def surrogates(data: str) -> str:
    return data.replace("return 2 * a", "return 2 * a  # \\ud83d and \\udc00")


def raw_controls(data: str) -> str:
    return data.replace("return 2 * a\\n", "return 2 * a\t#\n")


def conflict(our_text: str, their_text: str, base: str | None = None) -> str:
    middle = "" if base is None else f"||||||| parent\n{base}\n"
    return f"<<<<<<< HEAD\n{our_text}\n{middle}=======\n{their_text}\n>>>>>>> main"


def conflict_of_lines(data: str) -> str:
    """Two students' answers to one exercise, as git leaves them: lines of JSON."""
    lines = data.split("\n")
    n = next(n for n, line in enumerate(lines) if "return 2 * a" in line)
    wrong = lines[n].replace("2 * a", "a ** 2 - 7")
    return "\n".join([*lines[:n], *conflict(wrong, lines[n]).split("\n"), *lines[n + 1 :]])


def conflict_of_metadata(data: str) -> str:
    line = '  "display_name": "Python 3",'
    assert line[2:] in data
    lines = data.split("\n")
    n = next(n for n, line in enumerate(lines) if '"display_name"' in line)
    changed_line = lines[n].replace("Python 3", "Python 3.12")
    return "\n".join([*lines[:n], *conflict(lines[n], changed_line).split("\n"), *lines[n + 1 :]])


def percent_script(data: bytes) -> bytes:
    pieces = ["# ---\n# jupyter:\n#   jupytext:\n#     format_name: percent\n# ---\n"]
    for cell in json.loads(data)["cells"]:
        if cell["cell_type"] == "markdown":
            body = "\n".join("# " + line for line in cell["source"].split("\n"))
            pieces.append(f"# %% [markdown]\n{body}\n")
        else:
            metadata = (
                f" nbgrader={json.dumps(nbgrader_metadata(cell))}"
                if nbgrader_metadata(cell)
                else ""
            )
            pieces.append(f"# %%{metadata}\n{cell['source']}\n")
    return "\n".join(pieces).encode()


def exported_script(data: bytes) -> bytes:
    code_sources = [c["source"] for c in json.loads(data)["cells"] if c["cell_type"] == "code"]
    return (
        "#!/usr/bin/env python\n# coding: utf-8\n\n" + "\n\n# In[7]:\n\n\n".join(code_sources)
    ).encode()


def plain_script(data: bytes) -> bytes:
    return f"limit = 3\n!ls\n\n{RIGHT[0]}\n\nadd('a')\n\n{RIGHT[1]}\n".encode()


def lines_without_ends(notebook_cells: Cells) -> None:
    for cell in notebook_cells:
        cell["source"] = cell["source"].split("\n")


def much_output(data: bytes) -> bytes:
    """Thirty megabytes, of them a picture, a progress bar and a table."""
    content = json.loads(data)
    shown = [
        {"output_type": "display_data", "metadata": {}, "data": {"image/png": "iVBOR" * 2_000_000}},
        {"output_type": "stream", "name": "stderr", "text": ["\r 50% █████▌\n"] * 500_000},
        {"output_type": "execute_result", "data": {"text/html": "<td>0.1</td>" * 800_000}},
    ]
    for cell, output in zip(content["cells"][1:], shown, strict=False):
        cell["outputs"] = [output]
    return json.dumps(content, ensure_ascii=False).encode()


def cell_of_data(notebook_cells: Cells) -> None:
    """Two megabytes of numbers, and an answer above and below them; a picture pasted as text."""
    numbers = "data = [\n" + "    0.125, 0.25, 0.5,\n" * 100_000 + "]"
    answer = cell_of_id(notebook_cells, "twice")
    answer["source"] = f"import math\n{numbers}\n{answer['source']}"
    notebook_cells.insert(
        1, new_cell("![](data:image/png;base64," + "A" * 3_000_000 + ")", "markdown")
    )
    notebook_cells.insert(2, new_cell("picture = '" + "A" * 1_500_000 + "'"))


def marimo(data: bytes) -> bytes:
    pieces = ["import marimo\n\n__generated_with = '0.9'\napp = marimo.App(width='medium')\n"]
    for cell in json.loads(data)["cells"]:
        source = cell["source"]
        if cell["cell_type"] == "markdown":
            source = f'mo.md(r"""\n{source}\n""")'
        if source == RIGHT[1]:
            pieces.append(f"@app.function\n{RIGHT[1].split(chr(10), 1)[1].rsplit(chr(10), 1)[0]}\n")
            continue
        body = "".join(f"    {line}\n" for line in source.split("\n"))
        pieces.append(f"@app.cell(hide_code=True)\ndef _(mo):\n{body}    return (mo,)\n")
    return "\n\n".join([*pieces, "if __name__ == '__main__':\n    app.run()\n"]).encode()


def fenced(opening: str, header: str = "") -> Callable[[bytes], bytes]:
    """As Markdown with code in it."""

    def make(data: bytes) -> bytes:
        pieces = [header]
        for cell in json.loads(data)["cells"]:
            code = cell["cell_type"] == "code"
            pieces.append(f"{opening}\n{cell['source']}\n```" if code else cell["source"])
        return "\n\n".join(pieces).encode()

    return make


def databricks(data: bytes) -> bytes:
    pieces = []
    for cell in json.loads(data)["cells"]:
        lines = cell["source"].split("\n")
        text = cell["source"] if cell["cell_type"] == "code" else "%md\n" + cell["source"]
        marked = "\n".join("# MAGIC " + line for line in text.split("\n"))
        pieces.append("\n".join(lines) if cell["cell_type"] == "code" else marked)
    return "# Databricks notebook source\n" + "\n\n# COMMAND ----------\n\n".join(pieces)


def magics_exported(data: bytes) -> bytes:
    """nbconvert's script of cells with magics of their own."""
    magic_calls = ("time", "", RIGHT[0]), ("writefile", "helper.py", RIGHT[1])
    calls = ["get_ipython().run_cell_magic({!r}, {!r}, {!r})".format(*call) for call in magic_calls]
    return "\n\n# In[ ]:\n\n".join(["# coding: utf-8", *calls, "from helper import twice"]).encode()


def with_a_mistake(data: bytes) -> bytes:
    """A script of which one definition is no Python."""
    return f"limit = 3\n\n{RIGHT[0]}\n\ndef helper(:\n    pass\n\n{RIGHT[1]}\n".encode()


def conflict_of_cells(notebook_cells: Cells) -> None:
    """What nbdime leaves: both versions of a cell between cells that say so."""
    answer = cell_of_id(notebook_cells, "twice")
    at = notebook_cells.index(answer)
    wrong = answer | {"source": "def twice(a):\n    return a", "id": "remote"}
    bold = '<span style="color:red">**{}**</span>'.format
    before, between, after = "&lt;&lt;&lt;&lt;&lt;&lt;&lt; local", "=======", ">>>>>>> remote"
    notebook_cells[at : at + 1] = [
        new_cell(bold(before), "markdown"),
        answer,
        new_cell(bold(between), "markdown"),
        wrong,
        new_cell(bold(after), "markdown"),
    ]


def fenced_answer(notebook_cells: Cells) -> None:
    """An answer typed into a text cell of its own, as a chat shows code."""
    answer = cell_of_id(notebook_cells, "twice")
    notebook_cells.append(new_cell(f"```python\n{answer['source']}\n```", "markdown"))
    answer["source"] = STUB


def too_many(notebook_cells: Cells) -> Cells:
    return [*notebook_cells, *(new_cell("") for _ in range(5000))]


# --- the cells ----------------------------------------------------------------------------------


def bare(notebook_cells: Cells) -> None:
    for cell in notebook_cells:
        cell["metadata"] = {}


def strange_ids(notebook_cells: Cells) -> None:
    for n, cell in enumerate(notebook_cells):
        if nbgrader_metadata(cell):
            nbgrader_metadata(cell)["grade_id"] = f"cell-{n:016x}"


def edited_marks(notebook_cells: Cells) -> None:
    for cell in notebook_cells:
        if nbgrader_metadata(cell):
            test = bool(nbgrader_metadata(cell)["grade"])
            cell["metadata"]["nbgrader"] |= {
                "grade": not test,
                "locked": False,
                "points": 100,
                "solution": test,
                "task": True,
            }


def swapped(first: str, second: str) -> Callable[[bytes], bytes]:
    def change(notebook_cells: Cells) -> None:
        a, b = cell_of_id(notebook_cells, first), cell_of_id(notebook_cells, second)
        a["metadata"], b["metadata"] = b["metadata"], a["metadata"]

    return cells(change)


def answer_with_test_id(notebook_cells: Cells) -> None:
    nbgrader_metadata(cell_of_id(notebook_cells, "add"))["grade_id"] = "points_add"


def same_id_everywhere(notebook_cells: Cells) -> None:
    for cell in notebook_cells:
        if nbgrader_metadata(cell):
            nbgrader_metadata(cell)["grade_id"] = "points_twice"


def answer_over_test(notebook_cells: Cells) -> None:
    cell_of_id(notebook_cells, "points_twice")["source"] = RIGHT[1] + "\n\n4 * (twice(2) == 4)"
    cell_of_id(notebook_cells, "twice")["source"] = STUB


def moved(chosen: Callable[[dict], bool], *, last: bool) -> Callable[[bytes], bytes]:
    return cells(
        lambda notebook_cells: sorted(notebook_cells, key=lambda cell: chosen(cell) == last)
    )


def copied(grade_id: str, source: str, *, before: bool) -> Callable[[bytes], bytes]:
    """A second cell with the same grade id."""

    def change(notebook_cells: Cells) -> None:
        cell = cell_of_id(notebook_cells, grade_id)
        notebook_cells.insert(
            notebook_cells.index(cell) + (not before), cell | {"source": source, "id": "copy"}
        )

    return cells(change)


def retyped(kind: str) -> Callable[[Cells], None]:
    def change(notebook_cells: Cells) -> None:
        cell = cell_of_id(notebook_cells, "twice")
        cell["cell_type"] = kind
        del cell["outputs"], cell["execution_count"]

    return change


def parked_attempt(notebook_cells: Cells) -> None:
    """An old attempt made Markdown to keep it, and the answer in a cell of its own."""
    answer = cell_of_id(notebook_cells, "twice")
    notebook_cells.insert(2, new_cell(answer["source"]))
    retyped("markdown")(notebook_cells)
    answer["source"] = "def twice(a):\n    return a"


def below_everything(notebook_cells: Cells) -> None:
    notebook_cells.append(new_cell(cell_of_id(notebook_cells, "twice")["source"]))
    cell_of_id(notebook_cells, "twice")["source"] = STUB


def split(grade_id: str, *pieces: str, keep: bool = True) -> Callable[[bytes], bytes]:
    """A cell cut into these; Jupyter gives each of them the metadata."""

    def change(notebook_cells: Cells) -> None:
        cell = cell_of_id(notebook_cells, grade_id)
        at = notebook_cells.index(cell)
        metadata = cell["metadata"] if keep else {}
        notebook_cells[at : at + 1] = [
            cell
            | {"source": piece, "id": f"piece-{n}", "metadata": metadata if n else cell["metadata"]}
            for n, piece in enumerate(pieces)
        ]

    return cells(change)


def one_cell(notebook_cells: Cells) -> Cells:
    return [new_cell("\n\n".join(["limit = 3", *RIGHT]))]


def tests_edited(notebook_cells: Cells) -> None:
    for cell in notebook_cells:
        if nbgrader_metadata(cell).get("grade"):
            cell["source"] = "7"


def spaced_copies(notebook_cells: Cells) -> Cells:
    """The tests without their metadata, formatted by an editor, twice."""
    tests = [c for c in notebook_cells if nbgrader_metadata(c).get("grade")]
    loose = [new_cell("\n" + c["source"].replace("\n", "  \n\n") + "\n") for c in tests]
    return [*(c for c in notebook_cells if c not in tests), *loose, *loose]


def prompted(first: str, rest: str) -> str:
    """The right answer with a session's prompts before its lines."""
    head, *lines = RIGHT[1].split("\n")
    return "\n".join([first + head, *(rest + line for line in lines)])


def helper_file(notebook_cells: Cells) -> None:
    """One in a folder, and what it lacks in a second piece."""
    cell_of_id(notebook_cells, "twice")["source"] = "from tools.helper import twice"
    half, rest = RIGHT[1].split("\n", 1)
    notebook_cells.insert(0, new_cell(f"%%writefile tools/helper.py\n{half}\n"))
    notebook_cells.insert(1, new_cell(f"%%file -a tools/helper.py\n{rest}"))


def helper_run(notebook_cells: Cells) -> None:
    cell_of_id(notebook_cells, "twice")["source"] = "%run helper.py"
    notebook_cells.insert(0, new_cell(f"\n%%writefile helper.py\n{RIGHT[1]}"))


MAGICS = """\
%matplotlib inline
if True:
    !pip install \\
        numpy
files = !ls
timing = %timeit -o sum([1])
?print
print?
text = '''
%d items
!'''
assert text.count("%d") == 1
%time def_ran = True
assert def_ran
get_ipython = lambda: None
def twice(a):
    return 2 * a
"""

FILE = [
    Damaged("mark", lambda d: codecs.BOM_UTF8 + d, "an editor's byte-order mark"),
    Damaged("utf-16", text(str, "utf-16"), "Windows PowerShell's >", says="UTF-16"),
    Damaged("utf-16-be", text(str, "utf-16-be"), "the same without a mark", says="UTF-16"),
    Damaged("utf-32", text(str, "utf-32"), "a tool's own idea of Unicode", says="UTF-32"),
    Damaged("windows", windows_text, "saved as Windows-1252", says="Windows-1252"),
    Damaged("shift-jis", noted("表示 表new 能力 十", "cp932"), "saved in Japan", says="cp932"),
    Damaged("gbk", noted("乗 誠 注意力", "gbk"), "saved in China", says="not UTF-8"),
    Damaged("big5", noted("許功蓋 注意力", "big5"), "saved in Taiwan", says="not UTF-8"),
    Damaged("cells-alone", content_of(lambda c: c["cells"]), "the list of cells alone"),
    Damaged("cells-by-number", content_of(by_number), "an object of cells in place of a list"),
    Damaged("crlf", text(lambda t: t.replace("\n", "\r\n")), "git on Windows"),
    Damaged("cr", text(lambda t: t.replace("\n", "\r")), "line ends of an old Mac"),
    Damaged("crlf-inside", cells(line_ends), "line ends of Windows inside of cells"),
    Damaged("format-3", old_format, "an old tool's format"),
    Damaged("no-ids", cells(without_ids), "format 4.0, sources as lists"),
    Damaged("padding", lambda d: d + bytes(512), "a disk's padding", says="zero bytes"),
    Damaged("commas", text(spare_commas), "edited by hand", says="commas"),
    Damaged(
        "double-save", text(double_save), "the end of a longer, older save", says="end in line"
    ),
    Damaged("repeated-keys", text(repeated_keys), "the last of equal keys counts"),
    Damaged("numbers", text(strange_numbers), "NaN and an integer of 5000 digits"),
    Damaged("surrogates", text(surrogates), "half a character in a comment"),
    Damaged("controls", text(raw_controls), "a tab and a line end inside of a string"),
    Damaged("no-cells-among", cells(lambda c: [3, *c, None]), "what is no cell", says="no cells"),
    Damaged("conflict-lines", text(conflict_of_lines), "theirs is right", says="merge conflict"),
    Damaged(
        "conflict-metadata", text(conflict_of_metadata), "both are right", says="merge conflict"
    ),
    Damaged(
        "conflict-source",
        answered("twice", conflict(RIGHT[1], "def twice(a): return a", "def twice(a): ...")),
        "a conflict inside of a cell, with its base: ours is right",
        says="merge conflict",
    ),
    Damaged("percent", percent_script, "jupytext's text as .ipynb", says="script"),
    Damaged("exported", exported_script, "nbconvert --to script as .ipynb", says="script"),
    Damaged("plain-script", plain_script, "a script; one line of it fails", says="script"),
    Damaged(
        "wrapped", lambda d: b'{"result": {"ipynb": ' + d + b"}}", "Colab's answer", says="inside"
    ),
    Damaged("no-line-ends", cells(lines_without_ends), "sources as lists without line ends"),
    Damaged("much-output", much_output, "plots, progress bars and tables", says="were dropped"),
    Damaged("data", cells(cell_of_data), "data in cells", says="`data = [ 0.125, 0.25, 0.5,"),
    Damaged("marimo", marimo, "a marimo notebook of the same cells", says="marimo file"),
    Damaged("jupytext-md", fenced("```python", "---\njupyter:\n---"), "jupytext", says="Markdown"),
    Damaged(
        "myst",
        fenced("```{code-cell} ipython3\n:tags: [a]", "---\nk: 1\n---"),
        "MyST",
        says="Markdown",
    ),
    Damaged(
        "myst-alone", fenced("```{code-cell}\n---\ntags: [a]\n---"), "jupytext", says="Markdown"
    ),
    Damaged("quarto", fenced("```{python}\n#| echo: false"), "Quarto", says="Markdown"),
    Damaged("databricks", lambda d: databricks(d).encode(), "exported there", says="Python script"),
    Damaged("magics-exported", magics_exported, "exported with magics", says="Python script"),
    Damaged("with-a-mistake", with_a_mistake, "what fails costs itself", says="Python script"),
    Damaged("text-in-json", lambda d: json.dumps(d.decode()).encode(), "JSON in JSON"),
    Damaged(
        "html", other_file(b"\n<!DOCTYPE html>\n<html>"), "the page", NOTHING, says="HTML page"
    ),
    Damaged("zip", other_file(b"PK\x03\x04 a/b.ipynb"), "an archive", NOTHING, says="zip archive"),
    Damaged("docx", other_file(b"PK\x03\x04 word/document.xml"), "a text", NOTHING, says="Word"),
    Damaged("pdf", other_file(b"%PDF-1.7"), "a print", NOTHING, says="PDF"),
    Damaged("gzip", gzip.compress, "packed", NOTHING, says="gzip"),
    Damaged("empty", other_file(b""), "nothing", NOTHING, says="empty"),
    Damaged(
        "zeros", other_file(bytes(4096)), "a crash while saving", NOTHING, says="zero bytes alone"
    ),
    Damaged("cut", lambda d: d[: len(d) // 2], "nobody can be sure", NOTHING, says="breaks off"),
    Damaged("deep", other_file(b"[" * 100_000), "no notebook", NOTHING, says="nested too deeply"),
    Damaged("many", cells(too_many), "a loop's work", NOTHING, says="more than 5000 cells"),
]

CELLS = [
    Damaged("no-metadata", cells(bare), "a tool dropped all metadata"),
    Damaged("strange-ids", cells(strange_ids), "a tool gave out new ids"),
    Damaged("edited-marks", cells(edited_marks), "100 points and grade false have no effect"),
    Damaged(
        "no-tests", cells(lambda c: [x for x in c if not is_test(x)]), "deleted", says="put back"
    ),
    Damaged("tests-first", moved(is_test, last=False), "moved to the top"),
    Damaged("reversed", cells(lambda c: c[::-1]), "upside down"),
    Damaged(
        "setup-last",
        moved(lambda c: nbgrader_metadata(c).get("grade_id") == "setup", last=True),
        "moved",
    ),
    Damaged("tests-twice", cells(lambda c: c + c), "everything twice", says="second copy"),
    Damaged("tests-loose", cells(spaced_copies), "tests without metadata, reformatted, twice"),
    Damaged("tests-edited", cells(tests_edited), "another text in the tests"),
    Damaged(
        "answer-deleted",
        cells(lambda c: [x for x in c if nbgrader_metadata(x).get("grade_id") != "add"]),
        "what is not there earns nothing",
        ONLY_TWICE,
    ),
    Damaged(
        "attempt-first", copied("twice", "def twice(a): return a", before=True), "the last counts"
    ),
    Damaged("copy-empty", copied("twice", STUB, before=False), "an empty copy undoes nothing"),
    Damaged("below-everything", cells(below_everything), "the answer in a cell below the tests"),
    Damaged("as-markdown", cells(retyped("markdown")), "code turned Markdown", says="no code cell"),
    Damaged("as-raw", cells(retyped("raw")), "code turned raw", says="no code cell"),
    Damaged("fenced", cells(fenced_answer), "code in a text cell", says="no code cell"),
    Damaged("conflict-cells", cells(conflict_of_cells), "nbdime's marks", says="merge conflict"),
    Damaged("parked", cells(parked_attempt), "an old attempt kept as Markdown"),
    Damaged("split", split("twice", "def twice(a):", "    return 2 * a"), "cut", says="joined"),
    Damaged(
        "split-in-three",
        split(
            "twice", "def twice(a):\n    b = (", "        2 *", "    a)\n    return b", keep=False
        ),
        "cut twice, the pieces without metadata",
        says="joined",
    ),
    Damaged(
        "split-late",
        split("twice", "def twice(a):\n    b = 2 * a", "    return b"),
        "both halves look whole on their own",
        says="joined",
    ),
    Damaged("ids-swapped", swapped("add", "twice"), "two answers with each other's ids"),
    Damaged("id-of-test", cells(answer_with_test_id), "an answer with a test's id"),
    Damaged("test-swapped", swapped("add", "points_twice"), "an answer and a test swapped ids"),
    Damaged("one-id", cells(same_id_everywhere), "every cell has the same test's id"),
    Damaged("answer-over-test", cells(answer_over_test), "the answer written into the test"),
    Damaged("one-cell", cells(one_cell), "everything in one cell, all others deleted"),
    Damaged(
        "indented", answered("twice", "  def twice(a):\n      return 2 * a"), "IPython runs it"
    ),
    Damaged(
        "spaces", answered("twice", "def twice(a):\n\u00a0   return\u20032 * a"), "from the web"
    ),
    Damaged(
        "zero-width", answered("twice", "def twice\u200b(a):\n    return 2 * a"), "from the web"
    ),
    Damaged(
        "quotes",
        answered("twice", "def twice(a):\n    return {“two”: 2}[‘two’] * a"),
        "from a text processor",
        says="typographic",
    ),
    Damaged("magics", answered("twice", MAGICS), "IPython's own lines", says="!pip install"),
    Damaged("timed", answered("twice", "%%time\n" + RIGHT[1]), "a magic that runs its cell"),
    Damaged("automagic", answered("twice", "pip install numpy\n" + RIGHT[1]), "pip without %"),
    Damaged(
        "written",
        cells(lambda c: [new_cell("%%writefile x.py\nraise"), new_cell("%%bash\nexit 1"), *c]),
        "cells that are no Python",
        says="%%bash and the cell below it",
    ),
    Damaged(
        "session", answered("twice", prompted(">>> ", "... ")), "pasted from Python's own session"
    ),
    Damaged("ipython", answered("twice", prompted("In [3]: ", "   ...: ")), "pasted from IPython"),
    Damaged("autocall", answered("twice", RIGHT[1] + "\n/print 1\n,print a b"), "IPython's calls"),
    Damaged(
        "measured",
        answered("twice", "%%memit -r 3\n" + RIGHT[1]),
        "under a library's magic that runs what is below it",
        says="the cell below it was run",
    ),
    Damaged("helper-file", cells(helper_file), "a helper that a cell writes and another imports"),
    Damaged("helper-run", cells(helper_run), "a helper that a cell writes and another runs"),
    Damaged(
        "noise",
        answered(
            "twice",
            "import sys, warnings\nwarnings.warn('x')\nprint('|#', file=sys.stderr)\n" + RIGHT[1],
        ),
        "warnings and progress bars on stderr",
    ),
]


def split_class(notebook_cells: Cells) -> None:
    cell = cell_of_id(notebook_cells, "AttentionHead")
    at = cell["source"].index("\n    def weights")
    rest = new_cell(cell["source"][at:])
    cell["source"] = cell["source"][:at]
    notebook_cells.insert(notebook_cells.index(cell) + 1, rest)


def imports_last(notebook_cells: Cells) -> None:
    notebook_cells.append(
        notebook_cells.pop(
            next(n for n, c in enumerate(notebook_cells) if "import math" in "".join(c["source"]))
        )
    )


CHAPTER = [
    Damaged("kqv-imports-lost", cells(lambda c: c[3:]), "the imports deleted", kqv=True),
    Damaged("kqv-imports-last", cells(imports_last), "the imports moved to the end", kqv=True),
    Damaged("kqv-bare", cells(lambda c: bare(c) or c[::-1]), "no metadata, upside down", kqv=True),
    Damaged("kqv-split", cells(split_class), "a class cut in two", says="joined", kqv=True),
]

DAMAGED = [*FILE, *CELLS, *CHAPTER]
