"""The field guide's entries: each mistake's code, symptom and explanation as HTML.

What takes seconds to compute is kept in a file for as long as the package and these tools are the
same.
"""

from __future__ import annotations

import gc
import hashlib
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import cache
from html import escape
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from textwrap import dedent

import numpy as np
import torch
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

import attncourse
from attncourse.checks import Exercise, Mistake, exercises
from attncourse.checks.index import name_of_place
from attncourse.checks.showing.verdict import Picture, short_number
from attncourse.checks.showing.verdict import inline_html as with_code
from attncourse.grading.files import replace_file

TOOLS = ("listing.py", "check_source.py", "symptoms.py", "wrong_lines.py")
LEXER, FORMATTER = PythonLexer(), HtmlFormatter(nowrap=True)
PARTING = get_context("fork" if sys.platform == "linux" else "spawn")


@dataclass(frozen=True)
class GuideEntry:
    """A mistake on the page: where it belongs, how it shows, and what unfolds."""

    id: str
    target: str
    name: str
    symptom: str
    html: str


# --- computed once ---------------------------------------------------------------------------


def sources() -> list[Path]:
    """Return the files that the entries are computed from."""
    package = Path(attncourse.__file__).parent
    modules = [*package.glob("*.py"), *(package / "checks").rglob("*.py")]
    modules += (package / "bank").rglob("*.py")
    return sorted(modules) + [Path(__file__).with_name(name) for name in TOOLS]


def key() -> str:
    """Return a digest of all that the entries are made from."""
    digest = hashlib.sha256(f"{sys.version} {np.__version__}".encode())
    for path in sources():
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


@cache
def work_ahead(file: Path) -> BaseProcess:
    """Begin to work the entries out in a process of its own, or return the one that does."""
    process = PARTING.Process(target=work_out, args=(file,))
    process.start()
    return process


def work_out(file: Path) -> None:
    """Work the entries out in one thread: a process that parts from several of torch's hangs."""
    torch.set_num_threads(1)
    entries(file)


def entries(file: Path | None = None) -> list[GuideEntry]:
    """Every mistake in the order of the course; from the file where it still holds."""
    now = key()
    if file is not None and file.exists():
        cached_entries = json.loads(file.read_text(encoding="utf-8"))
        if cached_entries["key"] == now:
            return [GuideEntry(**entry) for entry in cached_entries["entries"]]
    # A forked worker's collector would go through all that Sphinx and torch have made, many times.
    with ProcessPoolExecutor(os.cpu_count(), PARTING, initializer=gc.freeze) as pool:
        all_entries = distinct(
            guide_entry
            for entries_of_exercise in pool.map(entries_of, exercises())
            for guide_entry in entries_of_exercise
        )
    if file is not None:
        cached_entries = {
            "key": now,
            "entries": [asdict(guide_entry) for guide_entry in all_entries],
        }
        replace_file(file, json.dumps(cached_entries))
    return all_entries


def entries_of(target: str) -> list[GuideEntry]:
    """The entries of one exercise."""
    exercise = exercises()[target]
    return [mistake_entry_html(exercise, m) for m in exercise.mistakes]


def distinct(guide_entries: Iterable[GuideEntry]) -> list[GuideEntry]:
    """The entries, a number behind an id that came before: `by √d_k` is not `by d_k`."""
    seen: Counter[str] = Counter()
    distinct_entries = []
    for guide_entry in guide_entries:
        seen[guide_entry.id] += 1
        distinct_entries.append(
            replace(guide_entry, id=f"{guide_entry.id}-{seen[guide_entry.id]}")
            if seen[guide_entry.id] > 1
            else guide_entry
        )
    return distinct_entries


# --- one entry -------------------------------------------------------------------------------


