"""What a wrong result has to do with the right one, for mistakes that nobody foresaw.

A symptom is a sentence that holds in every case: the result is the expected one times 2, or
transposed, or right but for the first row. Like a name (see ``diagnosis``) it is told only if fresh
cases give the same sentence.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from attncourse.checks.drivers.modules import CALLS
from attncourse.checks.exercise import Mistake
from attncourse.checks.explaining.options import branches
from attncourse.checks.trying.compare import PRECISE, as_numbers, difference, equal, scale_of
from attncourse.checks.trying.trials import Trial

NAMED = {
    -1.0: "the expected one with the wrong sign",
    np.log2(np.e): "the expected one in base 2: divided by ln 2",
    1 / np.log(10): "the expected one in base 10: divided by ln 10",
    2.0: "twice the expected one",
    0.5: "half the expected one",
}


Change = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Symptom:
    """A sentence; ``sure`` if it explains every case, numbers and all.

    Some symptoms leave no doubt about the mistake, in whatever exercise; it need not be ``all``.
    """

    text: str
    sure: bool
    mistake: Mistake | None = None
    all: bool = True


@dataclass(frozen=True)
class Pair:
    """What was returned and what was expected, as arrays, and whether they agree."""

    got: np.ndarray
    want: np.ndarray
    trial: Trial

    @property
    def right(self) -> bool:
        return self.got.shape == self.want.shape and equal(self.got, self.want)


def first_that_holds(trials: tuple[Trial, ...]) -> Symptom | None:
    """The first symptom that holds in these trials; None if none does."""
    if any(t.outcome.kind in ("hung", "skipped") for t in trials):
        return None
    for look in LOOKS:
        found = look(trials)
        if found is not None:
            return found
    return None


# --- how a call behaves -------------------------------------------------------------------------


def changed_only(trials: tuple[Trial, ...]) -> Symptom | None:
    """Every result is right, but an argument was changed; a gradient may break over that."""
    wrong = [t for t in trials if t.wrong]
    if not all(raises_in_place(t) or called_again(t) for t in wrong):
        return None
    found = dict.fromkeys(t.outcome.mutated for t in trials if t.outcome.mutated)
    if not found:
        return None
    names = listed(found) if len(found) <= MANY else "more than one argument"
    mistake = Mistake(
        f"{names} {'is' if len(found) == 1 else 'are'} changed in place",
        f"Your results are right, but the call changes {names}. What is handed over belongs to the "
        "caller: assign to a new name, or work on a copy.",
    )
    return Symptom(mistake.name, True, mistake)


def raises_in_place(trial: Trial) -> bool:
    return trial.outcome.kind == "raised" and bool(IN_PLACE.search(trial.outcome.text))


def called_again(trial: Trial) -> bool:
    """Whether a case makes several calls, and a later one got what an earlier one had changed."""
    return isinstance(trial.expected.value, dict) and bool(trial.outcome.mutated)


MANY = 2  # names in a sentence
# As torch says it of a gradient, NumPy of dtypes.
IN_PLACE = re.compile("in-?place operation|Cannot cast ufunc")
CUT = "no gradient reaches "


def cut_gradients(trials: tuple[Trial, ...]) -> Symptom | None:
    """Every result is right, but no gradient reaches some argument, or the dtype is another.

    The two go together in what goes through NumPy.
    """
    wrong = [t for t in trials if t.wrong]
    cut = [t for t in wrong if t.outcome.text.startswith(CUT)]
    if not cut or not same_numbers([t for t in wrong if not t.outcome.text.startswith(CUT)]):
        return None
    names = listed(dict.fromkeys(t.outcome.text.removeprefix(CUT).split(":")[0] for t in cut))
    mistake = Mistake(
        f"the gradient of {names} is cut off",
        f"The numbers are right, but nothing can be learned through {names}: `.detach()`, "
        "`.data`, `.numpy()`, `torch.tensor(…)` or `torch.no_grad()` cut the history. Stay with "
        "torch operations on the tensors themselves.",
    )
    return Symptom(mistake.name, True, mistake)


def kept(trials: tuple[Trial, ...]) -> Symptom | None:
    """An object's first call is right, and a later one is not; a gradient may break over that."""
    wrong = [t for t in trials if t.wrong]
    calls = [c for t in wrong if (c := calls_of(t)) is not None]
    others = [t for t in wrong if calls_of(t) is None]
    if not calls or not all(c.first.right and c.stale for c in calls):
        return None
    if any(t.outcome.kind != "raised" for t in others):
        return None
    mistake = Mistake(
        "something is kept from an earlier call",
        "The first call of an object is right, and a later one works with what an earlier one "
        "left. `self` holds the layers; what is made of the input belongs in a plain name, and is "
        "made anew in every call.",
    )
    return Symptom(mistake.name, True, mistake)


@dataclass(frozen=True)
class Calls:
    """What one object returned: at first, for other inputs, and for the first ones again."""

    first: Pair
    second: Pair
    again: Pair

    @property
    def stale(self) -> bool:
        """Whether only an earlier call can be what makes a later one wrong."""
        alike = self.first.want.shape == self.second.want.shape
        return not self.again.right or (alike and not self.second.right)


def calls_of(trial: Trial) -> Calls | None:
    """The calls of one object, where a case makes several."""
    got, want = trial.outcome.value, trial.expected.value
    if not isinstance(got, dict) or not isinstance(want, dict) or tuple(want) != CALLS:
        return None
    three = [paired(got.get(name), want[name], trial) for name in CALLS]
    return Calls(*(one[0] for one in three)) if all(three) else None


