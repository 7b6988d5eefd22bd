"""Cells without what is IPython's and not Python's: magics, shell commands, help."""

import re

from attncourse.grading.submission.syntax import LONGEST, parse, remembered

MAGIC = re.compile(
    r"\s*(?:(?P<target>[A-Za-z_][\w.,\[\] ]{0,80}?)\s*=\s*)?(?P<mark>[%!]|\?{1,2}(?=\w))"
    r"(?P<rest>(?<=%)[%A-Za-z].*|(?<=[!?]).*)$"
)
HELP = re.compile(r"\s*[%\w.]+\?{1,2}\s*$")
SHELL = re.compile(r"\s*(?:pip3?|conda|mamba|apt|apt-get|git|wget|curl|cd|ls)\s+[-\w./~]\S*")
# Lines whose absence changes no result: not worth a note.
QUIET = {"%pip", "%conda", "%matplotlib", "%config", "%load_ext", "%autoreload", "%reload_ext"}
QUIET |= {"%%html", "%%markdown", "%%latex", "%%svg", "%%javascript", "%%js"}
RUNS_ITS_BODY = {"%%time", "%%timeit", "%%capture", "%%prun"}
# What opens, closes or spans lines in a line of Python that is not inside a string.
TOKEN = re.compile(
    r"#.*|\"\"\"|'''|\"(?:[^\"\\]|\\.)*+(?:\"|$)|'(?:[^'\\]|\\.)*+(?:'|$)|[\[({]|[\])}]|\\$"
)
CLOSING = {mark: re.compile(r"(?:[^\\]|\\.)*?" + mark) for mark in ('"""', "'''")}


def plain(source: str) -> str:
    return without_magics(source)[0]


@remembered
def without_magics(source: str) -> tuple[str, tuple[str, ...]]:
    """Plain Python with as many lines, and what was taken out that may have mattered."""
    if len(source) > LONGEST or parse(source):
        return source, ()
    lines = source.split("\n")
    first = next((i for i, line in enumerate(lines) if line.strip()), 0)
    words = lines[first].split()
    if words and words[0].startswith("%%"):
        if words[0] not in RUNS_ITS_BODY:
            told = (f"{shorten(lines[first])} and the cell below it",)
            return "\n" * (len(lines) - 1), () if words[0] in QUIET else told
        lines[first] = ""
    changed: list[str] = []
    quote, depth, goes_on = "", 0, False
    for i, line in enumerate(lines):
        replaced = None if quote or depth or goes_on else neutral(line)
        if replaced is None:
            quote, depth, goes_on = after(line, quote, depth)
            continue
        lines[i] = replaced
        if line.split()[0] not in QUIET and not ran(line):
            changed.append(shorten(line))
        for more in range(i + 1, len(lines)):  # a command goes on behind a backslash
            if not line.rstrip().endswith("\\"):
                break
            line, lines[more] = lines[more], ""
    text = "\n".join(lines)
    return (text if parse(text) else dedented(text)), tuple(changed)


def neutral(line: str) -> str | None:
    """What stands in a line's place where it is IPython's and not Python's, else None."""
    indent = line[: len(line) - len(line.lstrip())]
    magic = MAGIC.match(line)
    if magic:
        target = f"{magic['target']} = " if magic["target"] else ""
        if ran(line):
            return indent + target + magic["rest"].removeprefix("time").strip()
        return f"{indent}{target}None" if target else f"{indent}pass"
    return f"{indent}pass" if HELP.match(line) or SHELL.match(line) else None


def ran(line: str) -> bool:
    """Whether a magic runs the Python that stands behind it: ``%time x = f()``."""
    magic = MAGIC.match(line)
    return bool(magic and magic["mark"] == "%" and re.match(r"time\s+[^-\s]", magic["rest"]))


def after(line: str, quote: str, depth: int) -> tuple[str, int, bool]:
    """What is open at a line's end: a triple quote, brackets, and whether a backslash ends it."""
    at = 0
    while True:
        if quote:
            closing = CLOSING[quote].match(line, at)
            if not closing:
                return quote, depth, False
            at, quote = closing.end(), ""
        token = TOKEN.search(line, at)
        if not token or token[0] == "\\":
            return "", depth, bool(token)
        at = token.end()
        if token[0] in CLOSING:
            quote = token[0]
        elif token[0] in "[({":
            depth += 1
        elif token[0] in "])}":
            depth = max(depth - 1, 0)


def dedented(source: str) -> str:
    """A cell that is indented as a whole without its first line's indentation, as IPython does."""
    first = next((line for line in source.split("\n") if line.strip()), "")
    indent = first[: len(first) - len(first.lstrip())]
    if not indent:
        return source
    candidate = "\n".join(line.removeprefix(indent) for line in source.split("\n"))
    return candidate if parse(candidate) else source


def shorten(line: str, limit: int = 60) -> str:
    line = " ".join(line.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
