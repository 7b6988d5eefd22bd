"""Conventions from which the banks of several chapters make their variants."""

from collections.abc import Mapping

from attncourse.checks.variants.adapter import Adapter
from attncourse.checks.variants.rewriting import COLUMNS, NEGATED
from attncourse.checks.variants.variant import Variant, rewordings

# Sentences on masks, and what they become where True means forbidden.
FORBIDDEN = rewordings("""
    `True` where allowed → `True` where forbidden
    `True` where attention is allowed → `True` where attention is forbidden
    `True` **where attention is allowed** → `True` **where attention is forbidden**
    True where attention is allowed → True where attention is forbidden
    True where allowed → True where forbidden
    Where the mask is `False` the weight → Where the mask is `True` the weight
    Scores where it is False become → Scores where it is True become
    where the mask is False → where the mask is True
    masked_fill(~mask → masked_fill(mask
    `scores * mask` → `scores * ~mask`
    `scores[~mask] = …` → `scores[mask] = …`
""")


def forbidden(
    adapters: Mapping[str, Adapter], reworded: str = "", *, explanation: str = ""
) -> Variant:
    """Return the variant of a chapter in which masks are True where attention is forbidden.

    ``reworded`` are further rewordings of its texts; ``explanation`` replaces the usual one of the
    mistake of an answer in the book's convention.
    """
    return Variant(
        "forbidden",
        "A mask is `True` where attention is **forbidden** here, and `False` where it is allowed. "
        "This is the other way round than in the book.",
        "True means forbidden here",
        explanation
        or "Your answer takes True for allowed, as the book and its published answers do. In this "
        "assignment a mask is True where attention is forbidden: fill in −∞ where it is True.",
        adapters,
        (*rewordings(reworded), *FORBIDDEN),
    )


def columns(
    adapters: Mapping[str, Adapter], reworded: str, *, inputs: str = "of every input"
) -> Variant:
    """Return the variant of a chapter in which tokens are columns of inputs and results."""
    return Variant(
        "columns",
        f"Tokens are **columns** here, {inputs} and of what is returned: `(..., d, n)`, where in "
        "the book they are rows. Masks and attention maps are as in the book.",
        "tokens are columns here",
        "Your answer takes a token for a row, as the book and its published answers do. In this "
        "assignment every column is a token: `x.mT` has them as rows, and the result's columns are "
        "the tokens again.",
        adapters,
        rewordings(reworded),
    )


def with_columns(*names: str, methods: tuple[str, ...] = ()) -> Adapter:
    """Return the adapter of an exercise whose arguments of these names, and result, are columns."""
    return Adapter(dict.fromkeys(names, COLUMNS), COLUMNS, methods)


def masked(*methods: str, drops: tuple[str, ...] = ("the mask is inverted",)) -> Adapter:
    """Return the adapter of an exercise with an argument ``mask``, of itself or of methods."""
    return Adapter({"mask": NEGATED}, methods=methods, drops=drops)
