"""The text of one cell as plain Python, without IPython's and editors' additions."""

import ast
import re

from attncourse.checks.reading.cells import TIMEIT_KEEPS_NAMES
from attncourse.grading.submission import syntax

MAGIC = re.compile(
    r"\s*(?:(?P<target>[A-Za-z_][\w.,\[\] ]{0,80}?)\s*=\s*)?"
    r"(?P<mark>[%!]|\?{1,2}(?=\w)|[,;/](?=[A-Za-z_]))"
    r"(?P<rest>(?<=%)[%A-Za-z].*|(?<=[!?,;/]).*)$"
)
HELP = re.compile(r"\s*[%\w.]+\?{1,2}\s*$")
SHELL = re.compile(r"\s*(?:pip3?|conda|mamba|apt|apt-get|git|wget|curl|cd|ls)\s+[-\w./~]\S*")
TIMED = re.compile(r"time\s+(?=[^-\s])")
# Lines whose absence changes no result: not worth a note.
QUIET_MAGICS = {
    "%pip",
    "%conda",
    "%matplotlib",
    "%config",
    "%load_ext",
    "%autoreload",
    "%reload_ext",
}
QUIET_MAGICS |= {"%%html", "%%markdown", "%%latex", "%%svg", "%%javascript", "%%js"}
# Of IPython's own the others: what is below them is run in another process, or not at all.
MAGICS_RUN_ELSEWHERE = QUIET_MAGICS | {
    "%%bash",
    "%%sh",
    "%%cmd",
    "%%perl",
    "%%ruby",
    "%%pypy",
    "%%script",
    "%%sx",
}
MAGICS_RUN_ELSEWHERE |= {"%%system", "%%!", "%%python", "%%python2", "%%python3", "%%HTML", "%%SVG"}
DEFINES = re.compile(r"^(?:(?:async )?def|class)\s", re.M)
RUNS_ITS_BODY = {"%%time", "%%timeit", "%%capture", "%%prun"}
# A file that a cell writes; the same as scripts that notebooks were exported to have it.
WRITES = re.compile(r"\s*%%(?:write)?file\s+(?P<options>[^\n]*)(?:\n(?P<body>[\s\S]*))?$")
RUNS_FILE = re.compile(r"run\s+(?:-\w+\s+)*\S+\.py\b.*")
# What IPython takes away before a session's lines that were pasted.
PROMPTED = re.compile(r"\s*(?:>>>(?: |$)|In \[\d+\]: ?)", re.M)
PROMPT = re.compile(r"^(?:(?:>>>|\.\.\.)(?: |$)|In \[\d+\]: ?|[ \t]*\.{3,}: ?)", re.M)
# What opens, closes or spans lines in a line of Python that is not inside a string.
TOKEN = re.compile(
    r"#.*|\"\"\"|'''|\"(?:[^\"\\]|\\.)*+(?:\"|$|(?=\\$))|'(?:[^'\\]|\\.)*+(?:'|$|(?=\\$))"
    r"|[\[({]|[\])}]|\\$"
)
GOES_ON = re.compile(r"(?:else|elif|except|finally)\b")  # with the statement before
CLOSING = {mark: re.compile(r"(?:[^\\]|\\.)*?" + mark) for mark in ('"""', "'''")}

# What editors, mail and web pages put into a text.
INVISIBLE = (
    dict.fromkeys([0xA0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000], " ")
    | dict.fromkeys([0x2028, 0x2029], "\n")
    | dict.fromkeys(
        [0x00, 0xAD, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2065), 0xFEFF]
    )
)
TYPOGRAPHIC = INVISIBLE | {
    ord(character): ascii_text
    for characters, ascii_text in (("“”„‟″", '"'), ("‘’‚‛′", "'"), ("–—−", "-"), ("…", "..."))
    for character in characters
}


@syntax.remembered_by_class
def names_in_cell(source: str) -> syntax.CellNames | None:
    """Return the names that a cell binds and reads, magics aside; None if it is no Python."""
    tree = syntax.parse_or_none(python_alone(source))
    return None if tree is None else syntax.cell_names(tree)


def is_python(source: str) -> bool:
    """True if a cell, its magics aside, is valid Python."""
    return names_in_cell(source) is not None


def repaired_python(source: str) -> str | None:
    """Return a text with wrong characters replaced, if that makes it Python; else None.

    None, too, for a text that is Python already.
    """
    if len(source) > syntax.MAX_PARSED_CHARS or is_python(source):
        return None
    for table in (INVISIBLE, TYPOGRAPHIC):
        candidate = source.translate(table)
        if candidate != source and is_python(candidate):
            return candidate
    return None


# --- IPython ------------------------------------------------------------------------------------


def python_alone(source: str) -> str:
    """Return a cell's Python, without magics, shell commands and calls for help."""
    return without_magics(source)[0]


