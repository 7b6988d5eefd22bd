r"""Formulas of docstrings as TeX: ``Q Kᵀ / √d_k`` becomes ``\frac{Q K^{\top}}{\sqrt{d_{k}}}``.

A docstring writes formulas in Unicode, as they are read in an editor. What is not wholly in the
grammar below (shapes, Python's own operators, a name alone) stays code.

    relation    sum (("=" | "<=" | "<") sum)*
    sum         fraction (("+" | "-") fraction)*
    fraction    product ("/" product)*
    product     power (("·" | "@" | nothing) power)*
    power       atom ("(" list ")" | "[" list "]" | "ᵀ" | "²" | ("**" | "^") exponent)*
"""

from __future__ import annotations

import re
from collections.abc import Callable

FORMULA_TOKEN = re.compile(
    r"\s*(?:(\d+(?:\.\d+)?|½)|([^\W\d_ᵀ²]\w*?(?=[ᵀ²]|\W|$))|(\*\*|<=|>=|\.\.\.|\S))"
)
FORMULA_SIGN = re.compile(r"[+·/√ᵀΣ²^∂@‖|−-]|\*\*|<=| = ")
GREEK = {"δ": "delta", "φ": "varphi", "γ": "gamma", "π": "pi", "σ": "sigma", "λ": "lambda"}
FUNCTION_NAMES = {"exp", "sin", "cos", "tanh", "log", "ln", "min", "max"}
RELATIONS = {"=": "=", "<=": r"\le", ">=": r"\ge", "<": "<"}


class NoFormulaError(ValueError):
    """The text is none of the grammar's formulas."""


def formula(text: str) -> str | None:
    """Return a docstring's code as TeX, or None where it is no formula."""
    if not FORMULA_SIGN.search(text) or re.fullmatch(r"-?[\w.]+", text):
        return None
    reader = FormulaReader(text)
    try:
        tex = reader.relation()
    except NoFormulaError:
        return None
    return tex if reader.at_end() else None