def other_dtype(trials: tuple[Trial, ...]) -> Symptom | None:
    """Every result is right but for its dtype, or two dtypes meet where nothing is returned.

    Calls that raise something else are told of beside it, where most do not.
    """
    wrong = [t for t in trials if t.wrong]
    met = [t for t in wrong if t.outcome.kind == "raised" and TWO_DTYPES.search(t.outcome.text)]
    raised = [t for t in wrong if t.outcome.kind == "raised" and not any(t is m for m in met)]
    there = [t for t in wrong if t.outcome.kind != "raised"]
    if not there + met or not same_numbers(there) or 2 * len(raised) > len(trials):
        return None
    if raised and not there:
        return None  # nothing returned a number
    said = (there or met)[0].problem.said
    if raised:
        told = f"the numbers are right where there are any, but it {said}: {KEEP_DTYPE}"
        return Symptom(f"{told}; besides, {raised[0].problem.said}", False)
    asked = {str(getattr(t.expected.value, "dtype", "")).removeprefix("torch.") for t in there}
    whole = next(iter(asked)) if len(asked) == 1 else ""
    cure = (
        f"Return whole numbers, of dtype {whole}."
        if whole.startswith("int")
        else f"{KEEP_DTYPE[0].upper()}{KEEP_DTYPE[1:]}."
    )
    mistake = Mistake(
        "the dtype is another one",
        f"The numbers are right, but it {said}. {cure}" if there else f"It {said}. {cure}",
    )
    return Symptom(mistake.name, True, mistake)


KEEP_DTYPE = "keep the dtype of what comes in, make arrays with `dtype=x.dtype`, say"
TWO_DTYPES = re.compile(
    "same dtype|expected one dtype|expected scalar type|found dtype"
)  # as torch says it


def same_numbers(wrong: list[Trial]) -> bool:
    """Whether nothing but the dtype is wrong in these trials."""
    there = pairs(tuple(wrong))
    problems = [t.problem for t in wrong if t.problem is not None]
    return (
        len(there) == len(wrong)
        and all(map(close, there))
        and all(p.kind == "dtype" for p in problems)
    )


def unfit(trials: tuple[Trial, ...]) -> Symptom | None:
    """A module without the parameters that the exercise names.

    And what ends in an exception that leaves no doubt, in every case that is wrong. What a module
    holds is sure, whatever else is wrong.
    """
    texts = [t.outcome.text for t in trials if t.wrong]
    for pattern, name, cure in UNFIT:
        found = [match for text in texts if (match := re.match(pattern, text))]
        sure = pattern.startswith("your module") or len(found) == len(texts)
        if found and sure:
            names = listed(dict.fromkeys(match[1] for match in found))
            mistake = Mistake(name.format(names), cure.format(names))
            return Symptom(mistake.name, True, mistake, len(found) == len(texts))
    return None


UNFIT = (
    (
        "your module has parameters that nobody asked for: (.+)",
        "a parameter too many: {}",
        "Your module learns {} as well, which the exercise does not name. Hold the parameters that "
        "it lists and no others.",
    ),
    (
        r"your module has no parameter ([^;]+);",
        "there is no parameter {}",
        "The exercise says what your module's parameters are called, and {} is not there. A layer "
        "`self.W = nn.Linear(…)` has its numbers in `W.weight`, and in `W.bias` where it is made "
        "with one; an `nn.Parameter` has them in `W` itself.",
    ),
    (
        r"your module has (\S+) of shape",
        "{} has another shape",
        "The exercise says how large each parameter is, and {} is not. `nn.Linear(d_in, d_out)` "
        "stores its weight as (d_out, d_in); an `nn.Parameter` has the shape that you give it.",
    ),
    (
        r"your module learns() \d+ numbers, expected",
        "fewer parameters than asked for",
        "The layers and weights that the exercise names hold more numbers than your module learns. "
        "Two names may stand for one layer, as after `self.b = self.a`, where each has its own; or "
        "a weight is a plain tensor and no `nn.Parameter`.",
    ),
    (
        r"called (\S+), which this exercise asks you to build",
        "{} is called, which is to be written",
        "The exercise asks you to build what `{}` does, so it may not be called: write it out of "
        "sums, products and the other plain operations.",
    ),
    (
        r".*(Boolean value of Tensor|truth value of an array)",
        "one truth value of a whole array",
        "`if x:`, `x or …` and `if a > b:` ask for one truth value, and an array has one for each "
        "entry. Whether any entry is so is asked by `.any()`, whether x was given by "
        "`x is not None`; entry by entry choose `np.where` or `torch.where`.",
    ),
    (
        r".*(with a bool tensor|on a bool tensor|boolean (?:subtract|negative))",
        "truth values are subtracted",
        "Neither torch nor NumPy takes a minus of truth values. `~mask` exchanges True and False; "
        "`mask.to(x.dtype)`, in NumPy `mask.astype(float)`, makes numbers of them.",
    ),
    (
        ".*(leaf Variable that requires grad is being used in an in-place)",
        "a parameter is written to while gradients are recorded",
        "`copy_` and `+=` on a parameter are steps that torch would have to go back through. Write "
        "to parameters inside `with torch.no_grad():`.",
    ),
    (
        r".*cannot assign '[\w.]+' as parameter '(\w+)'",
        "a tensor in the place of a parameter",
        "torch refuses `layer.{0} = tensor`. Write `layer.{0} = nn.Parameter(tensor)`, or copy the "
        "numbers into one that is there: `with torch.no_grad(): layer.{0}.copy_(tensor)`.",
    ),
    (
        r".*(has no attribute '_(?:parameters|modules|buffers|\w+_hooks)'|before Module\.__init__)",
        "super().__init__() is missing",
        "`nn.Module` makes its lists of parameters and layers in its own `__init__`. Call "
        "`super().__init__()` before anything is assigned.",
    ),
)