def mistake_entry_html(exercise: Exercise, mistake: Mistake) -> GuideEntry:
    """Return the guide's entry on a mistake."""
    from field_guide.symptoms import example
    from field_guide.wrong_lines import wrong_line

    wrong, shown = wrong_line(exercise, mistake), example(exercise, mistake)
    lines = "line" if "\n" not in wrong.code else "lines"
    helpers = [f"<code>{escape(n)}</code>: {sentence_html(text)}" for n, text in wrong.helpers]
    parts = [
        f'<p class="attn-screen"><strong>The wrong {lines}</strong></p>',
        f'<pre class="highlight"><code>{coloured(wrong.code)}</code></pre>',
        *(f'<p class="attn-helper">{helper}</p>' for helper in helpers),
        '<div class="attn-screen">',
        f"<p><strong>Fails first</strong> at “{sentence_html(shown.criterion)}”:</p>",
        f"<pre>{escape(shown.call)}</pre>",
        f"<p>{with_code(as_sentence_of_example(shown.description))}</p>"
        if shown.description
        else "",
        side_by_side(shown.texts) if shown.texts else "",
        matrices_html(shown.picture) if shown.picture else "",
        "<p><strong>What to change</strong></p>",
        "</div>",
        f"<p>{with_code(mistake.explanation)}</p>",
    ]
    html = "\n".join(part for part in parts if part)
    place = name_of_place(f"{exercise.target} {mistake.name}")
    return GuideEntry(place, exercise.target, mistake.name, shown.symptom, html)


def sentence_html(text: str) -> str:
    """Return a sentence as HTML, its code marked."""
    return with_code(text.replace("``", "`"))


def as_sentence_of_example(problem: str) -> str:
    """A verdict's words as a sentence."""
    text = problem.replace("\n", "; ")
    verbs = ("returned", "raised", "changed", "did not", "called", "built")
    text = f"It {text}" if text.startswith(verbs) else text[0].upper() + text[1:]
    return text if text.endswith((".", "?", "!")) else f"{text}."


def coloured(code: str) -> str:
    """The code in colours; names and punctuation, which have that of the text, without a mark."""
    marked = highlight(code, LEXER, FORMATTER).rstrip("\n")
    return re.sub(r'<span class="[npw]">([^<]*)</span>', r"\1", marked)


def side_by_side(texts: tuple[str, str]) -> str:
    """Return what an answer returned and what was expected, as HTML."""
    boxes = (
        f"<div><p>{title}</p><pre>{escape(dedent(text))}</pre></div>"
        for title, text in zip(("returned", "expected"), texts, strict=True)
    )
    return f'<div class="attn-pair">{"".join(boxes)}</div>'


def matrices_html(picture: Picture) -> str:
    """The two matrices as shaded tables on one scale; what is wrong is underlined too."""
    actual, expected = picture.got, picture.want
    none = np.zeros(expected.shape, bool)
    wrong = np.zeros(actual.shape, bool)
    if actual.shape == expected.shape:
        wrong = ~np.isclose(actual, expected, rtol=1e-9, atol=1e-9)
    top = float(np.abs(expected[np.isfinite(expected)]).max(initial=0)) or 1.0
    tables = matrix("returned", actual, top, wrong) + matrix("expected", expected, top, none)
    return f'<div class="attn-pair">{tables}</div>'


def matrix(title: str, values: np.ndarray, top: float, wrong: np.ndarray) -> str:
    """Return a matrix as a table whose wrong entries are marked."""
    rows = (
        "<tr>"
        + "".join(matrix_cell_html(x, top, bad) for x, bad in zip(row, marks, strict=True))
        + "</tr>"
        for row, marks in zip(values, wrong, strict=True)
    )
    size = " × ".join(map(str, values.shape))
    return f"<table><caption>{title}, {size}</caption>{''.join(rows)}</table>"


def matrix_cell_html(x: float, top: float, wrong: bool) -> str:
    """Return a number as a cell of a table, shaded by its size."""
    strength = min(abs(float(x)) / top, 1.0) if np.isfinite(x) else 0.0
    text = short_number(x, top).replace("-", "−")
    return f'<td style="--much:{strength:.2f}">{f"<u>{text}</u>" if wrong else text}</td>'
