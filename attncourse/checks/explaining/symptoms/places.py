"""Symptoms that say where results are wrong: a place in them, a kind of case, a branch."""

from collections.abc import Callable

import numpy as np

from attncourse.checks.exercise import Mistake
from attncourse.checks.explaining.options import case_branches
from attncourse.checks.explaining.symptoms.pairs import Pair, number_pairs
from attncourse.checks.explaining.symptoms.symptom import Symptom, names_in_words, result_is
from attncourse.checks.trying.compare import entries_far_apart, scale_of
from attncourse.checks.trying.trials import Trial

# A place in words, and a function that returns a mask of its entries in the right result. An axis
# that the result does not have raises IndexError.
PLACES: tuple[tuple[str, Callable[[np.ndarray], np.ndarray]], ...] = (
    ("in the first row", lambda w: indices_along(w, -2) == 0),
    ("in the last row", lambda w: indices_along(w, -2) == w.shape[-2] - 1),
    ("in the first column", lambda w: indices_along(w, -1) == 0),
    ("in the last column", lambda w: indices_along(w, -1) == w.shape[-1] - 1),
    ("on the diagonal", lambda w: indices_along(w, -2) == indices_along(w, -1)),
    ("above the diagonal", lambda w: indices_along(w, -2) < indices_along(w, -1)),
    ("below the diagonal", lambda w: indices_along(w, -2) > indices_along(w, -1)),
    (
        "for the first along the third to last axis, a head or a sequence",
        lambda w: indices_along(w, -3) == 0,
    ),
    ("for the first of a batch", lambda w: indices_along(w, min(-w.ndim, -3)) == 0),
    ("where 0 is expected", lambda w: w == 0),
    ("where a negative number is expected", lambda w: w < 0),
    ("where True is expected", lambda w: w.astype(bool)),
)


def indices_along(w: np.ndarray, axis: int) -> np.ndarray:
    """Return, for every entry, its index along one axis; ``IndexError`` without that axis."""
    if w.ndim < -axis:
        raise IndexError
    return np.indices(w.shape)[axis] if w.size else np.zeros(w.shape, int)


def wrong_in_a_place(trials: tuple[Trial, ...]) -> Symptom | None:
    """Return the symptom that one place alone is wrong, or right, in every result; or None."""
    pairs = number_pairs(trials)
    wrong = [p for p in pairs if not p.right]
    if not wrong or any(t.wrong and t.outcome.kind != "value" for t in trials):
        return None
    if any(p.returned.shape != p.expected.shape for p in wrong):
        return None
    errors = [(p, differing_entries(p)) for p in pairs]
    for words, place in PLACES:
        if not all(divides_entries(place, p.expected) for p in wrong):
            continue
        for start, inside in (("right but ", True), ("right only ", False)):
            if all(is_wrong_as_named(p, bad, place, inside) for p, bad in errors):
                return result_is(f"{start}{words}", sure=True)
    return None


def divides_entries(place: Callable[[np.ndarray], np.ndarray], expected: np.ndarray) -> bool:
    """True if some entries of an array are in a place and others are not."""
    try:
        return len(np.unique(place(expected))) == 2
    except IndexError:
        return False


def differing_entries(p: Pair) -> np.ndarray:
    """Return a mask of the entries that differ, with more tolerance than right results get."""
    allowed = 1e-4 if p.returned.dtype in (np.float32, np.float16) else 1e-8
    with np.errstate(all="ignore"):
        a, b = p.returned.astype(float), p.expected.astype(float)
        return entries_far_apart(a, b, allowed * scale_of(p.expected))


def is_wrong_as_named(
    p: Pair, bad: np.ndarray, place: Callable[[np.ndarray], np.ndarray], inside: bool
) -> bool:
    """True if the wrong entries ``bad`` are those of a place (``inside``), or all other entries.

    Up to half of these may happen to be right, but none of the others may be wrong.
    """
    try:
        at_place = place(p.expected)
    except IndexError:
        return p.right
    may_be_wrong = at_place if inside else ~at_place
    if (bad & ~may_be_wrong).any():
        return False
    if not may_be_wrong.any() or (p.right and may_be_wrong.all()):
        return not bad.any()
    return bool(2 * (bad & may_be_wrong).sum() >= may_be_wrong.sum()) and (
        not may_be_wrong.all() or not inside
    )


