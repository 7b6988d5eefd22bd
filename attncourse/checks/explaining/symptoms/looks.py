"""Which symptom is looked for first: the surest, and what explains most.

Like a name (see ``diagnosis``) a symptom is told only if fresh cases give the same sentence.
"""

from attncourse.checks.explaining.symptoms.calls import (
    changed_only,
    cut_gradients,
    first_call_right,
    made_later,
    nothing_returned,
)
from attncourse.checks.explaining.symptoms.exceptions import (
    lacks_parameters,
    line_of_stop,
    unknown_name,
)
from attncourse.checks.explaining.symptoms.nearly_right import (
    other_dtype,
    right_to_single_precision,
    squeezed,
    unbatched,
)
from attncourse.checks.explaining.symptoms.places import (
    depends_on_lengths,
    limited_to_a_kind,
    wrong_in_a_branch,
    wrong_part_alone,
)
from attncourse.checks.explaining.symptoms.results import (
    broken_facts,
    first_result_right,
    in_a_longer_tuple,
    in_other_case,
    one_part,
    some_facts,
    transformed,
    wrong_frequencies,
)
from attncourse.checks.explaining.symptoms.symptom import Symptom
from attncourse.checks.trying.trials import Trial

LOOKS = (
    unknown_name,
    changed_only,
    first_call_right,
    cut_gradients,
    other_dtype,
    lacks_parameters,
    nothing_returned,
    in_a_longer_tuple,
    made_later,
    right_to_single_precision,
    squeezed,
    unbatched,
    in_other_case,
    broken_facts,
    first_result_right,
    one_part,
    transformed,
    wrong_frequencies,
    wrong_part_alone,
    wrong_in_a_branch,
    depends_on_lengths,
    limited_to_a_kind,
    some_facts,
    line_of_stop,
)

# With these every number that came is right: points hang on them as on a known mistake.
RIGHT_BUT_FOR = (
    changed_only,
    cut_gradients,
    other_dtype,
    in_a_longer_tuple,
    right_to_single_precision,
    squeezed,
)

# What may lie over another mistake: it leaves the numbers as they are.
LOOKS_OVER_MISTAKE = (
    changed_only,
    cut_gradients,
    other_dtype,
    right_to_single_precision,
    unbatched,
)


def first_that_holds(trials: tuple[Trial, ...]) -> Symptom | None:
    """Return the first symptom that holds in these trials; None if none does."""
    if any(t.outcome.kind in ("hung", "skipped") for t in trials):
        return None
    for look in LOOKS:
        symptom = look(trials)
        if symptom is not None:
            return symptom
    return None


def right_but_for(trials: tuple[Trial, ...]) -> Symptom | None:
    """Return the mistake but for which every number that came is right; None if there is none."""
    if any(t.outcome.kind in ("hung", "skipped") for t in trials):
        return None
    symptoms = (look(trials) for look in RIGHT_BUT_FOR)
    return next((s for s in symptoms if s and s.sure and s.mistake and s.all), None)


def left_beside(trials: tuple[Trial, ...]) -> Symptom | None:
    """Return the first symptom in trials with a mistake's results as the right ones.

    None where the symptom may be the same mistake, made in another way.
    """
    symptom = first_that_holds(trials)
    return symptom if symptom and symptom.told_beside else None


def only_precision_wrong(trials: tuple[Trial, ...]) -> bool:
    """True if nothing but the precision is wrong, where many small differences look alike."""
    return any(look(trials) for look in (other_dtype, right_to_single_precision))


def symptom_over_mistake(trials: tuple[Trial, ...]) -> Symptom | None:
    """Return the sure symptom that, added to another mistake, gives the results seen, or None."""
    symptoms = (look(trials) for look in LOOKS_OVER_MISTAKE)
    return next((s for s in symptoms if s and s.sure and s.told_beside), None)