def rounded(trials: tuple[Trial, ...]) -> Symptom | None:
    """Every result is right to single precision only."""
    there = pairs(trials)
    wrong = [p for p in there if not p.right]
    if not wrong or len(wrong) < sum(t.wrong for t in trials) or not all(map(close, there)):
        return None
    if not all(apart(p) < 1e-6 * scale_of(p.want) and p.want.dtype == np.float64 for p in wrong):
        return None
    if all(np.array_equal(p.want, np.round(p.want)) for p in wrong):
        return None  # whole numbers have no digits to lose
    if way := one_way(wrong):
        told = f"the result is right but for its last digits: all too {way}, as where a guard is"
        return Symptom(f"{told} added to a divisor, or a number has too few digits", True)
    mistake = Mistake(
        "single precision inside",
        "Your results differ from the right ones by about as much as float32 rounds, where the "
        "arguments are float64. Convert nothing, make arrays with `dtype=x.dtype`, and type "
        "numbers in with all their digits.",
    )
    return Symptom(mistake.name, True, mistake)


def one_way(wrong: list[Pair]) -> str:
    """Whether all numbers are too small, or all too large, which rounding does not make them."""
    signs = np.concatenate([((p.got - p.want) * np.sign(p.want)).ravel() for p in wrong])
    signs = signs[np.abs(signs) > 1e-13 * max(scale_of(p.want) for p in wrong)]
    if len(signs) < 12:
        return ""
    return "small" if (signs < 0).all() else "large" if (signs > 0).all() else ""


def nothing_returned(trials: tuple[Trial, ...]) -> Symptom | None:
    """Every call that does not raise gives None back, where something else was asked for."""
    ended = [t for t in trials if t.wrong and t.outcome.kind == "value" and t.case.raises is None]
    if not ended or any(t.outcome.value is not None or t.expected.value is None for t in ended):
        return None
    if any(not t.wrong for t in trials if t.case.raises is None):
        return None
    mistake = Mistake(
        "nothing is returned",
        "Your function gives None back. Is there a `return` at the end, and on every way through "
        "it? What works in place, `list.sort()` say, gives None back as well.",
    )
    return Symptom(mistake.name, True, mistake)


def squeezed(trials: tuple[Trial, ...]) -> Symptom | None:
    """Axes of length 1 are gone: those of a batch, or of the only token."""
    wrong = [t for t in trials if t.wrong]
    there = pairs(tuple(wrong))
    if not there or len(there) < len(wrong) or not all(1 in p.want.shape for p in there):
        return None
    if not all(gives(np.squeeze, p) for p in there):
        return None
    return Symptom(SQUEEZED, True)


SQUEEZED = "the result is the expected one without its axes of length 1"


def unbatched(trials: tuple[Trial, ...]) -> Symptom | None:
    """What alone is wrong has more batch axes, or fewer, than what is right."""
    more = [*zip(trials, batch_axes(trials), strict=True)]
    wrong, right = (
        {axes for t, axes in more if t.wrong is bad and t.case.raises is None}
        for bad in (True, False)
    )
    told = [t.case.note + t.criterion.name for t, axes in more if t.wrong and axes]
    if not wrong or not right or wrong & right or not all("batch" in text for text in told):
        return None
    if max(right) > 1 or (min(wrong) <= max(right) and right != {1}):
        return None
    exactly = "exactly" if min(wrong) == 0 else "at most"
    what = "no batch axis is" if max(right) == 0 else f"{exactly} one batch axis is"
    where = (
        "without further axes in front" if max(right) == 0 else f"with {what.removesuffix(' is')}"
    )
    mistake = Mistake(
        f"{what} provided for",
        f"Your results are right {where}. Leading axes are batches, any "
        "number of them: count the axes from the end (`axis=-1` or `dim=-1`, `x[..., i, :]`) and "
        "let `@` and broadcasting take the others along.",
    )
    return Symptom(mistake.name, True, mistake)


def batch_axes(trials: tuple[Trial, ...]) -> list[int]:
    """By how many axes the arguments of each case exceed the smallest case."""
    least: dict[object, int] = {}
    for trial in trials:
        for name, ndim in axes_of(trial):
            least[name] = min(ndim, least.get(name, ndim))
    return [max((ndim - least[n] for n, ndim in axes_of(t)), default=0) for t in trials]


def axes_of(trial: Trial) -> list[tuple[object, int]]:
    """How many axes each array has that goes into a case."""
    named = [*enumerate(trial.case.args), *trial.case.kwargs.items()]
    return [(name, len(v.shape)) for name, v in named if hasattr(v, "shape")]


