"""Syntax of a newer Python is recognised with its version, and invalid syntax is not."""

import sys

import pytest

from attncourse.grading.submission.newer import version_needed
from helpers.dedented_text import dedented

NEWER_SOURCES = [
    ("def f[T](x: T) -> T:\n    return x", "3.12"),
    ("class Stack[T, *Ts, **P](list[T]):\n    def push[U: (int, str)](self, x: U): ...", "3.12"),
    ("type Matrix = list[list[float]]\nx = 1", "3.12"),
    ("type Pair[A, B] = tuple[A, B]", "3.12"),
    ("def f(d):\n    return f'{d['a']} and {d['b']}'", "3.12"),
    ("print(f\"{'\\n'.join(lines)}\")", "3.12"),
    ("x = f'''{\n  a  # why\n}''' + f'{f'{f'{1}'}'}'", "3.12"),
    ("%matplotlib inline\ntype A = int", "3.12"),
    ("class Box[T = int]:\n    pass", "3.13"),
    ("def f[T](x): ...\nclass Box[T=int, U=dict[str, int]]: pass", "3.13"),
    (
        dedented("""
            try:
                pass
            except ValueError, np.linalg.LinAlgError:
                pass
        """),
        "3.14",
    ),
    ("def f(x):\n    return t'{x}'", "3.14"),
    ("type A = int\nx = t'{a}'", "3.14"),
]


@pytest.mark.parametrize(("source", "version"), NEWER_SOURCES)
def test_newer_syntax_is_recognised_with_its_version(source, version):
    python_version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    newer = tuple(map(int, version.split("."))) > sys.version_info[:2]
    assert version_needed(source) == (version if newer else ""), python_version


@pytest.mark.parametrize(
    "source",
    [
        "x = 1",
        "type = int\ntype(3)\nx: type",
        "def f(x):\n    return f'{x!r:>{9}} {{}} {x[\"a\"]}'",
        "def f(:",
        "def f[T(x): return x",
        "type X",
        "def f[T](x: T) -> T\n    return x",  # a colon is missing in every version
        "type A = int\nprint 'a'",
        "x = f'{a",
        dedented("""
            try: pass
            except A, B as e:
                pass
        """),
        "With one view the scores are symmetric.",
        "x = 'f\"{a}\"' # f'{\n",
        "(" * 50_000,
        "f'{" * 30_000,
    ],
)
def test_current_or_invalid_syntax_needs_no_version(source):
    assert version_needed(source) == ""
