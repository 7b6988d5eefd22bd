"""Where results are wrong: a place in them, a kind of case, a branch."""

from collections.abc import Callable

import numpy as np

from attncourse.checks.exercise import Mistake
from attncourse.checks.explaining.options import case_branches
from attncourse.checks.explaining.symptoms.pairs import Pair, number_pairs
from attncourse.checks.explaining.symptoms.symptom import Symptom, names_in_words, result_is
from attncourse.checks.trying.compare import far_apart, scale_of
from attncourse.checks.trying.trials import Trial

# A place is a mask over the last axes of a result, of those entries that are named.
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
    """Return the index along one axis, for every entry."""
    if w.ndim < -axis:
        raise IndexError
    return np.indices(w.shape)[axis] if w.size else np.zeros(w.shape, int)


def wrong_part_alone(trials: tuple[Trial, ...]) -> Symptom | None:
    """Return the symptom that a part of each result alone is right, or alone is wrong."""
    pairs = number_pairs(trials)
    wrong = [p for p in pairs if not p.right]
    if not wrong or any(t.wrong and t.outcome.kind != "value" for t in trials):
        return None
    if any(p.got.shape != p.want.shape for p in wrong):
        return None
    errors = [(p, differing_entries(p)) for p in pairs]
    for words, place in PLACES:
        if not all(divides_entries(place, p.want) for p in wrong):
            continue
        for only, inside in (("right but ", True), ("right only ", False)):
            if all(within_place(p, bad, place, inside) for p, bad in errors):
                return result_is(f"{only}{words}", True)
    return None


def divides_entries(place: Callable[[np.ndarray], np.ndarray], want: np.ndarray) -> bool:
    """True if some entries are in a place and others are not."""
    try:
        return len(np.unique(place(want))) == 2
    except IndexError:
        return False


def differing_entries(p: Pair) -> np.ndarray:
    """Return the entries that differ."""
    allowed = 1e-4 if p.got.dtype in (np.float32, np.float16) else 1e-8
    with np.errstate(all="ignore"):
        a, b = p.got.astype(float), p.want.astype(float)
        return far_apart(a, b, allowed * scale_of(p.want))


def within_place(
    p: Pair, bad: np.ndarray, place: Callable[[np.ndarray], np.ndarray], inside: bool
) -> bool:
    """True if the wrong entries are all those of a place (``inside``), or all the others.

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


def limited_to_a_kind(trials: tuple[Trial, ...]) -> Symptom | None:
    """Return the symptom that one kind of case alone is wrong, by criteria and notes."""
    wrong = [t for t in trials if t.stands_out]
    right = [t for t in trials if not t.stands_out]
    if not wrong or not right:
        return None
    if any(t.case.raises is not None for t in wrong):
        if any(t.case.raises is None for t in wrong):
            return None
        kinds = {t.outcome.kind for t in wrong}
        wanted = [t.case.raises.__name__ for t in wrong if t.case.raises is not None]
        error = names_in_words(dict.fromkeys(wanted))
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
        return Symptom(mistake.name, False, mistake)
    notes = dict.fromkeys(t.case.note for t in wrong)
    if "" not in notes and len(notes) <= 5 and not any(t.case.note in notes for t in right):
        return result_is(f"right but for this input: {'; '.join(notes)}", False)
    names = dict.fromkeys(t.criterion.name for t in wrong)
    is_any_value_right = any(t.case.raises is None for t in right)
    if is_any_value_right and len(names) <= 3 and not any(t.criterion.name in names for t in right):
        return result_is(f"right but for this: {'; '.join(names)}", False)
    return None


def wrong_in_a_branch(trials: tuple[Trial, ...]) -> Symptom | None:
    """Return the symptom that a result is wrong where an option has some value, and only there."""
    if all(t.case.raises is not None for t in trials if t.stands_out):
        return None
    where = next((words for words, _ in case_branches(trials)), None)
    return result_is(f"wrong {where}", False) if where else None


def depends_on_lengths(trials: tuple[Trial, ...]) -> Symptom | None:
    """Return the symptom that right or wrong hangs on two equal lengths, or on one length.

    Nothing is told where several lengths would do, or where that is so in a single case.
    """
    trials_and_sizes = [(t, axis_lengths(t)) for t in trials if t.case.raises is None]
    if (
        min(
            sum(t.stands_out for t, _ in trials_and_sizes),
            sum(not t.stands_out for t, _ in trials_and_sizes),
        )
        < 2
    ):
        return None
    shared: list[tuple[int, int]] = []
    for key in sorted(set.intersection(*(set(sizes) for _, sizes in trials_and_sizes))):
        # Two axes that have the same length in every case are one length: the first names it.
        if not any(all(s[key] == s[other] for _, s in trials_and_sizes) for other in shared):
            shared.append(key)
    numbers = {sizes[key] for _, sizes in trials_and_sizes for key in shared}
    candidates = [(a, b) for a in shared for b in shared if a < b]
    candidates += [(key, number) for key in shared for number in numbers]

    def holds(sizes: dict[tuple, int], key: tuple, other: tuple | int) -> bool:
        return sizes[key] == (other if isinstance(other, int) else sizes[other])

    def is_said(trial: Trial, sizes: dict[tuple, int], verb: str, pair: tuple) -> bool:
        """True if a trial is as a sentence with this verb says; of lengths of 1, any may be."""
        if verb == "wrong" and not trial.stands_out and sizes[pair[0]] == 1:
            return True
        return holds(sizes, *pair) == (
            trial.stands_out if verb == "wrong" else not trial.stands_out
        )

    for verb in ("right", "wrong"):
        holding = [
            pair
            for pair in candidates
            if all(is_said(t, s, verb, pair) for t, s in trials_and_sizes)
        ]
        if len(holding) == 1:
            ((key, other),) = holding
            same = f"{other} long" if isinstance(other, int) else f"as long as {axis_named(*other)}"
            return result_is(f"{verb} only where {axis_named(*key)} is {same}", False)
    return None


def axis_lengths(trial: Trial) -> dict[tuple[int, int], int]:
    """Return the length of each axis of each positional argument, axes counted from the end."""
    arrays = [(n, v.shape) for n, v in enumerate(trial.case.args) if hasattr(v, "shape")]
    return {(n, axis): shape[axis] for n, shape in arrays for axis in range(-len(shape), 0)}


def axis_named(argument: int, axis: int) -> str:
    """Return an axis of an argument in words; both are counted from 0, axes from −1 down."""
    return f"axis −{-axis} of argument {argument + 1}"