def listed(names: Iterable[str]) -> str:
    """Names in a sentence: a, b and c."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def by_lot(trials: tuple[Trial, ...], repeated: tuple[Trial, ...]) -> str:
    """The same calls once more have other results."""
    other = any(
        a.got.shape != b.got.shape or not np.array_equal(a.got, b.got, equal_nan=True)
        for a, b in zip(pairs(trials), pairs(repeated), strict=False)
    )
    return "the same call gives other numbers each time" if other else ""


def unmoved(trials: tuple[Trial, ...], fresh: tuple[Trial, ...]) -> str:
    """Calls with other numbers have the same results."""
    both = [
        (a, b)
        for a, b in zip(pairs(trials), pairs(fresh), strict=False)
        if a.want.shape == b.want.shape and a.got.shape == b.got.shape
    ]
    moving = [(a, b) for a, b in both if a.want.size > 1 and not equal(a.want, b.want)]
    still = len(moving) > 1 and all(equal(a.got, b.got) for a, b in moving)
    return "the result does not depend on the numbers that come in" if still else ""


# --- the result as a function of the right one --------------------------------------------------


def pairs(trials: tuple[Trial, ...]) -> list[Pair]:
    """The trials that returned numbers where numbers were expected.

    Of a result with gradients, what was returned itself.
    """
    found = []
    for t in trials:
        if t.outcome.kind != "value" or t.expected.kind != "value":
            continue
        found += paired(*returned(t), t)
    return found


def returned(trial: Trial) -> tuple[object, object]:
    """What was returned and what should be, without the gradients or facts beside it."""
    got, want = trial.outcome.value, trial.expected.value
    if isinstance(want, dict) and isinstance(got, dict):
        key = next(iter(want))
        return got.get(key), want[key]
    return got, want


def paired(got: object, want: object, trial: Trial) -> list[Pair]:
    arrays = [as_numbers(v) if v is not None else None for v in (got, want)]
    return [Pair(*arrays, trial)] if all(a is not None for a in arrays) else []


def facts(trials: tuple[Trial, ...]) -> Symptom | None:
    """Every result is right, and of what else is to hold something does not."""
    wrong = [t for t in trials if t.wrong]
    told = [(t.outcome.value, t.expected.value) for t in wrong]
    if not wrong or not all(isinstance(v, dict) for both in told for v in both):
        return None
    parts = [(f, got.get(f), want[f]) for got, want in told for f in want]
    broken = dict.fromkeys(f for f, got, want in parts if difference(got, want, brief=True))
    if any(type(want) is not bool and f in broken for f, _, want in parts):
        return None
    return Symptom(f"every result is right, but this does not hold: {'; '.join(broken)}", True)


def other_gradients(trials: tuple[Trial, ...]) -> Symptom | None:
    """Every result is right, but some gradients are not."""
    wrong = [t for t in trials if t.wrong]
    told = [value for t in wrong for value in (t.outcome.value, t.expected.value)]
    if not wrong or not all(isinstance(value, dict) for value in told):  # None: it was to raise
        return None
    if not all(p.right for p in pairs(tuple(wrong))):
        return None
    parts: dict[str, list[Pair]] = {}
    for t in wrong:
        for key, want in t.expected.value.items():
            parts.setdefault(key, []).extend(paired(t.outcome.value.get(key), want, t))
    names = [key for key, there in parts.items() if not all(p.right for p in there)]
    found = {transformation([p for p in parts[key]]) for key in names}
    words = found.pop() if len(found) == 1 else None
    verb = "is" if len(names) == 1 else "are each"
    how = f"{verb} {words}" if words else f"{verb} wrong"
    return Symptom(f"every result is right, but {' and '.join(names)} {how}", True)


def one_part(trials: tuple[Trial, ...]) -> Symptom | None:
    """Of several results some are right throughout, the others are not."""
    both = [(*returned(t), t) for t in trials]
    values = [of for of in both if all(isinstance(v, tuple | list) for v in of[:2])]
    if len([t for *_, t in values if t.wrong]) < max(1, sum(t.wrong for t in trials)):
        return None
    lengths = {len(v) for got, want, _ in values for v in (got, want)}
    if len(lengths) > 1 or not 1 < min(lengths) <= len(PARTS):
        return None
    parts = [
        [(got[n], want[n], t) for got, want, t in values if want[n] is not None]
        for n in range(min(lengths))
    ]
    bad = [n for n, part in enumerate(parts) if any(difference(a, b) for a, b, _ in part)]
    if not 0 < len(bad) < len(parts):
        return None
    names = listed(PARTS[n] for n in bad)
    how = transformation([p for a, b, t in parts[bad[0]] for p in paired(a, b, t)])
    verb = f"is {how}" if how and len(bad) == 1 else "is wrong" if len(bad) == 1 else "are wrong"
    rest = "the others are" if len(parts) - len(bad) > 1 else "the other is"
    return Symptom(f"of the results, the {names} {verb}, and {rest} right", True)


PARTS = ("first", "second", "third", "fourth")


def transformed(trials: tuple[Trial, ...]) -> Symptom | None:
    """One change of the right result that gives what was returned, in every case.

    Calls that raise are told of beside it, where most do not.
    """
    there = pairs(trials)
    raised = [t for t in trials if t.wrong and t.outcome.kind == "raised"]
    if len(there) + len(raised) < sum(t.wrong for t in trials) or len(raised) > len(there) / 2:
        return None
    words = transformation(there)
    if words is None:
        return None
    beside = f"; besides, {raised[0].problem.said}" if raised else ""
    return Symptom(f"the result is {words}{beside}", not raised)


def transformation(there: list[Pair]) -> str | None:
    """The change of what is right into what is there, in words that follow "is"."""
    wrong = [p for p in there if not p.right]
    if not wrong or sum(p.want.size for p in wrong) < 4:
        return None
    if all(p.want.size == 1 and p.want.dtype.kind == "b" for p in wrong):
        return None  # one truth value has nothing to transpose
    if all(close(p) for p in there):
        return (
            "right to a few digits only, as where something inside is rounded, to float32 say, or "
            "a guard is too large"
        )
    numbers = by_numbers(wrong)
    return (
        changed_by(there, numbers)
        or changed_by(there, SHAPES)
        or scaled(there)
        or reordered(there)
        or misshapen(there)
    )


def changed_by(there: list[Pair], changes: Iterable[tuple[str, Change]]) -> str | None:
    """The first of these changes that gives what is there."""
    wrong = [p for p in there if not p.right]
    for words, change in changes:
        if all(gives(change, p) for p in there) and any(moves(change, p) for p in wrong):
            return words
    return None


def changed_throughout(there: list[Pair]) -> str | None:
    """One change, a factor that follows from a size included, that gives what is there."""
    wrong = [p for p in there if not p.right]
    words = changed_by(there, by_numbers(wrong)) or changed_by(there, SHAPES)
    if words or len(wrong) < len(there) or any(p.want.dtype.kind == "b" for p in there):
        return words
    factors = [factor(p, None, 1) for p in wrong if p.got.shape == p.want.shape]
    known = len(factors) == len(wrong) and all(f is not None for f in factors)
    return size_named(wrong, [float(f) for f in factors]) if known else None


def may_be_changed(p: Pair) -> bool:
    """Whether some change gives what is there in one case."""
    if changed_by([p], SHAPES):
        return True
    return p.got.shape == p.want.shape and p.want.size >= 4 and factor(p, None) is not None


def scaled(there: list[Pair]) -> str | None:
    """A factor of its own for each case, each row or each column."""
    wrong = [p for p in there if not p.right]
    if any(p.got.shape != p.want.shape or p.want.dtype.kind == "b" for p in there):
        return None
    factors = [factor(p, None, 1) for p in wrong]
    if all(f is not None for f in factors):
        named = size_named(wrong, [float(f) for f in factors])
        if named or all(p.want.size > 1 for p in wrong):
            return named or "the expected one times a number that differs from case to case"
    for axis, name in ((-1, "row"), (-2, "column")):
        if all(p.want.ndim >= -axis and factor(p, axis) is not None for p in there):
            return f"the expected one, each {name} times a number of its own"
    return None


def factor(p: Pair, axis: int | None, least: int = 2) -> np.ndarray | None:
    """The numbers that the right result was multiplied by along an axis; None if by none.

    Of fewer than the ``least`` numbers nothing is told: one is always another one times something.
    """
    got, want = p.got.astype(float), p.want.astype(float)
    if (axis is not None and want.shape[axis] < least) or want.size < least:
        return None
    with np.errstate(all="ignore"):
        f = (got * want).sum(axis, keepdims=True) / (want * want).sum(axis, keepdims=True)
        found = np.isfinite(f).all() and nearly(p.got, want * f) and np.abs(f).min() > 1e-9
    return f.ravel()[0] if found and axis is None else (f if found else None)


POWERS = {1.0: "{}", -1.0: "1 / {}", 0.5: "√{}", -0.5: "1 / √{}", 2.0: "{}²", -2.0: "1 / {}²"}
ENDS = {-1: "last", -2: "second to last", -3: "third to last"}


def size_named(wrong: list[Pair], factors: list[float]) -> str | None:
    """The factors as a power of some argument's size along an axis."""
    sizes: dict[tuple[int | str, int], list[int]] = {}
    for p in wrong:
        case = p.trial.case
        for name, value in [*enumerate(case.args), *case.kwargs.items()]:
            if type(value) is int:
                sizes.setdefault((name, 0), []).append(value)
            for axis in ENDS:
                if len(getattr(value, "shape", ())) >= -axis:
                    sizes.setdefault((name, axis), []).append(value.shape[axis])
    for power, words in POWERS.items():
        for (name, axis), seen in sizes.items():
            if len(seen) != len(factors) or len(set(seen)) == 1 or min(seen) < 1:
                continue
            if np.allclose(np.array(seen, float) ** power, factors, rtol=1e-5):
                whose = f"argument {name + 1}" if isinstance(name, int) else name
                what = f"the size of the {ENDS[axis]} axis of {whose}" if axis else whose
                return f"the expected one times {words.format('s')}, where s is {what}"
    return None


