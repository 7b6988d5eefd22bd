"""Which kinds of input an exercise's cases cover, and which they ought to.

A wrong answer that passes has met no input of the kind that it gets wrong. So ``owed`` lists the
kinds of input that the reference's signature allows, and ``covered`` those that the drawn cases
are, each told from the numbers and never from a note. What the exercise's text rules out stands
in ``Exercise.excludes``, with the reason.

    python tools/grid.py kqv
"""

import inspect
import sys
import typing
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from functools import partial
from itertools import combinations
from typing import Any
from unittest.mock import patch

import numpy as np

from attncourse import STEMS
from attncourse.checks import chapter
from attncourse.checks.callers import (
    attend_with_each_gradient,
    call_for_parts,
    call_in_blocks,
    call_in_default_dtype,
    call_it,
    call_module,
    call_module_activated,
    call_module_in_evaluation,
    call_module_in_training,
    call_module_twice,
    call_module_with_each_gradient,
    call_module_with_gradients,
    call_on_function,
    call_on_model,
    call_seeded,
    call_with_each_gradient,
    call_with_gradients,
    dtype_of,
)
from attncourse.checks.exercise import Case, Criterion, Exercise
from attncourse.checks.trying.compare import as_numbers
from attncourse.checks.trying.outcome import Outcome, copy_of, is_tensor, is_unchanged, quiet
from attncourse.checks.trying.trials import draw

SEED = 0
SEQUENCE_AXES = ("m", "n")  # axes of tokens, in the annotations
AXES_BY_ARGUMENT = {"n_heads": "h", "n_kv_heads": "h_kv"}  # counts that are the length of an axis
LONG, TINY, HUGE, SPREAD = 17, 1e-6, 1e6, 1000.0
BATCH_AXES_NAMES = ("one batch axis", "two batch axes", "three batch axes")

FUNCTION_CALLERS = (
    call_it,
    call_in_blocks,
    dtype_of,
    call_in_default_dtype,
    call_for_parts,
    call_on_function,
    call_on_model,
    call_seeded,
    call_with_gradients,
    call_with_each_gradient,
    attend_with_each_gradient,
)
MODULES = (
    call_module,
    call_module_activated,
    call_module_in_evaluation,
    call_module_in_training,
    call_module_twice,
    call_module_with_gradients,
    call_module_with_each_gradient,
)
ON_GIVEN = (call_on_function, call_on_model)  # of what is handed over ready made
ONE_BY_ONE = (
    call_with_each_gradient,
    attend_with_each_gradient,
    call_module_with_each_gradient,
)


# --- what the signature says -----------------------------------------------------------------


@dataclass(frozen=True)
class Argument:
    """An argument of a function: its axes by name, whether others may stand before them."""

    name: str
    default: Any = inspect.Parameter.empty
    axes: tuple[str, ...] | None = None
    batched: bool = False
    numbers: bool = False  # an array of numbers, neither a mask nor ids
    torch: bool = False
    real: bool = False  # a real number

    @property
    def optional(self) -> bool:
        """True if the argument may be left out."""
        return self.default is not inspect.Parameter.empty

    @property
    def length(self) -> str | None:
        """The axis that a whole number is the length of."""
        name = AXES_BY_ARGUMENT.get(self.name, self.name)
        counts = self.axes is None and not self.real
        return name if counts and name.split("_")[0] in ("d", "h") else None


def arguments(function: Callable, method: bool = False) -> dict[str, Argument]:
    """Return the arguments of a function; of a method, all but the object."""
    parameters = list(inspect.signature(function).parameters.values())[int(method) :]
    plain = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    return {p.name: read_annotation(p.name, p.annotation, p.default) for p in plain}


