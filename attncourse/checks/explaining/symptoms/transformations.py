"""Changes that turn the right result into the returned one, in words that follow "is"."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import combinations

import numpy as np

from attncourse.checks.explaining.symptoms.pairs import (
    Pair,
    close_in_single_precision,
    nearly_equal,
)
from attncourse.checks.trying.compare import scale_of

Change = Callable[[np.ndarray], np.ndarray]
NamedChange = tuple[str, Change]

NAMED_FACTORS = {
    -1.0: "the expected one with the wrong sign",
    np.log2(np.e): "the expected one in base 2: divided by ln 2",
    1 / np.log(10): "the expected one in base 10: divided by ln 10",
    2.0: "twice the expected one",
    0.5: "half the expected one",
}
AXIS_NAMES = {-1: "last", -2: "second to last", -3: "third to last"}


def transformation(pairs: list[Pair]) -> str | None:
    """Return the change that turns every right result into the returned one, in words, or None."""
    wrong = [p for p in pairs if not p.right]
    if not wrong or sum(p.expected.size for p in wrong) < 4:
        return None
    if all(p.expected.size == 1 and p.expected.dtype.kind == "b" for p in wrong):
        return None  # one truth value has nothing to transpose
    if all(close_in_single_precision(p) for p in pairs):
        return (
            "right to a few digits only, as where something inside is rounded, to float32 say, or "
            "a guard is too large"
        )
    numbers = number_changes(wrong)
    return (
        first_change(pairs, numbers)
        or first_change(pairs, RESULT_CHANGES)
        or scaled_differently(pairs)
        or reordered_numbers(pairs)
        or wrong_shape_words(pairs)
    )


def first_change(pairs: list[Pair], changes: Iterable[tuple[str, Change]]) -> str | None:
    """Return the words of the first change that gives all returned results, or None.

    It has to alter some wrong one: a change that leaves numbers alone explains nothing.
    """
    wrong = [p for p in pairs if not p.right]
    for words, change in changes:
        if all(change_explains(change, p) for p in pairs) and any(
            change_alters(change, p) for p in wrong
        ):
            return words
    return None


def change_of_all(pairs: list[Pair]) -> str | None:
    """Return the words of one change that gives all returned results, or None.

    It may be a factor that follows from a size.
    """
    wrong = [p for p in pairs if not p.right]
    words = first_change(pairs, number_changes(wrong)) or first_change(pairs, RESULT_CHANGES)
    if words or len(wrong) < len(pairs) or any(p.expected.dtype.kind == "b" for p in pairs):
        return words
    factors = [
        factors_along(p, axis=None, least=1) for p in wrong if p.returned.shape == p.expected.shape
    ]
    factors_found = [float(f) for f in factors if f is not None]
    return size_power_words(wrong, factors_found) if len(factors_found) == len(wrong) else None


def is_changed_result(p: Pair) -> bool:
    """True if some change of the right result gives the returned one in this case."""
    if first_change([p], RESULT_CHANGES):
        return True
    if p.returned.shape != p.expected.shape or p.expected.size < 4:
        return False
    return factors_along(p, axis=None) is not None


def change_explains(change: Change, p: Pair) -> bool:
    """True if the change turns the right result into the returned one."""
    changed = changed_result(change, p.expected)
    return (
        changed is not None
        and changed.shape == p.returned.shape
        and nearly_equal(p.returned, changed)
    )


def change_alters(change: Change, p: Pair) -> bool:
    """True if the change alters the right result at all."""
    changed = changed_result(change, p.expected)
    return changed is not None and (
        changed.shape != p.expected.shape or not nearly_equal(changed, p.expected)
    )


def changed_result(change: Change, expected: np.ndarray) -> np.ndarray | None:
    """Return the right result after a change, or None if the change raises for it."""
    try:
        with np.errstate(all="ignore"):
            return np.asarray(change(expected.astype(float)))
    except (ValueError, IndexError, TypeError):  # too few axes, say
        return None


def number_changes(wrong: list[Pair]) -> Iterator[tuple[str, Change]]:
    """Yield two changes: the right result times a number, and plus a number.

    Both numbers are read off the largest wrong result; a change is left out if they are not finite.
    """
    p = max(
        (p for p in wrong if p.returned.shape == p.expected.shape),
        key=lambda p: p.expected.size,
        default=None,
    )
    if p is None or p.expected.dtype.kind == "b" or p.returned.dtype.kind == "b":
        return
    returned, expected = p.returned.astype(float), p.expected.astype(float)
    with np.errstate(all="ignore"):
        ratios = (returned / expected)[np.abs(expected) > 1e-6 * scale_of(expected)]
    if ratios.size and np.isfinite(ratios).all():
        c = float(np.median(ratios))
        named_factor = next((k for k in NAMED_FACTORS if abs(k - c) < 1e-6), None)
        times = f"the expected one times {c:.4g}" if abs(c) > 1e-9 else "0 everywhere"
        words = NAMED_FACTORS[named_factor] if named_factor is not None else times
        yield words, lambda w: w * c
    with np.errstate(all="ignore"):
        gaps = (returned - expected)[np.isfinite(expected)]
    if gaps.size and np.isfinite(gaps).all():
        c = float(np.median(gaps))
        yield f"the expected one {'plus' if c > 0 else 'minus'} {abs(c):.4g}", lambda w: w + c


def softmax_along(w: np.ndarray, axis: int) -> np.ndarray:
    """Return the softmax of an array along an axis."""
    powers = np.exp(w - w.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


# Changes of a result: the words follow "the result is".
CONSTANT_RESULTS: tuple[NamedChange, ...] = (
    ("0 everywhere", np.zeros_like),
    ("1 everywhere", np.ones_like),
    ("NaN everywhere", lambda w: np.full_like(w, np.nan)),
)
# Along one axis, whose name goes into the words.
ALONG_AN_AXIS: tuple[tuple[str, Callable[..., np.ndarray]], ...] = (
    ("the expected one backwards along its {} axis", np.flip),
    *(
        (f"the expected one moved by {k:+d} along its {{}} axis", partial(np.roll, shift=k))
        for k in (1, -1, 2, -2)
    ),
    ("the expected one, summed over its {} axis", lambda w, axis: w.sum(axis)),
    ("the expected one, averaged over its {} axis", lambda w, axis: w.mean(axis)),
    (
        "the expected one, running sums along its {} axis",
        np.add.accumulate,  # refuses a single number
    ),
    (
        "the expected one divided by its sums along its {} axis",
        lambda w, axis: w / w.sum(axis, keepdims=True),
    ),
    (
        "the expected one divided by its lengths along its {} axis",
        lambda w, axis: w / np.sqrt((w * w).sum(axis, keepdims=True)),
    ),
    (
        "the expected one less its mean along its {} axis",
        lambda w, axis: w - w.mean(axis, keepdims=True),
    ),
    ("the expected one after a softmax over its {} axis", softmax_along),
    (
        "what the first along the {} axis should be, for all of them",
        lambda w, axis: np.broadcast_to(np.take(w, [0], axis), w.shape),
    ),
    (
        "what the last along the {} axis should be, for all of them",
        lambda w, axis: np.broadcast_to(np.take(w, [-1], axis), w.shape),
    ),
    ("the expected one sorted along its {} axis", np.sort),
    (
        "the expected one divided by its largest along its {} axis",
        lambda w, axis: w / w.max(axis, keepdims=True),
    ),
    (
        "the expected one less its largest along its {} axis",
        lambda w, axis: w - w.max(axis, keepdims=True),
    ),
    (
        "the expected one stretched to 0 … 1 along its {} axis",
        lambda w, axis: (w - w.min(axis, keepdims=True)) / np.ptp(w, axis, keepdims=True),
    ),
    (
        "1 at the largest of the expected ones along its {} axis, and 0 elsewhere",
        lambda w, axis: 1.0 * (w == w.max(axis, keepdims=True)),
    ),
    ("the expected one without its {} axis", lambda w, axis: np.take(w, 0, axis)),
    (
        "the expected one without the first along its {} axis",
        lambda w, axis: np.delete(w, 0, axis),
    ),
    (
        "the expected one without the last along its {} axis",
        lambda w, axis: np.delete(w, -1, axis),
    ),
)
WHOLE_RESULT: tuple[NamedChange, ...] = (
    ("the sum of the expected one", lambda w: w.sum()),
    ("the mean of the expected one", lambda w: w.mean()),
    ("the expected one without its axes of length 1", lambda w: w.squeeze()),
    ("the expected one with an axis more in front", lambda w: w[None]),
    ("the expected one with an axis more behind", lambda w: w[..., None]),
    ("the expected one with an axis more before its last", lambda w: w[..., None, :]),
    ("the expected one, all its axes run together", lambda w: w.ravel()),
    (
        "the expected one, the axes before its last run together",
        lambda w: w.reshape(-1, w.shape[-1]),
    ),
    (
        "the expected one, its last two axes run together",
        lambda w: w.reshape(*w.shape[:-2], -1),
    ),
    ("the expected one without its diagonal", lambda w: w * (1 - np.eye(*w.shape[-2:]))),
    ("the diagonal of the expected one", lambda w: w * np.eye(*w.shape[-2:])),
    ("the lower triangle of the expected one", np.tril),
    ("the upper triangle of the expected one", np.triu),
)
ENTRY_BY_ENTRY: tuple[NamedChange, ...] = (
    (
        "1 minus the expected one (of truth values, True where it should be False)",
        lambda w: 1 - w,
    ),
    ("0 and −∞ in place of True and False", lambda w: np.where(w != 0, 0.0, -np.inf)),
    ("the square of the expected one", np.square),
    ("the root of the expected one", np.sqrt),
    ("the size of the expected one, without its sign", np.abs),
    ("the exponential of the expected one", np.exp),
    ("the logarithm of the expected one", np.log),
    ("1 divided by the expected one", lambda w: 1 / w),
    ("the expected one rounded to whole numbers", np.round),
    ("the expected one cut off to whole numbers", np.trunc),
    *(
        (f"the expected one rounded to {k} digits", partial(np.round, decimals=k))
        for k in range(1, 7)
    ),
    ("the expected one with negative entries set to 0", lambda w: np.maximum(w, 0)),
    ("the expected one cut off at 1", lambda w: np.minimum(w, 1)),
    ("the expected one cut off between 0 and 1", lambda w: np.clip(w, 0, 1)),
    ("the expected one cut off between −1 and 1", lambda w: np.clip(w, -1, 1)),
)


def axis_exchanges() -> Iterator[NamedChange]:
    """Yield the exchanges of two axes, first of the last two, and the reversal of all."""
    yield "the expected one transposed", axis_exchange(-1, -2)
    for a, b in combinations(range(-4, 0), 2):
        if (a, b) != (-2, -1):
            yield f"the expected one with axes {a} and {b} exchanged", axis_exchange(a, b)
    yield "the expected one with all axes reversed", lambda w: w.transpose()


def result_changes() -> Iterator[NamedChange]:
    """Yield all changes of a result in the order in which they are tried, plain ones first.

    The order matters, since several may turn a small result into the returned one.
    """
    yield from CONSTANT_RESULTS
    yield from axis_exchanges()
    for axis, name in AXIS_NAMES.items():
        for words, change in ALONG_AN_AXIS:
            yield words.format(name), partial(change, axis=axis)
    yield from WHOLE_RESULT
    yield from ENTRY_BY_ENTRY


def axis_exchange(a: int, b: int) -> Change:
    """Return the change of a result that exchanges two of its axes."""
    return lambda w: w.swapaxes(a, b)


RESULT_CHANGES = tuple(result_changes())


def scaled_differently(pairs: list[Pair]) -> str | None:
    """Return words for a factor that differs by case, by row or by column; None without one.

    A factor that differs by case is named if it follows from a size.
    """
    wrong = [p for p in pairs if not p.right]
    if any(p.returned.shape != p.expected.shape or p.expected.dtype.kind == "b" for p in pairs):
        return None
    factors = [factors_along(p, axis=None, least=1) for p in wrong]
    factors_found = [float(f) for f in factors if f is not None]
    if len(factors_found) == len(factors):
        power_words = size_power_words(wrong, factors_found)
        # A single number is always another one times something: only a size gives that a meaning.
        if power_words or all(p.expected.size > 1 for p in wrong):
            return power_words or "the expected one times a number that differs from case to case"
    for axis, name in ((-1, "row"), (-2, "column")):
        if all(p.expected.ndim >= -axis and factors_along(p, axis) is not None for p in pairs):
            return f"the expected one, each {name} times a number of its own"
    return None


def factors_along(p: Pair, axis: int | None, least: int = 2) -> np.ndarray | None:
    """Return the factors by which the right result was multiplied along an axis, or None.

    With None as the axis it is one factor of all numbers. None, too, for fewer than ``least``
    numbers: a single one is always another one times something.
    """
    returned, expected = p.returned.astype(float), p.expected.astype(float)
    if (axis is not None and expected.shape[axis] < least) or expected.size < least:
        return None
    with np.errstate(all="ignore"):
        # The factor of least squares.
        f = (returned * expected).sum(axis, keepdims=True) / (expected * expected).sum(
            axis, keepdims=True
        )
        is_factor = (
            np.isfinite(f).all()
            and nearly_equal(p.returned, expected * f)
            and np.abs(f).min() > 1e-9
        )
    if not is_factor:
        return None
    return f.ravel()[0] if axis is None else f


POWERS = {1.0: "{}", -1.0: "1 / {}", 0.5: "√{}", -0.5: "1 / √{}", 2.0: "{}²", -2.0: "1 / {}²"}


def size_power_words(wrong: list[Pair], factors: list[float]) -> str | None:
    """Return "the expected one times …", a power of some argument's size or value; None without.

    The power has to equal the factors in all wrong results, and the size has to vary.
    """
    sizes: dict[tuple[int | str, int], list[int]] = {}
    for p in wrong:
        case = p.trial.case
        for name, value in [*enumerate(case.args), *case.kwargs.items()]:
            if type(value) is int:
                sizes.setdefault((name, 0), []).append(value)
            for axis in AXIS_NAMES:
                if len(getattr(value, "shape", ())) >= -axis:
                    sizes.setdefault((name, axis), []).append(value.shape[axis])
    for power, words in POWERS.items():
        for (name, axis), values in sizes.items():
            if len(values) != len(factors) or len(set(values)) == 1 or min(values) < 1:
                continue
            if np.allclose(np.array(values, float) ** power, factors, rtol=1e-5):
                whose = f"argument {name + 1}" if isinstance(name, int) else name
                quantity = f"the size of the {AXIS_NAMES[axis]} axis of {whose}" if axis else whose
                return f"the expected one times {words.format('s')}, where s is {quantity}"
    return None


def reordered_numbers(pairs: list[Pair]) -> str | None:
    """Return words if every result has the right numbers in other places, else None."""
    if any(p.returned.size != p.expected.size or p.expected.dtype.kind == "b" for p in pairs):
        return None
    has_same_numbers = all(
        nearly_equal(np.sort(p.returned, axis=None), np.sort(p.expected.astype(float), axis=None))
        for p in pairs
    )
    moved = all(np.unique(p.expected).size > 2 for p in pairs if not p.right)
    return "made of the right numbers, but in other places" if has_same_numbers and moved else None


def is_beginning(p: Pair, axis: int) -> bool:
    """True if a result is the beginning of the right one along an axis, and ends too early."""
    if p.expected.ndim < -axis or not 0 < p.returned.shape[axis] < p.expected.shape[axis]:
        return False
    begun = np.take(p.expected, range(p.returned.shape[axis]), axis)
    return p.returned.shape == begun.shape and nearly_equal(p.returned, begun)


def wrong_shape_words(pairs: list[Pair]) -> str | None:
    """Return, in words, how all shapes are wrong in the same way, or None."""
    wrong = [p for p in pairs if not p.right]
    if any(p.returned.shape == p.expected.shape for p in wrong):
        return None
    axes_added = {p.returned.ndim - p.expected.ndim for p in wrong}
    if all(p.expected.ndim == 0 for p in wrong) and min(axes_added) > 0:
        return "an array where one number is expected"
    if len(axes_added) != 1:
        return None
    axes = axes_added.pop()
    if axes == 0:
        for axis, name in AXIS_NAMES.items():
            if all(is_beginning(p, axis) for p in wrong):
                return f"only the beginning of the expected one along its {name} axis"
        for a, b in combinations(range(-4, 0), 2):
            if all(
                p.expected.ndim >= -a and p.returned.shape == p.expected.swapaxes(a, b).shape
                for p in wrong
            ):
                return f"of a shape whose axes {a} and {b} are exchanged, with other numbers"
        return None
    many = {1: "an axis", -1: "an axis"}.get(axes, f"{abs(axes)} axes")
    return f"of a shape with {many} too {'many' if axes > 0 else 'few'}"