def reordered(there: list[Pair]) -> str | None:
    """The right numbers in other places."""
    if any(p.got.size != p.want.size or p.want.dtype.kind == "b" for p in there):
        return None
    alike = all(
        nearly(np.sort(p.got, axis=None), np.sort(p.want.astype(float), axis=None)) for p in there
    )
    moved = all(np.unique(p.want).size > 2 for p in there if not p.right)
    return "made of the right numbers, but in other places" if alike and moved else None


def misshapen(there: list[Pair]) -> str | None:
    """A shape that is wrong in one way, whatever the numbers."""
    wrong = [p for p in there if not p.right]
    if any(p.got.shape == p.want.shape for p in wrong):
        return None
    more = {p.got.ndim - p.want.ndim for p in wrong}
    if all(p.want.ndim == 0 for p in wrong) and min(more) > 0:
        return "an array where one number is expected"
    if len(more) != 1:
        return None
    axes = more.pop()
    if axes == 0:
        for a, b in combinations(range(-4, 0), 2):
            if all(p.want.ndim >= -a and p.got.shape == p.want.swapaxes(a, b).shape for p in wrong):
                return f"of a shape whose axes {a} and {b} are exchanged, with other numbers"
        return None
    many = {1: "an axis", -1: "an axis"}.get(axes, f"{abs(axes)} axes")
    return f"of a shape with {many} too {'many' if axes > 0 else 'few'}"


