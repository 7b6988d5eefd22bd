"""Conventions that variants are made of, for the banks of several chapters."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from attncourse.checks.adapting import Adapter, Change
from attncourse.checks.outcome import is_tensor
from attncourse.checks.variants import Variant


def negation(mask: Any) -> Any:
    """A mask with False for True. What is no mask, such as numbers to be added, stays."""
    kind = str(mask.dtype).removeprefix("torch.")
    if kind == "bool":
        return ~mask
    return 1 - mask if bool(((mask == 0) | (mask == 1)).all()) else mask


def turned_over(x: Any) -> Any:
    """The last two axes exchanged."""
    return x.mT if is_tensor(x) else np.swapaxes(x, -1, -2)


def multiplied(number: int | float) -> Change:
    """Written in units so many of which are one. Whole numbers stay whole, lists stay lists."""

    def write(value: Any) -> Any:
        return type(value)(number * x for x in value) if is_list(value) else value * number

    def read(value: Any) -> Any:
        if is_list(value):
            return type(value)(x / number for x in value)
        whole = str(getattr(value, "dtype", "")).removeprefix("torch.").startswith(("int", "uint"))
        return value // number if whole else value / number

    return Change(write, read)


def is_list(value: Any) -> bool:
    if isinstance(value, str | bytes):
        raise TypeError
    return isinstance(value, list | tuple)


NEGATED = Change(negation, negation)
COLUMNS = Change(turned_over, turned_over)
PERCENT = multiplied(100)
BITS = multiplied(1 / math.log(2))

FORBIDDEN = (  # what is said of masks, and what it becomes where True means forbidden
    ("`True` where allowed", "`True` where forbidden"),
    ("`True` where attention is allowed", "`True` where attention is forbidden"),
    ("`True` **where attention is allowed**", "`True` **where attention is forbidden**"),
    ("True where attention is allowed", "True where attention is forbidden"),
    ("True where allowed", "True where forbidden"),
    ("Where the mask is `False` the weight", "Where the mask is `True` the weight"),
    ("Scores where it is False become", "Scores where it is True become"),
    ("where the mask is False", "where the mask is True"),
    ("masked_fill(~mask", "masked_fill(mask"),
    ("`scores * mask`", "`scores * ~mask`"),
    ("`scores[~mask] = …`", "`scores[mask] = …`"),
)


def forbidden(
    adapters: Mapping[str, Adapter], *reworded: tuple[str, str], explanation: str = ""
) -> Variant:
    """The variant of a chapter in which masks are True where attention is forbidden."""
    return Variant(
        "forbidden",
        "A mask is `True` where attention is **forbidden** here, and `False` where it is allowed. "
        "This is the other way round than in the book.",
        "True means forbidden here",
        explanation
        or "Your answer takes True for allowed, as the book and its published answers do. In this "
        "assignment a mask is True where attention is forbidden: fill in −∞ where it is True.",
        adapters,
        (*reworded, *FORBIDDEN),
    )


def columns(
    adapters: Mapping[str, Adapter], *reworded: tuple[str, str], inputs: str = "of every input"
) -> Variant:
    """The variant of a chapter in which tokens are columns, of what comes in and what goes out."""
    return Variant(
        "columns",
        f"Tokens are **columns** here, {inputs} and of what is returned: `(..., d, n)`, where in "
        "the book they are rows. Masks and attention maps are as in the book.",
        "tokens are columns here",
        "Your answer takes a token for a row, as the book and its published answers do. In this "
        "assignment every column is a token: `x.mT` has them as rows, and the result's columns are "
        "the tokens again.",
        adapters,
        reworded,
    )


def with_columns(
    *names: str, methods: tuple[str, ...] = (), drops: tuple[str, ...] = ()
) -> Adapter:
    """An exercise that is given tokens as columns by these names, and returns columns."""
    return Adapter(dict.fromkeys(names, COLUMNS), COLUMNS, methods)


def masked(*methods: str, drops: tuple[str, ...] = ("the mask is inverted",)) -> Adapter:
    """An exercise that is given a mask: as an argument, or by these methods of a module."""
    return Adapter({"mask": NEGATED}, methods=methods, drops=drops)