@syntax.remembered_by_class
def without_magics(source: str) -> tuple[str, tuple[str, ...]]:
    """Return a cell as plain Python with as many lines, and notes on lines that were not run.

    There is a note only for a line that may have mattered.
    """
    if len(source) > syntax.MAX_PARSED_CHARS or syntax.parse_or_none(source):
        return source, ()
    if PROMPTED.match(source):
        source = PROMPT.sub("", source)
    lines = source.split("\n")
    first = next((i for i, line in enumerate(lines) if line.strip()), 0)
    word, lost = (lines[first].split() or [""])[0], list[str]()
    if word in RUNS_ITS_BODY:
        lines[first] = ""
    elif match := WRITES.match(source):
        arguments = f"'writefile', {match['options']!r}, {match['body'] or ''!r}"
        call = f"get_ipython().run_cell_magic({arguments})"
        return "\n" * first + call + "\n" * (len(lines) - first - 1), ()
    elif word.startswith("%%"):
        below = "\n".join(lines[first + 1 :])
        if word in MAGICS_RUN_ELSEWHERE or not (
            DEFINES.search(below) and syntax.parse_or_none(below)
        ):
            notes = (f"{shortened_line(lines[first])} and the cell below it was not run",)
            return "\n" * (len(lines) - 1), () if word in QUIET_MAGICS else notes
        lost.append(f"{shortened_line(lines[first])} was left out, and the cell below it was run")
        lines[first] = ""
    quote, depth, goes_on = "", 0, False
    for i, line in enumerate(lines):
        match = None if quote or depth or goes_on else neutral_line(line)
        if match is None:
            quote, depth, goes_on = open_at_end(line, quote, depth)
            continue
        lines[i], matters = match
        if matters:
            lost.append(f"{shortened_line(line)} was not run")
        while line.rstrip().endswith("\\") and i + 1 < len(lines):  # the command goes on
            i += 1
            line, lines[i] = lines[i], ""
    text = "\n".join(lines)
    text = text if syntax.parse_or_none(text) else dedented_cell(text)
    if word == "%%timeit" and (tree := syntax.parse_or_none(text)) and syntax.bound_names(tree):
        lost.append(TIMEIT_KEEPS_NAMES)
    return text, tuple(lost)


def file_written(source: str) -> tuple[str, str]:
    """Return the path and the text of the file that a cell writes by a magic; "" twice for none."""
    if "writefile" not in source and "%%file" not in source:
        return "", ""
    name, options, body = cell_magic(without_magics(source)[0]) or ("", "", "")
    path = (options.split() or [""])[-1] if name in ("writefile", "file") else ""
    return path, body if path else ""


def cell_magic(source: str) -> tuple[str, str, str] | None:
    """Return name, options and body of a cell magic that was written as a call; None for none.

    A script that a notebook was exported to has it so: ``get_ipython().run_cell_magic('time', '',
    'x = 1')``.
    """
    tree = syntax.parse_or_none(source) if "run_cell_magic" in source else None
    match tree and tree.body:
        case [ast.Expr(ast.Call(ast.Attribute(attr="run_cell_magic"), [_, _, _] as arguments))]:
            texts = [argument.value for argument in arguments if isinstance(argument, ast.Constant)]
            match texts:
                case [str(name), str(options), str(body)]:
                    return name, options, body
    return None


def neutral_line(line: str) -> tuple[str, bool] | None:
    """Return Python in place of a line of IPython's own, and whether to tell the student.

    None for a line that is Python.
    """
    indent = line[: len(line) - len(line.lstrip())]
    magic = MAGIC.match(line)
    if not magic:
        return (f"{indent}pass", True) if HELP.match(line) or SHELL.match(line) else None
    target = f"{magic['target']} = " if magic["target"] else ""
    if magic["mark"] == "%" and RUNS_FILE.match(magic["rest"]):
        arguments = f"'run', {magic['rest'][3:].strip()!r}"
        return f"{indent}{target}get_ipython().run_line_magic({arguments})", False
    if magic["mark"] == "%" and (timed := TIMED.match(magic["rest"])):  # runs what is behind it
        return indent + target + magic["rest"][timed.end() :].rstrip(), False
    matters = line.split()[0] not in QUIET_MAGICS
    return (f"{indent}{target}None" if target else f"{indent}pass"), matters


def open_at_end(line: str, quote: str, depth: int) -> tuple[str, int, bool]:
    """Return what is open at a line's end: quotes, the depth of brackets, a backslash.

    ``quote`` and ``depth`` are what is open at its start.
    """
    position = 0
    while True:
        if quote:
            closing = CLOSING[quote].match(line, position)
            if not closing:
                return quote, depth, False
            position, quote = closing.end(), ""
        token = TOKEN.search(line, position)
        if not token or token[0] == "\\":
            return "", depth, bool(token)
        position = token.end()
        if token[0] in CLOSING:
            quote = token[0]
        elif token[0] in "[({":
            depth += 1
        elif token[0] in "])}":
            depth = max(depth - 1, 0)


def top_level_statements(source: str) -> dict[int, str]:
    """Return a cell's statements at its top level, by the number of each one's first line.

    The cell need not be Python: a line begins a statement that is not indented, while nothing is
    open.
    """
    statements: dict[int, list[str]] = {0: []}
    start, quote, depth, goes_on = 0, "", 0, False
    for i, line in enumerate(source.splitlines(keepends=True)):
        if not (quote or depth or goes_on or line[0].isspace() or GOES_ON.match(line)):
            start = i
        statements.setdefault(start, []).append(line)
        quote, depth, goes_on = open_at_end(line.rstrip("\n"), quote, depth)
    return {start: "".join(lines) for start, lines in statements.items()}


def dedented_cell(source: str) -> str:
    """Return a cell without the indentation of its first line, as IPython runs it.

    If it is no Python then, it is returned as it is.
    """
    first = next((line for line in source.split("\n") if line.strip()), "")
    indent = first[: len(first) - len(first.lstrip())]
    candidate = "\n".join(line.removeprefix(indent) for line in source.split("\n"))
    return candidate if indent and syntax.parse_or_none(candidate) else source


def shortened_line(line: str, limit: int = 60) -> str:
    """Return a text in one line of at most ``limit`` characters."""
    line = " ".join(line.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
