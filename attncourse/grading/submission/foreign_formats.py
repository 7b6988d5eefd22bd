"""What was handed in instead of a notebook, recognised, and what to hand in."""

import re
from typing import Any

from attncourse.grading.submission.source import python_alone
from attncourse.grading.submission.syntax import MAX_PARSED_CHARS, NO_TREE, parse_quietly

NOTEBOOK_ITSELF_HINT = "hand in the notebook itself, the .ipynb file"
LINK = f"a link, not the notebook it leads to: {NOTEBOOK_ITSELF_HINT}"
# What a text is by its beginning, and what to ask for; the first that fits.
FORMAT_MESSAGES = tuple(
    (
        re.compile(pattern, re.M | re.I),
        message if ": " in message else f"{message}: {NOTEBOOK_ITSELF_HINT}",
    )
    for pattern, message in (
        (r"\A\s*\[InternetShortcut\]|\A\s*\[Desktop Entry\]|\A\s*https?://\S+\s*\Z", LINK),
        (r"\A\s*<\?xml[^>]*>\s*(?:<!DOCTYPE plist[^>]*>\s*)?<plist", LINK),
        (r"\A\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)?<svg", "an SVG picture"),
        (r"\A\s*<\?xml", "an XML file"),
        (
            r"\A(?:[\w-]+: .*\n(?:[ \t].*\n)*)*?(?:MIME-Version|Received|Return-Path): ",
            "an e-mail or a web page saved with all that is in it",
        ),
        (r"^diff --git |\A--- .*\n\+\+\+ ", "a list of changes, not the file"),
        (r"\A\s*(?:%.*\n\s*)*\\documentclass", "a LaTeX document"),
        (r"\A\s*\ufe20", "a worksheet of CoCalc's: in CoCalc, make it a Jupyter notebook (.ipynb)"),
        (r"\A\s*Traceback \(most recent call last\)", "an error message"),
        (r"^(?:In \[\d+\]: |>>> )", "what a session in a terminal showed"),
        (
            r"^ *(?:- )?(?:blocks:$|blockGroup: |sortingKey: )|deepnote",
            "a project of Deepnote's: in Deepnote, choose Export as .ipynb",
        ),
        (r"<-\s*function\(|^library\(", f"an R script: {NOTEBOOK_ITSELF_HINT}, with Python in it"),
        (
            r"\A[^\n,;\t]+(?:[,;\t][^\n,;\t]*){2,}\n[^\n,;\t]+(?:[,;\t][^\n,;\t]*){2,}\n",
            "a table",
        ),
    )
)
MAX_RECOGNISED_CHARS = 20_000  # characters
PROGRAM = re.compile(
    r"^[ \t]*(?:(?:def|class|import|from)\s+\w|(?:for|while|if|with)\b.*:\s*$|\w+ = )", re.M
)


def format_name(text: str) -> str:
    """Return what a text is that holds no cells, and what to do."""
    begins = text[:MAX_RECOGNISED_CHARS]
    for pattern, description in FORMAT_MESSAGES:
        if pattern.search(begins):
            return description
    if PROGRAM.search(begins):
        return f"Python{syntax_mistake(text)} and not a notebook: {NOTEBOOK_ITSELF_HINT}"
    return f"plain text, neither a notebook nor Python: {NOTEBOOK_ITSELF_HINT}"


def syntax_mistake(text: str) -> str:
    """Return where a text stops being Python, as a part of a sentence; "" if it does not."""
    try:
        parse_quietly(python_alone(text[:MAX_PARSED_CHARS]))
    except NO_TREE as error:
        is_syntax_error = isinstance(error, SyntaxError)
        return f" with a mistake in line {error.lineno} ({error.msg})" if is_syntax_error else ""
    return ""


def name_of_json(content: Any) -> str:
    """Return what JSON is that holds no notebook, and what to do, if it is recognised; or ""."""
    match content:
        case {"doc_id": _} | {"resource_id": _} | {"url": str()}:
            return f"this is {LINK}"
        case {"paragraphs": list()}:
            return "this is a note of Zeppelin's: in Zeppelin, export it as .ipynb"
        case {"code_file": _, "kernel_type": _}:
            return f"this is what Kaggle notes beside a notebook: {NOTEBOOK_ITSELF_HINT}"
        case {"name": _, "version": _} | {"dependencies": _}:
            return f"this is what a web project is described by: {NOTEBOOK_ITSELF_HINT}"
    return ""
