"""How cases use an implementation: call it, differentiate it, build or convert a module with it.

A grader runs these beside the submission, in its process, and finds them by name: a case's ``use``
is one of ``CALLERS``, or a ``partial`` of one. They know no right answer.
"""

from attncourse.checks.callers.ablation import call_on_gpt, call_on_llama, logits_of_changed
from attncourse.checks.callers.blocks import (
    added_in_training,
    call_module_activated,
    call_module_in_evaluation,
    call_module_in_training,
)
from attncourse.checks.callers.calls import (
    call_in_default_dtype,
    call_with_each_gradient,
    call_with_gradients,
    dtype_of,
    each_gradient,
    with_gradients,
)
from attncourse.checks.callers.conversions import (
    module_of,
    output_of_made,
    parameters_made,
    shared_by_made,
)
from attncourse.checks.callers.functions import (
    FUNCTIONS,
    call_on_function,
    orders_tried,
    same_orders,
)
from attncourse.checks.callers.guesses import (
    call_for_parts,
    call_with_generator,
    decided_by_rng,
    kept_with_generators,
    outcomes_counted,
)
from attncourse.checks.callers.language import (
    attend_in_steps,
    attend_with_each_gradient,
    call_on_model,
    call_seeded,
    decided_by_generators,
    drawn_with_generators,
    shares_drawn,
)
from attncourse.checks.callers.memory import blocks_measured, call_in_blocks, call_measured
from attncourse.checks.callers.modules import (
    call_module,
    call_module_twice,
    call_module_with_each_gradient,
    call_module_with_gradients,
    parameters_at_start,
    type_built,
    varied_at_start,
)
from attncourse.checks.callers.randomness import (
    numbers_drawn,
    repeated,
    scattered,
    typical_sizes,
)
from attncourse.checks.callers.resampling import (
    drawn_as_asked,
    interval_of,
    interval_repeated,
    intervals_drawn,
    places_taken,
    rows_resampled,
    split_kept,
    splits_made,
)
from attncourse.checks.exercise import call_it

__all__ = [
    "CALLERS",
    "FUNCTIONS",
    "added_in_training",
    "attend_in_steps",
    "attend_with_each_gradient",
    "blocks_measured",
    "call_for_parts",
    "call_in_blocks",
    "call_in_default_dtype",
    "call_it",
    "call_measured",
    "call_module",
    "call_module_activated",
    "call_module_in_evaluation",
    "call_module_in_training",
    "call_module_twice",
    "call_module_with_each_gradient",
    "call_module_with_gradients",
    "call_on_function",
    "call_on_gpt",
    "call_on_llama",
    "call_on_model",
    "call_seeded",
    "call_with_each_gradient",
    "call_with_generator",
    "call_with_gradients",
    "decided_by_generators",
    "decided_by_rng",
    "drawn_as_asked",
    "drawn_with_generators",
    "dtype_of",
    "each_gradient",
    "interval_of",
    "interval_repeated",
    "intervals_drawn",
    "kept_with_generators",
    "logits_of_changed",
    "module_of",
    "numbers_drawn",
    "orders_tried",
    "outcomes_counted",
    "output_of_made",
    "parameters_at_start",
    "parameters_made",
    "places_taken",
    "repeated",
    "rows_resampled",
    "same_orders",
    "scattered",
    "shared_by_made",
    "shares_drawn",
    "split_kept",
    "splits_made",
    "type_built",
    "typical_sizes",
    "varied_at_start",
    "with_gradients",
]

CALLERS = {
    f.__name__: f
    for f in (
        call_it,
        call_in_default_dtype,
        dtype_of,
        call_with_gradients,
        call_with_each_gradient,
        call_module,
        call_module_twice,
        call_module_with_gradients,
        call_module_with_each_gradient,
        call_module_activated,
        call_module_in_evaluation,
        call_module_in_training,
        added_in_training,
        type_built,
        parameters_at_start,
        parameters_made,
        output_of_made,
        shared_by_made,
        call_on_function,
        orders_tried,
        call_on_gpt,
        call_on_llama,
        logits_of_changed,
        numbers_drawn,
        call_on_model,
        call_seeded,
        shares_drawn,
        drawn_with_generators,
        attend_in_steps,
        attend_with_each_gradient,
        interval_of,
        intervals_drawn,
        places_taken,
        rows_resampled,
        splits_made,
        call_for_parts,
        call_with_generator,
        outcomes_counted,
        kept_with_generators,
        blocks_measured,
        call_in_blocks,
        call_measured,
    )
}