def close(p: Pair) -> bool:
    """Whether a result is right but for what single precision loses."""
    if p.got.shape != p.want.shape:
        return False
    return p.right or apart(p) <= PRECISE * scale_of(p.want)


def apart(p: Pair) -> float:
    """The largest difference."""
    with np.errstate(all="ignore"):
        gaps = np.abs(p.got.astype(float) - p.want.astype(float))
    return float(gaps.max(initial=0.0)) if np.isfinite(gaps).all() else np.inf


def gives(change: Change, p: Pair) -> bool:
    """Whether the change of the right result is what was returned."""
    made = tried(change, p.want)
    return made is not None and made.shape == p.got.shape and nearly(p.got, made)


def moves(change: Change, p: Pair) -> bool:
    """Whether the change is one at all."""
    made = tried(change, p.want)
    return made is not None and (made.shape != p.want.shape or not nearly(made, p.want))


def tried(change: Change, want: np.ndarray) -> np.ndarray | None:
    try:
        with np.errstate(all="ignore"):
            return np.asarray(change(want.astype(float)))
    except (ValueError, IndexError, TypeError):  # too few axes, say
        return None


def nearly(a: np.ndarray, b: np.ndarray) -> bool:
    with np.errstate(all="ignore"):
        b = b.astype(float)
        limit = 1e-4 if a.dtype in (np.float32, np.float16) else 1e-7
        scale = np.abs(b[np.isfinite(b)]).max(initial=0.0) or 1.0
        return bool(
            np.isclose(a.astype(float), b, rtol=0, atol=limit * scale, equal_nan=True).all()
        )


def shapes() -> Iterator[tuple[str, Change]]:
    """Changes of a result in words that follow "the result is"."""
    yield "0 everywhere", np.zeros_like
    yield "1 everywhere", np.ones_like
    yield "NaN everywhere", lambda w: np.full_like(w, np.nan)
    yield "the expected one transposed", lambda w: w.swapaxes(-1, -2)
    for a, b in combinations(range(-4, 0), 2):
        if (a, b) != (-2, -1):
            yield f"the expected one with axes {a} and {b} exchanged", exchange(a, b)
    yield "the expected one with all axes reversed", lambda w: w.transpose()
    for axis, name in ((-1, "last"), (-2, "second to last"), (-3, "third to last")):
        yield f"the expected one backwards along its {name} axis", lambda w, a=axis: np.flip(w, a)
        for k in (1, -1, 2, -2):
            yield (
                f"the expected one moved by {k:+d} along its {name} axis",
                lambda w, a=axis, k=k: np.roll(w, k, a),
            )
        yield f"the expected one, summed over its {name} axis", lambda w, a=axis: w.sum(a)
        yield f"the expected one, averaged over its {name} axis", lambda w, a=axis: w.mean(a)
        yield (
            f"the expected one, running sums along its {name} axis",
            lambda w, a=axis: np.add.accumulate(w, a),  # refuses a single number
        )
        yield (
            f"the expected one divided by its sums along its {name} axis",
            lambda w, a=axis: w / w.sum(a, keepdims=True),
        )
        yield (
            f"the expected one divided by its lengths along its {name} axis",
            lambda w, a=axis: w / np.sqrt((w * w).sum(a, keepdims=True)),
        )
        yield (
            f"the expected one less its mean along its {name} axis",
            lambda w, a=axis: w - w.mean(a, keepdims=True),
        )
        yield (
            f"the expected one after a softmax over its {name} axis",
            lambda w, a=axis: (
                np.exp(w - w.max(a, keepdims=True))
                / np.exp(w - w.max(a, keepdims=True)).sum(a, keepdims=True)
            ),
        )
        yield (
            f"what the first along the {name} axis should be, for all of them",
            lambda w, a=axis: np.broadcast_to(np.take(w, [0], a), w.shape),
        )
        yield (
            f"what the last along the {name} axis should be, for all of them",
            lambda w, a=axis: np.broadcast_to(np.take(w, [-1], a), w.shape),
        )
        yield f"the expected one sorted along its {name} axis", lambda w, a=axis: np.sort(w, a)
        yield (
            f"the expected one divided by its largest along its {name} axis",
            lambda w, a=axis: w / w.max(a, keepdims=True),
        )
        yield (
            f"the expected one less its largest along its {name} axis",
            lambda w, a=axis: w - w.max(a, keepdims=True),
        )
        yield (
            f"the expected one stretched to 0 … 1 along its {name} axis",
            lambda w, a=axis: (w - w.min(a, keepdims=True)) / np.ptp(w, a, keepdims=True),
        )
        yield (
            f"1 at the largest of the expected ones along its {name} axis, and 0 elsewhere",
            lambda w, a=axis: 1.0 * (w == w.max(a, keepdims=True)),
        )
        yield f"the expected one without its {name} axis", lambda w, a=axis: np.take(w, 0, a)
        yield (
            f"the expected one without the first along its {name} axis",
            lambda w, a=axis: np.delete(w, 0, a),
        )
        yield (
            f"the expected one without the last along its {name} axis",
            lambda w, a=axis: np.delete(w, -1, a),
        )
    yield "the sum of the expected one", lambda w: w.sum()
    yield "the mean of the expected one", lambda w: w.mean()
    yield "the expected one without its axes of length 1", lambda w: w.squeeze()
    yield "the expected one with an axis more in front", lambda w: w[None]
    yield "the expected one with an axis more behind", lambda w: w[..., None]
    yield "the expected one with an axis more before its last", lambda w: w[..., None, :]
    yield "the expected one, all its axes run together", lambda w: w.ravel()
    yield (
        "the expected one, the axes before its last run together",
        lambda w: w.reshape(-1, w.shape[-1]),
    )
    yield "the expected one, its last two axes run together", lambda w: w.reshape(*w.shape[:-2], -1)
    yield "the expected one without its diagonal", lambda w: w * (1 - np.eye(*w.shape[-2:]))
    yield "the diagonal of the expected one", lambda w: w * np.eye(*w.shape[-2:])
    yield "the lower triangle of the expected one", np.tril
    yield "the upper triangle of the expected one", np.triu
    yield (
        "1 minus the expected one (of truth values, True where it should be False)",
        lambda w: 1 - w,
    )
    yield "0 and −∞ in place of True and False", lambda w: np.where(w != 0, 0.0, -np.inf)
    yield "the square of the expected one", np.square
    yield "the root of the expected one", np.sqrt
    yield "the size of the expected one, without its sign", np.abs
    yield "the exponential of the expected one", np.exp
    yield "the logarithm of the expected one", np.log
    yield "1 divided by the expected one", lambda w: 1 / w
    yield "the expected one rounded to whole numbers", np.round
    yield "the expected one cut off to whole numbers", np.trunc
    for k in range(1, 7):
        yield f"the expected one rounded to {k} digits", lambda w, k=k: np.round(w, k)
    yield "the expected one with negative entries set to 0", lambda w: np.maximum(w, 0)
    yield "the expected one cut off at 1", lambda w: np.minimum(w, 1)
    yield "the expected one cut off between 0 and 1", lambda w: np.clip(w, 0, 1)
    yield "the expected one cut off between −1 and 1", lambda w: np.clip(w, -1, 1)