def wrong_in_a_kind(trials: tuple[Trial, ...]) -> Symptom | None:
    """Return the symptom that only some kinds of cases are wrong, by note or criterion; or None.

    If only refusals are wrong, the symptom is a mistake of its own.
    """
    wrong = [t for t in trials if t.stands_out]
    right = [t for t in trials if not t.stands_out]
    if not wrong or not right:
        return None
    if any(t.case.raises is not None for t in wrong):
        if any(t.case.raises is None for t in wrong):
            return None
        kinds = {t.outcome.kind for t in wrong}
        error_names = [t.case.raises.__name__ for t in wrong if t.case.raises is not None]
        error = names_in_words(dict.fromkeys(error_names))
        mistake = Mistake(
            "what is to be refused is not",
            f"Your results are right. What the text rules out is to raise {error}, and gets an "
            f"answer{', or stops with another error' if len(kinds) > 1 else ''}: "
            f"`if …: raise {error}(…)`, before anything is computed.",
        )
        if kinds == {"raised"}:
            mistake = Mistake(
                f"another error than {error}",
                f"Your results are right, and what the text rules out stops with an error, but "
                f"with another one than {error}. `assert` raises an AssertionError; write "
                f"`if …: raise {error}(…)`.",
            )
        return Symptom(mistake.name, sure=False, mistake=mistake)
    notes = dict.fromkeys(t.case.note for t in wrong)
    if "" not in notes and len(notes) <= 5 and not any(t.case.note in notes for t in right):
        return result_is(f"right but for this input: {'; '.join(notes)}", sure=False)
    names = dict.fromkeys(t.criterion.name for t in wrong)
    is_any_value_right = any(t.case.raises is None for t in right)
    if is_any_value_right and len(names) <= 3 and not any(t.criterion.name in names for t in right):
        return result_is(f"right but for this: {'; '.join(names)}", sure=False)
    return None


def wrong_in_a_branch(trials: tuple[Trial, ...]) -> Symptom | None:
    """Return the symptom that results are wrong where an option has some value only; or None."""
    if all(t.case.raises is not None for t in trials if t.stands_out):
        return None
    where = next((words for words, _ in case_branches(trials)), None)
    return result_is(f"wrong {where}", sure=False) if where else None


def depends_on_lengths(trials: tuple[Trial, ...]) -> Symptom | None:
    """Return the symptom that results are right, or wrong, only for equal lengths or one length.

    None if several lengths explain it, or if fewer than two cases are right, or wrong.
    """
    trials_and_sizes = [(t, axis_lengths(t)) for t in trials if t.case.raises is None]
    n_wrong = sum(t.stands_out for t, _ in trials_and_sizes)
    if min(n_wrong, len(trials_and_sizes) - n_wrong) < 2:
        return None
    shared: list[tuple[int, int]] = []
    for key in sorted(set.intersection(*(set(sizes) for _, sizes in trials_and_sizes))):
        # Two axes that have the same length in every case are one length: the first names it.
        if not any(all(s[key] == s[second] for _, s in trials_and_sizes) for second in shared):
            shared.append(key)
    numbers = {sizes[key] for _, sizes in trials_and_sizes for key in shared}
    candidates = [(a, b) for a in shared for b in shared if a < b]
    candidates += [(key, number) for key in shared for number in numbers]

    def holds(sizes: dict[tuple, int], key: tuple, axis_or_length: tuple | int) -> bool:
        """True if an axis has the length of another one, or this length."""
        return sizes[key] == (
            axis_or_length if isinstance(axis_or_length, int) else sizes[axis_or_length]
        )

    def is_said(trial: Trial, sizes: dict[tuple, int], verb: str, pair: tuple) -> bool:
        """True if a trial is as the sentence says: right, or wrong, only where ``pair`` holds.

        Where the length is 1, a right result does not speak against "wrong".
        """
        if verb == "wrong" and not trial.stands_out and sizes[pair[0]] == 1:
            return True
        is_as_named = trial.stands_out if verb == "wrong" else not trial.stands_out
        return holds(sizes, *pair) == is_as_named

    for verb in ("right", "wrong"):
        holding = [
            pair
            for pair in candidates
            if all(is_said(t, s, verb, pair) for t, s in trials_and_sizes)
        ]
        if len(holding) == 1:
            ((key, second),) = holding
            same = (
                f"{second} long" if isinstance(second, int) else f"as long as {axis_named(*second)}"
            )
            return result_is(f"{verb} only where {axis_named(*key)} is {same}", sure=False)
    return None


def axis_lengths(trial: Trial) -> dict[tuple[int, int], int]:
    """Return the lengths of the positional arrays' axes, by (argument, axis from the end)."""
    arrays = [(n, v.shape) for n, v in enumerate(trial.case.args) if hasattr(v, "shape")]
    return {(n, axis): shape[axis] for n, shape in arrays for axis in range(-len(shape), 0)}


def axis_named(argument: int, axis: int) -> str:
    """Return an axis of an argument in words; ``argument`` begins at 0, ``axis`` is negative."""
    return f"axis −{-axis} of argument {argument + 1}"