def read_annotation(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> Argument:
    """Return an argument by its annotation, such as ``Float[Tensor, "*batch m d_k"] | None``."""
    for part in typing.get_args(annotation) or (annotation,):
        if hasattr(part, "dim_str"):
            written = part.dim_str.replace("...", "*batch n").split()
            numbers = isinstance(part.dtypes, list | tuple) and "float32" in part.dtypes
            return Argument(
                name,
                default,
                axes=tuple(axis for axis in written if "*" not in axis),
                batched=any("*" in axis for axis in written),
                numbers=numbers,
                torch=part.array_type is not np.ndarray,
            )
    real = float in (typing.get_args(annotation) or (annotation,))
    return Argument(name, default, real=real)


# --- what a case is --------------------------------------------------------------------------


@dataclass(frozen=True)
class Use:
    """One call of a case: arguments by name, the weights, what is given beside them."""

    method: str
    values: dict[str, Any]
    arguments: dict[str, Argument]
    returned: Argument
    outcome: Any
    built: dict[str, Any] = field(default_factory=dict)
    state: dict[str, Any] = field(default_factory=dict)
    twice: str = ""  # what the lengths of a second call are, where there is one
    alone: tuple[str, ...] = ()  # each of these required a gradient when no other did


def uses(exercise: Exercise) -> Iterator[Use]:
    """Yield the cases that are a call with arguments of the signature, and are no refusal."""
    yield from (use for _, use in uses_by_criterion(exercise))


def uses_by_criterion(exercise: Exercise) -> Iterator[tuple[Criterion, Use]]:
    """Yield ``uses``, each behind the criterion that it is tried for."""
    for criterion, case, expected in draw(exercise, SEED):
        caller, bound = caller_of(case)
        if case.raises is not None:
            continue
        if caller in FUNCTION_CALLERS:
            yield criterion, use_of_function(exercise, case, expected, caller, bound)
        elif caller in MODULES:
            yield criterion, use_of_module(exercise, case, expected, caller)


def caller_of(case: Case) -> tuple[Callable, tuple]:
    """Return the caller of a case, and what is bound to it."""
    if isinstance(case.use, partial):
        return case.use.func, case.use.args
    return case.use, ()


def use_of_function(
    exercise: Exercise, case: Case, expected: Outcome, caller: Callable, bound: tuple
) -> Use:
    """Return what a case hands to a function."""
    named = arguments(exercise.reference)
    arguments_given = dict(zip(named, case.args, strict=False))
    if caller not in ON_GIVEN:  # there the tensors belong to the function it is given
        arguments_given |= case.kwargs
    returned = inspect.signature(exercise.reference).return_annotation
    alone: tuple[str, ...] = ()
    if caller in ONE_BY_ONE or (caller is call_with_gradients and len(bound[0]) == 1):
        alone = bound[0]
    return Use(
        "", arguments_given, named, read_annotation("", returned), output_of(expected), alone=alone
    )


def use_of_module(exercise: Exercise, case: Case, expected: Outcome, caller: Callable) -> Use:
    """Return what a case hands to a module, and to what builds it."""
    kwargs = dict(case.kwargs)
    (args, options), method = kwargs.pop("make"), kwargs.pop("method")
    names, others = kwargs.pop("inputs"), kwargs.pop("others", ())
    function = getattr(exercise.reference, method or "forward")
    inputs = dict(zip(arguments(function, method=True), (kwargs[n] for n in names), strict=False))
    state = {n: value for n, value in kwargs.items() if n not in (*names, *others)}
    built = inspect.signature(exercise.reference).bind(*args, **options).arguments
    arrays = {n: as_numbers(value) for n, value in inputs.items()}
    real = [n for n, array in arrays.items() if array is not None and array.dtype.kind == "f"]
    lengths = [
        [getattr(kwargs[n], "shape", None) for n in input_names] for input_names in (names, others)
    ]
    second = "the same" if lengths[0] == lengths[1] else "other"
    return Use(
        method,
        inputs,
        arguments(function, method=True),
        read_annotation("", inspect.signature(function).return_annotation),
        output_of(expected),
        built=dict(built),
        state=state,
        twice=second if caller is call_module_twice else "",
        alone=(*real, *map(family, state)) if caller in ONE_BY_ONE else (),
    )


def output_of(expected: Outcome) -> Any:
    """Return the reference's result; of several results the first."""
    value = expected.value
    return next(iter(value.values())) if isinstance(value, dict) and value else value


def family(weight: str) -> str:
    """Return a weight's name without the numbers of layers in a list."""
    return ".".join(part for part in weight.split(".") if not part.isdigit())


# --- the kinds of input that a call is -------------------------------------------------------


def cells_of(use: Use) -> Iterator[str]:
    """Yield the kinds of input that one call is an example of."""
    arrays = {n: copy_of(use.values[n]) for n, a in use.arguments.items() if has_array(use, n)}
    sizes, batch = sizes_of(use, arrays)
    yield from cells_of_shapes(sizes, batch, arrays)
    for name, array in arrays.items():
        if use.arguments[name].numbers:
            yield from cells_of_numbers(name, numbers_of(array))
    yield from (TWO_AXES.format(n) for n, a in arrays.items() if of_two_axes(n, a, batch))
    yield from (SQUARE.format(n) for n, a in arrays.items() if is_mask_name(n) and lopsided(a))
    yield from cells_of_parameters(use, arrays)
    where = f" to {use.method}" if use.method else ""
    yield from cells_of_options(use.arguments, use.values, where)
    if use.twice:
        yield f"two calls{where} of one object, of {use.twice} lengths"
    yield from (f"a gradient on {name} alone" for name in use.alone)


def has_array(use: Use, name: str) -> bool:
    """True if a use has an array for an argument that may have one."""
    value = use.values.get(name)
    return use.arguments[name].axes is not None and (
        isinstance(value, np.ndarray) or is_tensor(value)
    )


def sizes_of(use: Use, arrays: dict[str, Any]) -> tuple[dict[str, int], tuple[int, ...]]:
    """Return the lengths of the axes, by name, and of the batch axes."""
    known = [(use.arguments[name], tuple(array.shape)) for name, array in arrays.items()]
    if use.returned.axes is not None and hasattr(use.outcome, "shape"):
        known.append((use.returned, tuple(use.outcome.shape)))
    sizes, batch = {}, ()
    for argument, shape in known:
        axes = argument.axes or ()
        core = len(shape) - len(axes)
        if core < 0 or (core and not argument.batched):
            continue
        pairs = zip(axes, shape[core:], strict=True)
        sizes |= {AXES_BY_ARGUMENT.get(axis, axis): n for axis, n in pairs if axis.isidentifier()}
        if not is_mask_name(argument.name):
            batch = max(batch, shape[:core], key=len)
    for name, value in (use.built | use.values).items():
        axis = Argument(name).length
        if isinstance(value, int) and axis is not None and name not in arrays:
            sizes.setdefault(axis, value)
    return sizes, batch


def cells_of_shapes(
    sizes: dict[str, int], batch: tuple[int, ...], arrays: dict[str, Any]
) -> Iterator[str]:
    """Yield the cells that the shapes of a case fill."""
    if 1 <= len(batch) <= 3:
        yield BATCH_AXES_NAMES[len(batch) - 1]
        if any(not contiguous(array) for array in arrays.values()):
            yield BATCH_AXES_NAMES[len(batch) - 1] + ", not contiguous"
    for axis in SEQUENCE_AXES:
        length = sizes.get(axis, 0)
        yield from (f"{axis} of {n}" for n in (1, 2) if length == n)
        if length >= LONG:
            yield f"{axis} of {LONG} or more"
    lengths = [*sizes.items(), *(("batch", n) for n in batch)]
    for (a, first), (b, second) in combinations(lengths, 2):
        if first == second > 1 and a != b:
            yield pair(a, b)
    if len({n for _, n in lengths}) == len(lengths) and all(n > 1 for _, n in lengths):
        yield all_distinct(sizes, batched=bool(batch))


def pair(a: str, b: str) -> str:
    """Return the cell of two axes of the same length."""
    return " = ".join(sorted((a, b), key=lambda axis: (axis == "batch", axis)))


def all_distinct(axes, batched: bool) -> str:
    """Return the kind of input in which all these lengths differ."""
    return f"{', '.join([*sorted(axes), *['batch'] * batched])} all different"


def contiguous(array: Any) -> bool:
    """True if an array lies in memory in the order of its axes."""
    return array.is_contiguous() if is_tensor(array) else array.flags.c_contiguous


def cells_of_numbers(name: str, array: np.ndarray) -> Iterator[str]:
    """Yield the cells that an array's numbers fill."""
    if array.dtype.kind in "iu":
        yield f"integers in {name}"
    if array.dtype == np.float32:
        yield "float32"
    if array.dtype.kind != "f" or not array.size or not array.ndim:
        return
    rows = array.reshape(-1, array.shape[-1]).astype(float)
    rows = rows[np.isfinite(rows).all(-1)]
    largest = np.abs(rows).max(-1)
    if ((largest > 0) & (largest <= TINY)).any():
        yield "a row of very small numbers"
    if (largest >= HUGE).any():
        yield "a row of very large numbers"
    row_sums = np.abs(rows).sum(-1)
    if ((np.abs(rows.sum(-1)) <= 1e-6 * row_sums) & (row_sums > 0)).any():
        yield "entries that cancel"


TWO_AXES = "{} of two axes, in a batch as long as the first"  # which is no (batch, n)


def of_two_axes(name: str, array: Any, batch: tuple[int, ...]) -> bool:
    """True if an argument is a mask of two axes whose rows could be a batch."""
    alone = is_mask_name(name) and len(array.shape) == 2 and len(batch) == 1
    return alone and batch[0] == array.shape[0] > 1


SQUARE = "a square {} that its transpose differs from"


def numbers_of(array: Any) -> np.ndarray:
    """Return an array, of whichever library, as NumPy's. Raises ``ValueError`` for what is none."""
    numbers = as_numbers(array)
    if numbers is None:
        raise ValueError(f"expected an array, got {type(array).__name__}")
    return numbers


def lopsided(array: Any) -> bool:
    """True if its last two axes have one length, and exchanging them changes it."""
    numbers = numbers_of(array)
    square = numbers.ndim > 1 and numbers.shape[-1] == numbers.shape[-2]
    return square and not np.array_equal(numbers, numbers.swapaxes(-1, -2))


def is_mask_name(name: str) -> bool:
    """True if an argument's name says that it is a mask."""
    return name.endswith("mask")


def cells_of_parameters(use: Use, arrays: dict[str, Any]) -> Iterator[str]:
    """Yield the cells that parameters and plain numbers fill."""
    for name, value in use.values.items():
        zero = isinstance(value, int | float) and value == 0
        if use.arguments[name].real and zero and not isinstance(value, bool):
            yield f"{name} of 0"
        if name in arrays and not use.arguments[name].batched and not np.any(as_numbers(value)):
            yield f"{name} of 0"
    zero = {name for name, value in use.state.items() if not value.any()}
    if len(zero) < len(use.state) or len(zero) == 1:
        yield from (f"{family(name)} of 0" for name in zero)


def cells_of_options(named: dict[str, Argument], values: dict[str, Any], where="") -> Iterator[str]:
    """Yield the cells that optional arguments fill."""
    for name, argument in named.items():
        if argument.optional:
            value = values.get(name, argument.default)
            plain = value is None or isinstance(value, int | float | str)
            same = value is argument.default or (plain and value == argument.default)
            yield f"{name} {'left out' if same else 'given'}{where}"


# --- the kinds of input that are owed --------------------------------------------------------


def owed(exercise: Exercise) -> list[str]:
    """Return the kinds of input that the signature allows, in the order of ``OWED``."""
    allowed = Allowed(exercise)
    return list(dict.fromkeys(kind for kinds_of in OWED for kind in kinds_of(allowed)))


class Allowed:
    """The calls that an exercise's signature allows: arguments, their axes, a module's weights."""

    def __init__(self, exercise: Exercise):
        self.exercise, self.reference = exercise, exercise.reference
        self.uses = list(uses(exercise))
        self.module = inspect.isclass(self.reference)
        reference: Any = exercise.reference  # a class of modules has a method forward
        function = reference.forward if self.module else reference
        self.named = arguments(function, method=self.module)
        self.built = arguments(self.reference) if self.module else {}
        self.returned = read_annotation("", inspect.signature(function).return_annotation)
        self.arrays = [a for a in self.named.values() if a.axes is not None]
        self.numbers = [a for a in self.arrays if a.numbers]
        self.batched = any(a.batched for a in self.arrays)
        counts = [*self.built.values(), *self.named.values()]
        self.axes = axis_names([*self.arrays, self.returned], counts)
        self.weights = list(dict.fromkeys(family(name) for use in self.uses for name in use.state))


def of_batches(of: Allowed) -> Iterator[str]:
    """Yield the cells of batch axes that an exercise owes."""
    if of.batched:
        yield from (
            rank + layout for rank in BATCH_AXES_NAMES for layout in ("", ", not contiguous")
        )


def of_lengths(of: Allowed) -> Iterator[str]:
    """Yield the cells of lengths that an exercise owes."""
    for axis in SEQUENCE_AXES:
        if axis in of.axes:
            yield from (f"{axis} of 1", f"{axis} of 2", f"{axis} of {LONG} or more")
    lengths = [*of.axes, "batch"] if of.batched else [*of.axes]
    yield from (pair(a, b) for a, b in combinations(lengths, 2))
    if len(lengths) > 1:
        yield all_distinct(of.axes, of.batched)


def of_numbers(of: Allowed) -> Iterator[str]:
    """Yield the cells of numbers that an exercise owes."""
    yield from (f"integers in {a.name}" for a in of.numbers)
    if of.numbers:
        yield "float32"
        yield "a row of very small numbers"
        yield "a row of very large numbers"
        yield "entries that cancel"
    if exp_rows(of.exercise):
        yield "a row whose exp overflows"


def of_zeros(of: Allowed) -> Iterator[str]:
    """Yield the zeros owed: a parameter, which is no batch of inputs, must be able to be 0."""
    parameters = [a for a in of.numbers if of.batched and not a.batched]
    for a in of.named.values():
        if a in parameters or may_be_zero(of.exercise, a):
            yield f"{a.name} of 0"
    yield from (f"{name} of 0" for name in of.weights)


def of_methods(of: Allowed) -> Iterator[str]:
    """Yield the cells of a module's methods that an exercise owes."""
    if of.module:
        for method in dict.fromkeys(use.method for use in of.uses):
            where = f" to {method}" if method else ""
            for a in arguments(getattr(of.reference, method or "forward"), True).values():
                yield from (f"{a.name} {is_given}{where}" for is_given in BOTH if a.optional)
            yield f"two calls{where} of one object, of the same lengths"


def of_options(of: Allowed) -> Iterator[str]:
    """Yield the cells of optional arguments that an exercise owes."""
    for a in (of.built if of.module else of.named).values():
        yield from (f"{a.name} {is_given}" for is_given in BOTH if a.optional)


def of_calls(of: Allowed) -> Iterator[str]:
    """Yield the cells of several calls that an exercise owes."""
    if of.module:
        yield "two calls of one object, of other lengths"
    else:
        yield "the first call once more, after others"


def of_masks(of: Allowed) -> Iterator[str]:
    """Yield the cells of masks that an exercise owes."""
    masks = [a.name for a in of.arrays if is_mask_name(a.name)] if of.batched else []
    yield from (cell.format(name) for cell in (TWO_AXES, SQUARE) for name in masks)


def of_gradients(of: Allowed) -> Iterator[str]:
    """Yield the cells of gradients that an exercise owes."""
    if of.returned.torch and of.returned.numbers:
        yield from (f"a gradient on {a.name} alone" for a in of.numbers if a.torch)
        yield from (f"a gradient on {name} alone" for name in of.weights)


OWED = (
    of_batches,
    of_lengths,
    of_numbers,
    of_zeros,
    of_methods,
    of_options,
    of_calls,
    of_masks,
    of_gradients,
)
BOTH = ("given", "left out")


def may_be_zero(exercise: Exercise, argument: Argument) -> bool:
    """True if an argument is a real number for which the reference accepts 0."""
    calls = [case for _, case, _ in draw(exercise, SEED) if case.use is call_it and not case.raises]
    if not argument.real or not calls:
        return False
    bound = inspect.signature(exercise.reference).bind(*calls[0].args, **calls[0].kwargs)
    bound.arguments[argument.name] = 0.0
    try:
        with quiet():
            exercise.reference(*copy_of(bound.args), **copy_of(bound.kwargs))
    except ValueError:
        return False
    return True


def axis_names(arrays: list[Argument], counts: list[Argument]) -> list[str]:
    """Return the names of the axes, each once."""
    names = [
        AXES_BY_ARGUMENT.get(axis, axis)
        for a in arrays
        for axis in a.axes or ()
        if axis.isidentifier()
    ]
    return list(dict.fromkeys([*names, *(a.length for a in counts if a.length)]))


# --- what is rare ----------------------------------------------------------------------------

RARE = (
    "*, not contiguous",
    "three batch axes",
    "integers in *",
    "float32",
    "a row of very *",
    "entries that cancel",
    "* of 0",
    "* of 1",
)
SAYING = {"a row of very large *": ("large", "far"), "* of 0": ("no ", "of 0"), "* of 1": ("one",)}


def costly_rare_kinds(exercise: Exercise) -> dict[str, set[str]]:
    """Return the rare kinds of input that cost more than a point, by the criteria that they cost.

    An answer that is wrong for one rare kind of input alone is nearly right: such cases stand in a
    criterion of one point, or make up one that asks for nothing else.
    """
    tried: dict[str, list[set[str]]] = {}
    for criterion, use in uses_by_criterion(exercise):
        if criterion.points > 1:
            tried.setdefault(criterion.name, []).append(rare_cells(use))
    kinds = {n: set().union(*every) - every[0].intersection(*every) for n, every in tried.items()}
    unsaid = {
        name: {
            kind for kind in kinds_of_argument if not any(word in name for word in words_for(kind))
        }
        for name, kinds_of_argument in kinds.items()
    }
    return {
        name: kinds_of_argument for name, kinds_of_argument in unsaid.items() if kinds_of_argument
    }


def words_for(kind: str) -> tuple[str, ...]:
    """Return words one of which, in a criterion's name, says that it asks for the rare kind."""
    return next((words for pattern, words in SAYING.items() if fnmatch(kind, pattern)), ())


def rare_cells(use: Use) -> set[str]:
    """Return the kinds of input that a call is an example of and that are seldom met."""
    arrays = {n: copy_of(use.values[n]) for n, a in use.arguments.items() if has_array(use, n)}
    sizes, _ = sizes_of(replace(use, returned=Argument("")), arrays)
    short = (f"{axis} of {n}" for axis, n in sizes.items() if n < 2 and axis != "c")  # grey images
    cells = {*cells_of(use), *short}
    return {cell for cell in cells if any(fnmatch(cell, kind) for kind in RARE)}


# --- what is covered -------------------------------------------------------------------------


def covered(exercise: Exercise) -> set[str]:
    """Return the kinds of input among the drawn cases."""
    every = list(uses(exercise))
    cells = {cell for use in every for cell in cells_of(use)}
    if inspect.isclass(exercise.reference):
        built = arguments(exercise.reference)
        cells |= {cell for use in every for cell in cells_of_options(built, use.built)}
    if any(spread >= SPREAD for spread in exp_rows(exercise)):
        cells.add("a row whose exp overflows")
    if comes_once_more(exercise):
        cells.add("the first call once more, after others")
    return cells


def comes_once_more(exercise: Exercise) -> bool:
    """True if a later case is the first one again, with others in between."""
    first, *others = [case for _, case, _ in draw(exercise, SEED)]
    return any(
        case.use is first.use
        and is_unchanged(case.args, first.args)
        and is_unchanged(case.kwargs, first.kwargs)
        for case in others[1:]
    )


def exp_rows(exercise: Exercise) -> list[float]:
    """Return the spread of the numbers in each row whose exp the reference takes."""
    spreads: list[float] = []
    with quiet(), watching_exp(lambda x: spreads.extend(spread_of(x))):
        for _, case, _ in draw(exercise, SEED):
            # A function that an exercise is given may take exp, and that is not its own.
            caller = caller_of(case)[0]
            has_own_arrays = caller not in ON_GIVEN and not any(map(callable, case.args))
            if has_own_arrays and caller in (*FUNCTION_CALLERS, *MODULES) and case.raises is None:
                case.use(exercise.reference, *copy_of(case.args), **copy_of(case.kwargs))
    return spreads


def spread_of(x: Any) -> Iterator[float]:
    """Yield the distance of the smallest and the largest finite number in each row."""
    array = as_numbers(x)
    if array is not None and array.ndim:
        for row in array.reshape(-1, array.shape[-1]):
            finite = row[np.isfinite(row)]
            yield float(finite.max() - finite.min()) if finite.size else 0.0


@contextmanager
def watching_exp(see: Callable[[Any], None]) -> Iterator[None]:
    """Show what goes into every exp and softmax, of NumPy and of torch."""
    exp = np.exp

    def watched(x, *args, **kwargs):
        see(x)
        return exp(x, *args, **kwargs)

    with patch.object(np, "exp", watched), torch_calls(see):
        yield


def torch_calls(see: Callable[[Any], None]) -> Any:
    """Return ``watching_exp`` for torch; chapters on NumPy do without it."""
    if "torch" not in sys.modules:
        return nullcontext()
    from torch.overrides import TorchFunctionMode

    class Watch(TorchFunctionMode):
        def __torch_function__(self, func, types, args: tuple[Any, ...] = (), kwargs=None):
            if getattr(func, "__name__", "") in ("exp", "softmax", "log_softmax", "logsumexp"):
                see(args[0])
            return func(*args, **(kwargs or {}))

    return Watch()


# --- what is missing -------------------------------------------------------------------------


@dataclass(frozen=True)
class GridReport:
    """The kinds of cases that an exercise lacks.

    ``stale`` are exclusions that exclude nothing missing.
    """

    missing: tuple[str, ...]
    stale: tuple[str, ...]


def missing_kinds(exercise: Exercise) -> GridReport:
    """Return the kinds of cases that an exercise lacks, and stale exclusions."""
    cells, covered_cells = owed(exercise), covered(exercise)
    lacking = [cell for cell in cells if cell not in covered_cells]
    excluded = {kind: [c for c in cells if fnmatch(c, kind)] for kind, _ in exercise.excludes}
    return GridReport(
        tuple(
            c
            for c in lacking
            if not any(c in excluded_cells for excluded_cells in excluded.values())
        ),
        tuple(
            k
            for k, excluded_cells in excluded.items()
            if not excluded_cells or covered_cells.intersection(excluded_cells)
        ),
    )


def main(stems: list[str]) -> None:
    """Print what the exercises of these chapters owe and do not cover."""
    for exercise in (e for stem in stems for e in chapter(stem)):
        exercise_report, cases = missing_kinds(exercise), len(draw(exercise, SEED))
        print(f"{exercise.target}: {cases} cases, {len(exercise_report.missing)} kinds missing")
        for cell in exercise_report.missing:
            print(f"    {cell}")
        for kind in exercise_report.stale:
            print(f"    excluded, but covered or never owed: {kind}")


if __name__ == "__main__":
    main(sys.argv[1:] or list(STEMS))