def exchange(a: int, b: int) -> Change:
    return lambda w: w.swapaxes(a, b)


SHAPES = tuple(shapes())


def by_numbers(wrong: list[Pair]) -> Iterator[tuple[str, Change]]:
    """The expected result times or plus one number, or times a size of an argument."""
    p = max(
        (p for p in wrong if p.got.shape == p.want.shape), key=lambda p: p.want.size, default=None
    )
    if p is None or p.want.dtype.kind == "b" or p.got.dtype.kind == "b":
        return
    got, want = p.got.astype(float), p.want.astype(float)
    with np.errstate(all="ignore"):
        ratios = (got / want)[np.abs(want) > 1e-6 * scale_of(want)]
    if ratios.size and np.isfinite(ratios).all():
        c = float(np.median(ratios))
        near = next((k for k in NAMED if abs(k - c) < 1e-6), None)
        times = f"the expected one times {c:.4g}" if abs(c) > 1e-9 else "0 everywhere"
        words = NAMED[near] if near is not None else times
        yield words, lambda w: w * c
    with np.errstate(all="ignore"):
        gaps = (got - want)[np.isfinite(want)]
    if gaps.size and np.isfinite(gaps).all():
        c = float(np.median(gaps))
        yield f"the expected one {'plus' if c > 0 else 'minus'} {abs(c):.4g}", lambda w: w + c


# --- where the result is wrong ------------------------------------------------------------------

# A place is a mask over the last axes of a result, of those entries that are named.
PLACES: tuple[tuple[str, Callable[[np.ndarray], np.ndarray]], ...] = (
    ("in the first row", lambda w: along(w, -2) == 0),
    ("in the last row", lambda w: along(w, -2) == w.shape[-2] - 1),
    ("in the first column", lambda w: along(w, -1) == 0),
    ("in the last column", lambda w: along(w, -1) == w.shape[-1] - 1),
    ("on the diagonal", lambda w: along(w, -2) == along(w, -1)),
    ("above the diagonal", lambda w: along(w, -2) < along(w, -1)),
    ("below the diagonal", lambda w: along(w, -2) > along(w, -1)),
    (
        "for the first along the third to last axis, a head or a sequence",
        lambda w: along(w, -3) == 0,
    ),
    ("for the first of a batch", lambda w: along(w, min(-w.ndim, -3)) == 0),
    ("where 0 is expected", lambda w: w == 0),
    ("where a negative number is expected", lambda w: w < 0),
    ("where True is expected", lambda w: w.astype(bool)),
)


def along(w: np.ndarray, axis: int) -> np.ndarray:
    """The index along one axis, for every entry."""
    if w.ndim < -axis:
        raise IndexError
    return np.indices(w.shape)[axis] if w.size else np.zeros(w.shape, int)