class FormulaReader:
    """Reads one formula from left to right; each method returns the TeX of what it has read."""

    def __init__(self, text: str):
        self.tokens: list[tuple[str, bool]] = []  # each with whether a space stands before it
        place = 0
        while place < len(text):
            match = FORMULA_TOKEN.match(text, place)
            if match is None:
                break
            self.tokens.append((match[0].strip(), match[0] != match[0].lstrip()))
            place = match.end()
        self.place = 0
        self.open_bars: list[str] = []  # a bar closes what one like it has opened
        self.is_inline = False  # in an exponent or an index a fraction stays on its line

    def peek(self) -> str:
        """Return the next token; "" at the end."""
        return self.tokens[self.place][0] if self.place < len(self.tokens) else ""

    def at_end(self) -> bool:
        """True if no token is left."""
        return self.place >= len(self.tokens)

    def is_adjacent(self) -> bool:
        """True if no space stands before the next token."""
        return not self.at_end() and not self.tokens[self.place][1]

    def take(self, expected: str = "") -> str:
        """Return the next token and go on; raise where it is another than expected."""
        token = self.peek()
        if not token or (expected and token != expected):
            raise NoFormulaError(token)
        self.place += 1
        return token

    def relation(self) -> str:
        """Read sums with signs such as = or ≤ between them."""
        tex = self.sum()
        while self.peek() in RELATIONS:
            tex += f" {RELATIONS[self.take()]} {self.sum()}"
        return tex

    def sum(self) -> str:
        """Read fractions with + or − between them."""
        tex = ""
        if self.peek() in ("-", "−"):
            self.take()
            tex = "-"
        tex += self.fraction()
        while self.peek() in ("+", "-", "−"):
            tex += f" {self.take()} {self.fraction()}".replace("−", "-")
        return tex

    def fraction(self) -> str:
        """Read products with / between them."""
        tex = self.product()
        while self.peek() == "/":
            self.take()
            below = self.product()
            if self.is_inline:
                tex += f" / {below}"
            else:
                tex = rf"\frac{{{without_brackets(tex)}}}{{{without_brackets(below)}}}"
        return tex

    def product(self) -> str:
        """Read factors that stand beside each other, with · or @ or nothing between."""
        factors = [self.power()]
        while not self.is_end_of_product():
            sign = self.take() if self.peek() in ("·", "@") else ""
            factor = self.power()
            if sign == "·":
                factors.append(r"\cdot")
            elif r"\text" in factors[-1] + factor:
                factors.append(r"\,")  # TeX puts no space between words
            factors.append(factor)
        return " ".join(factors)

    def is_end_of_product(self) -> bool:
        """True if the next token is no factor."""
        token = self.peek()
        if token in ("|", "‖"):
            return self.open_bars[-1:] == [token]
        return not token or token in RELATIONS or token in "+-−/)]},:" or token == "..."

    def power(self) -> str:
        """Read an atom with what stands above, below and behind it."""
        is_name = self.peek()[:1].isalpha() and not self.peek().startswith("Σ")
        tex = self.atom()
        while True:
            token = self.peek()
            if token == "ᵀ":
                self.take()
                tex += r"^{\top}"
            elif token == "²":
                self.take()
                tex += "^{2}"
            elif token in ("**", "^"):
                self.take()
                tex += f"^{{{self.exponent()}}}"
            elif token == "(" and is_name and self.is_adjacent():
                tex += self.bracketed()
            elif token == "[" and self.is_adjacent():
                tex += self.index(has_subscript="_{" in tex)
            else:
                return tex

    def exponent(self) -> str:
        """Return an exponent without its bracket: a signed number, a fraction of two, or a name."""
        if self.peek() == "(":
            self.is_inline = True
            tex = without_brackets(self.bracketed())
            self.is_inline = False
            return tex
        sign = "-" if self.peek() in ("-", "−") else ""
        if sign:
            self.take()
        tex = sign + self.atom()
        if self.peek() == "/" and self.is_adjacent():
            self.take()
            tex += "/" + self.atom()
        return tex

    def index(self, has_subscript: bool) -> str:
        """Return ``[i, j]`` as a subscript; a slice, or a second subscript, keeps its brackets."""
        self.take("[")
        self.is_inline = True
        parts = self.listed(self.slice)
        self.is_inline = False
        self.take("]")
        inside = ", ".join(parts)
        if has_subscript or ":" in inside:
            return f"[{inside}]"
        return f"_{{{inside}}}"

    def slice(self) -> str:
        """Read an index or a slice, such as ``1:n``."""
        if self.peek() == "...":
            self.take()
            return r"\ldots"
        tex = "" if self.peek() == ":" else self.sum()
        if self.peek() == ":":
            self.take()
            tex += " : " + ("" if self.peek() in ("]", ",") else self.sum())
        return tex

    def listed(self, part: Callable[[], str]) -> list[str]:
        """Read several parts with commas between them."""
        parts = [part()]
        while self.peek() == ",":
            self.take()
            parts.append(part())
        return parts

    def bracketed(self) -> str:
        """Read what stands in round brackets."""
        self.take("(")
        parts = self.listed(self.relation)
        self.take(")")
        inside = ", ".join(parts)
        return rf"\left({inside}\right)" if r"\frac" in inside else f"({inside})"

    def atom(self) -> str:
        """Read a name, a number or what stands in brackets."""
        token = self.peek()
        if token == "(":
            start = self.place
            tex = self.bracketed()
            if any(part == "," for part, _ in self.tokens[start : self.place]):
                raise NoFormulaError("a shape")
            return tex
        self.take()
        if token in ("|", "‖"):
            self.open_bars.append(token)
            inside = self.sum()
            self.take(token)
            self.open_bars.pop()
            bar = "|" if token == "|" else r"\Vert"
            return rf"\left{bar} {inside} \right{bar}"
        if token == "√":
            return rf"\sqrt{{{without_brackets(self.atom())}}}"
        if token == "∂":
            return rf"\partial {self.power()}"
        if token == "⋯":
            return r"\cdots"
        if token == "½":
            return "1/2"
        if token[0].isdigit():
            return token
        if token[0].isalpha():
            return name(token)
        raise NoFormulaError(token)


def name(text: str) -> str:
    """Return a variable as TeX: a letter in italics, a word upright, what follows ``_`` lowered."""
    base, _, below = text.partition("_")
    if base in FUNCTION_NAMES and not below:
        return "\\" + base
    if len(base) > 1 and len(below) > 1:
        raise NoFormulaError(f"{text} is a name of the code")
    if base == "Σ":
        tex = r"\sum"
    elif base in GREEK:
        tex = "\\" + GREEK[base]
    elif base == "Â":
        tex = r"\hat{A}"
    else:
        tex = base if len(base) == 1 else rf"\text{{{base}}}"
    if not below:
        return tex
    if len(below) <= 2 or re.fullmatch(r"[a-z]+_[a-z]", below):
        return f"{tex}_{{{below if len(below) <= 2 else name(below)}}}"
    words = below.replace("_", " ")
    return rf"{tex}_{{\text{{{words}}}}}"


def without_brackets(tex: str) -> str:
    """Return the TeX without the one pair of brackets that holds all of it."""
    start, end = (6, -7) if tex.startswith(r"\left(") else (1, -1)
    if not tex.startswith(("(", r"\left(")):
        return tex
    depth = 0
    for place, sign in enumerate(tex):
        depth += (sign == "(") - (sign == ")")
        if sign == ")" and depth == 0:
            return tex[start:end] if place == len(tex) - 1 else tex
    return tex
