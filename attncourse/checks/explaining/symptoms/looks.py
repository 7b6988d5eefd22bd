"""The order in which symptoms are looked for: the surest first, then those that explain most.

Like a mistake (see ``diagnosis``) a symptom is told only if fresh cases give the same sentence.
"""

from attncourse.checks.explaining.symptoms.calls import (
    cut_gradients,
    first_call_right,
    nothing_returned,
    nothing_run_yet,
    only_arguments_changed,
)
from attncourse.checks.explaining.symptoms.exceptions import (
    known_error,
    line_of_error,
    unknown_name,
)
from attncourse.checks.explaining.symptoms.nearly_right import (
    axes_squeezed,
    batch_axes_unprovided,
    other_dtype,
    right_to_single_precision,
)
from attncourse.checks.explaining.symptoms.places import (
    depends_on_lengths,
    wrong_in_a_branch,
    wrong_in_a_kind,
    wrong_in_a_place,
)
from attncourse.checks.explaining.symptoms.results import (
    broken_facts,
    first_result_right,
    letters_in_other_case,
    result_in_tuple,
    some_facts_broken,
    some_parts_wrong,
    transformed_result,
    wrong_frequencies,
)
from attncourse.checks.explaining.symptoms.symptom import Symptom
from attncourse.checks.trying.trials import Trial

LOOKS = (
    unknown_name,
    only_arguments_changed,
    first_call_right,
    cut_gradients,
    other_dtype,
    known_error,
    nothing_returned,
    result_in_tuple,
    nothing_run_yet,
    right_to_single_precision,
    axes_squeezed,
    batch_axes_unprovided,
    letters_in_other_case,
    broken_facts,
    first_result_right,
    some_parts_wrong,
    transformed_result,
    wrong_frequencies,
    wrong_in_a_place,
    wrong_in_a_branch,
    depends_on_lengths,
    wrong_in_a_kind,
    some_facts_broken,
    line_of_error,
)

# With these every number that came is right: they change the points as a known mistake does.
RIGHT_BUT_FOR = (
    only_arguments_changed,
    cut_gradients,
    other_dtype,
    result_in_tuple,
    right_to_single_precision,
    axes_squeezed,
)

# These leave the numbers as they are, so that another mistake may be made beside them.
LOOKS_OVER_MISTAKE = (
    only_arguments_changed,
    cut_gradients,
    other_dtype,
    right_to_single_precision,
    batch_axes_unprovided,
)


def first_symptom(trials: tuple[Trial, ...]) -> Symptom | None:
    """Return the first symptom that holds in these trials; None if none does."""
    if any(t.outcome.kind in ("hung", "skipped") for t in trials):
        return None
    for look in LOOKS:
        symptom = look(trials)
        if symptom is not None:
            return symptom
    return None


def symptom_in_form(trials: tuple[Trial, ...]) -> Symptom | None:
    """Return the first sure symptom with which every number that came is right; or None."""
    if any(t.outcome.kind in ("hung", "skipped") for t in trials):
        return None
    symptoms = (look(trials) for look in RIGHT_BUT_FOR)
    return next((s for s in symptoms if s and s.sure and s.mistake and s.all), None)


def symptom_beside_mistake(trials: tuple[Trial, ...]) -> Symptom | None:
    """Return the first symptom in trials whose right results are a mistake's, or None.

    None, too, for a symptom that may be the same mistake, made in another way.
    """
    symptom = first_symptom(trials)
    return symptom if symptom and symptom.told_beside else None


def only_precision_wrong(trials: tuple[Trial, ...]) -> bool:
    """True if only dtype or precision are wrong, which would fit beside almost any mistake."""
    return any(look(trials) for look in (other_dtype, right_to_single_precision))


def symptom_over_mistake(trials: tuple[Trial, ...]) -> Symptom | None:
    """Return the first sure symptom that leaves numbers alone, or None.

    The right results of the trials are those of another mistake, over which it was made.
    """
    symptoms = (look(trials) for look in LOOKS_OVER_MISTAKE)
    return next((s for s in symptoms if s and s.sure and s.told_beside), None)