def located(trials: tuple[Trial, ...]) -> Symptom | None:
    """A part of each result that alone is right, or alone is wrong."""
    there = pairs(trials)
    wrong = [p for p in there if not p.right]
    if not wrong or any(t.wrong and t.outcome.kind != "value" for t in trials):
        return None
    if any(p.got.shape != p.want.shape for p in wrong):
        return None
    errors = [(p, differing(p)) for p in there]
    for words, place in PLACES:
        if not all(divides(place, p.want) for p in wrong):
            continue
        for only, inside in (("right but ", True), ("right only ", False)):
            if all(within_place(p, bad, place, inside) for p, bad in errors):
                return Symptom(f"the result is {only}{words}", True)
    return None


def divides(place: Callable[[np.ndarray], np.ndarray], want: np.ndarray) -> bool:
    """Whether some entries are in a place and others are not."""
    try:
        return len(np.unique(place(want))) == 2
    except IndexError:
        return False


def differing(p: Pair) -> np.ndarray:
    """The entries that differ."""
    allowed = 1e-4 if p.got.dtype in (np.float32, np.float16) else 1e-8
    with np.errstate(all="ignore"):
        a, b = p.got.astype(float), p.want.astype(float)
        return ~np.isclose(a, b, rtol=0, atol=allowed * scale_of(p.want), equal_nan=True)


def within_place(
    p: Pair, bad: np.ndarray, place: Callable[[np.ndarray], np.ndarray], inside: bool
) -> bool:
    """Whether the wrong entries are all those of a place, or all the others.

    An entry that happens to be right among the wrong ones is forgiven, one of the others is not.
    """
    try:
        named = place(p.want)
    except IndexError:
        return p.right
    here = named if inside else ~named
    if (bad & ~here).any():
        return False
    if not here.any() or (p.right and here.all()):
        return not bad.any()
    return bool(2 * (bad & here).sum() >= here.sum()) and (not here.all() or not inside)


def limited(trials: tuple[Trial, ...]) -> Symptom | None:
    """A kind of case that alone is wrong: what the criteria and their notes say of it."""
    wrong = [t for t in trials if t.stands_out]
    right = [t for t in trials if not t.stands_out]
    if not wrong or not right:
        return None
    if any(t.case.raises is not None for t in wrong):
        wanted = {t.case.raises for t in wrong}
        kinds = {t.outcome.kind for t in wrong}
        if None in wanted or len(kinds) > 1:
            return None
        error = listed(w.__name__ for w in wanted)
        mistake = Mistake(
            "what is to be refused is not",
            f"Your results are right. What the text rules out is to raise {error} and gets an "
            f"answer: `if …: raise {error}(…)`, before anything is computed.",
        )
        if kinds == {"raised"}:
            mistake = Mistake(
                f"another error than {error}",
                f"Your results are right, and what the text rules out stops with an error, but "
                f"with another one than {error}. `assert` raises an AssertionError; write "
                f"`if …: raise {error}(…)`.",
            )
        return Symptom(mistake.name, False, mistake)
    notes = dict.fromkeys(t.case.note for t in wrong)
    if "" not in notes and len(notes) <= 5 and not any(t.case.note in notes for t in right):
        return Symptom(f"the result is right but for this input: {'; '.join(notes)}", False)
    names = dict.fromkeys(t.criterion.name for t in wrong)
    some = any(t.case.raises is None for t in right)
    if some and len(names) <= 3 and not any(t.criterion.name in names for t in right):
        return Symptom(f"the result is right but for this: {'; '.join(names)}", False)
    return None


def in_a_branch(trials: tuple[Trial, ...]) -> Symptom | None:
    """Wrong where an option has some value, and only there."""
    if all(t.case.raises is not None for t in trials if t.stands_out):
        return None
    where = next((words for words, _ in branches(trials)), None)
    return Symptom(f"the result is wrong {where}", False) if where else None


def stops(trials: tuple[Trial, ...]) -> Symptom | None:
    """The line of the student's code in which the calls that are wrong end, or most of them.

    One that raises by decision refuses what it should take.
    """
    wrong = [t for t in trials if t.wrong and t.case.raises is None]
    there = [(t.outcome.error, found[1]) for t in wrong if (found := LINE.search(t.outcome.text))]
    ((error, line), times) = Counter(there).most_common(1)[0] if there else ((None, ""), 0)
    if 2 * times <= len(wrong):
        return None
    often = "" if times == len(wrong) else "mostly, "
    decided = re.match(r"(raise|assert)\b", line) or error is NotImplementedError
    how = "refuses what it should take," if decided else f"stops with {article(error.__name__)}"
    return Symptom(f"{often}it {how} in the line `{line}`", False)


LINE = re.compile(r"\(in the line `(.*?)`")


def article(name: str) -> str:
    return f"an {name}" if name[0] in "AEIOU" else f"a {name}"


# What may lie over another mistake: it leaves the numbers as they are.
OVER = (changed_only, cut_gradients, other_dtype, rounded, unbatched)


def digits_alone(trials: tuple[Trial, ...]) -> bool:
    """Whether nothing is wrong but the precision, in which many small numbers look alike."""
    return any(look(trials) for look in (other_dtype, rounded))


def lies_over(trials: tuple[Trial, ...]) -> Symptom | None:
    """What makes the numbers of another mistake into what is there, and leaves no doubt."""
    found = (look(trials) for look in OVER)
    return next((symptom for symptom in found if symptom and symptom.sure), None)


LOOKS = (
    changed_only,
    kept,
    cut_gradients,
    other_dtype,
    unfit,
    nothing_returned,
    rounded,
    squeezed,
    unbatched,
    facts,
    other_gradients,
    one_part,
    transformed,
    located,
    in_a_branch,
    limited,
    stops,
)
