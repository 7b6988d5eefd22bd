"""The watch on finished functions: a call of one that an exercise forbids raises ``Forbidden``.

Functions are replaced where they are implemented, not where they are named. While a watch is on,
torch's table of kernels holds a refusal for each operator that does the forbidden work, and a
forbidden function that is written in Python has a refusal as its body. So calls by any name, from
any thread, from Python, TorchScript or C++ are refused; and all other calls cost nothing.
"""

import sys
import types
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from operator import attrgetter
from typing import Any, NamedTuple

# The operators behind each name that an exercise may forbid.
WHOLE_LAYER_OPERATORS = (
    "_native_multi_head_attention",
    "_transformer_encoder_layer_fwd",
)
GROUP_NORM_OPERATORS = (  # with one group, or with one token, each normalises a row
    "group_norm",
    "native_group_norm",
    "batch_norm",
    "native_batch_norm",
    "_native_batch_norm_legit",
    "_native_batch_norm_legit.no_stats",
    "_batch_norm_impl_index",
    "instance_norm",
)
OPERATORS = {
    "scaled_dot_product_attention": (
        "scaled_dot_product_attention",
        "_scaled_dot_product_attention_math",
        "_scaled_dot_product_flash_attention_for_cpu",
        *WHOLE_LAYER_OPERATORS,
    ),
    "multi_head_attention_forward": WHOLE_LAYER_OPERATORS,
    "bilinear": ("bilinear", "_trilinear"),
    "special_entr": ("special_entr", "special_entr.out"),
    "layer_norm": ("layer_norm", "native_layer_norm", *GROUP_NORM_OPERATORS),
    "rms_norm": ("rms_norm", "_fused_rms_norm"),
}
# Functions written in Python, with no operator of their own: (module, name in it). They are
# watched once something has imported the module.
PYTHON_ATTENTION = (
    ("torch.nn.attention.flex_attention", "flex_attention"),
    ("torch.ao.nn.quantizable.modules.activation", "MultiheadAttention._forward_impl"),
    ("torch.onnx.ops._impl", "attention_23._init_fn"),
)
PYTHON_FUNCTIONS = {
    "scaled_dot_product_attention": PYTHON_ATTENTION,
    "multi_head_attention_forward": (
        ("torch.nn.functional", "multi_head_attention_forward"),
        *PYTHON_ATTENTION,
    ),
}
# The places in the table of kernels through which work on a processor goes.
DISPATCH_KEYS = (
    "CPU",
    "CompositeImplicitAutograd",
    "CompositeExplicitAutograd",
    "CompositeExplicitAutogradNonFunctional",
    "NestedTensorCPU",
    "FuncTorchBatched",
    "FuncTorchBatchedDecomposition",
    "FuncTorchVmapMode",
)
WATCH_TAKEN_DOWN = "took down the watch on the functions that this exercise forbids"


class Unusable(Exception):
    """Raised for an answer that cannot be tried further; its message alone is shown."""


class Forbidden(Unusable):
    """Raised when an implementation hands its work to a function that the exercise forbids."""


class Kernels(NamedTuple):
    """The kernels to replace for one forbidden name, and a call that shows whether they are.

    ``places`` are (operator, dispatch key); ``probe`` calls an operator on a tensor.
    """

    places: tuple[tuple[str, str], ...]
    probe: Callable[[Any], Any]


def report_nothing() -> str:
    """Return "": the report of an inner watch, whose calls the outer one reports."""
    return ""


_names_watched: set[tuple[str, ...]] = set()  # the names of the watches that are on


@contextmanager
def forbidding(names: tuple[str, ...]) -> Iterator[Callable[[], str]]:
    """Have torch functions of these names raise ``Forbidden`` inside the ``with`` block.

    Yields a function that returns a sentence if there was such a call since it was last called,
    even if its exception was caught, or if the watch was taken down; else "". Inside another block
    for the same names it does nothing, and its function returns "".
    """
    if not names or names in _names_watched:
        yield report_nothing
        return
    with ExitStack() as stack:
        forbidden_calls = start_watch(stack, names)
        _names_watched.add(names)
        stack.callback(_names_watched.discard, names)
        yield forbidden_calls


def start_watch(stack: ExitStack, names: tuple[str, ...]) -> Callable[[], str]:
    """Start the watch on these names, which the stack ends; return its report function."""
    import torch

    calls: list[str] = []
    probe_tensor = torch.zeros(())

    def refusal(name: str) -> Callable:
        """Return the function that stands in for everything that does the work of ``name``."""

        def refuse(*args: Any, **kwargs: Any) -> Any:
            """Refuse a call, or hand the probe back, which shows that the watch is still on."""
            if args and args[0] is probe_tensor:
                return probe_tensor
            calls.append(name)
            raise Forbidden(forbidden_call(name))

        return refuse

    refusals = {name: refusal(name) for name in names}
    stack.enter_context(
        replace_kernels({place: refusals[n] for n in names for place in kernels_of(n).places})
    )
    bodies: dict[types.FunctionType, types.CodeType] = {}
    modules_seen = 0

    def watch_imported_functions() -> None:
        """Replace the bodies of forbidden Python functions whose module has been imported."""
        nonlocal modules_seen
        if modules_seen == len(sys.modules):  # nothing was imported since the last time
            return
        modules_seen = len(sys.modules)
        for n in names:
            for function in python_functions(n):
                if function not in bodies:
                    bodies[function] = body_calling(refusals[n])
                    stack.enter_context(replace_body(function, bodies[function]))

    watch_imported_functions()
    probes = tuple(kernels_of(n).probe for n in names)

    def report() -> str:
        """Return what happened since the last report, or that the watch is gone; else ""."""
        harmed = any(function.__code__ is not body for function, body in bodies.items())
        watch_imported_functions()
        try:
            harmed |= any(probe(probe_tensor) is not probe_tensor for probe in probes)
        except Exception:
            harmed = True
        sentence = ""
        if calls:
            sentence = forbidden_call(calls[0])
        elif harmed:
            sentence = WATCH_TAKEN_DOWN
        calls.clear()
        return sentence

    return report


@contextmanager
def replace_kernels(refusals: dict[tuple[str, str], Callable]) -> Iterator[None]:
    """Replace kernels inside the block, in every thread: functions by (operator, dispatch key)."""
    import torch

    table = torch._C._dispatch_library("IMPL", "aten", "", __file__, 0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch says, once, that kernels were replaced
            for (operator, key), refuse in refusals.items():
                # pyrefly: ignore [bad-argument-count]  the stubs are of an older torch
                table.impl(operator, key, refuse, False)
        yield
    finally:
        table.reset()


@contextmanager
def replace_body(function: types.FunctionType, body: types.CodeType) -> Iterator[None]:
    """Give a function another body inside the block, wherever it has been imported."""
    old, function.__code__ = function.__code__, body
    try:
        yield
    finally:
        function.__code__ = old


def body_calling(refuse: Callable) -> types.CodeType:
    """Return a function's body that calls ``refuse``.

    The function is put among the body's constants: the body runs with the globals of the function
    that it replaces, and finds no names of this module.
    """

    def body(*args: Any, **kwargs: Any) -> Any:
        # The text is replaced below by the function itself.
        function: Any = "refuse"
        return function(*args, **kwargs)

    code = body.__code__
    return code.replace(co_consts=tuple(refuse if c == "refuse" else c for c in code.co_consts))


@cache
def kernels_of(name: str) -> Kernels:
    """Return the kernels that do the work of a forbidden function.

    A grader calls this before any submission runs, which could change what torch answers; the
    result is kept.
    """
    import torch

    if name not in OPERATORS:
        raise ValueError(f"expected one of {', '.join(OPERATORS)} to be forbidden, got {name}")
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    operator_names = set(torch._C._dispatch_get_all_op_names())
    places = tuple(
        (operator, key)
        for operator in OPERATORS[name]
        if f"aten::{operator}" in operator_names
        for key in DISPATCH_KEYS
        if has(f"aten::{operator}", key)
    )
    return Kernels(places, probe_of(OPERATORS[name]))


def probe_of(operators: tuple[str, ...]) -> Callable[[Any], Any]:
    """Return a function that calls one of the operators on a tensor, with constant options.

    It is the first operator that returns one tensor.
    """
    import torch

    operator, schema = "", None
    for operator in operators:
        schema = torch._C._jit_get_schemas_for_operator(f"aten::{operator}")[0]
        if len(schema.returns) == 1:
            break
    if schema is None:
        raise ValueError("expected an operator or more to watch")
    call, _ = torch._C._jit_get_operation(f"aten::{operator}")
    needed = [str(a.type) for a in schema.arguments if not a.has_default_value()]
    return lambda tensor: call(*(PLAIN_ARGUMENTS.get(kind, tensor) for kind in needed))


PLAIN_ARGUMENTS = {"int": 1, "float": 1.0, "bool": True, "List[int]": [1]}


def look_up_forbidden() -> None:
    """Look up and keep all that can be forbidden, if torch is imported."""
    if "torch" in sys.modules:
        for name in OPERATORS:
            kernels_of(name), python_functions(name)


def python_functions(name: str) -> list[types.FunctionType]:
    """Return the functions written in Python for a forbidden name whose module is imported.

    One that was found once stays among them, even if its module is removed or changed.
    """
    functions = _functions_found.setdefault(name, [])
    for module, path in PYTHON_FUNCTIONS.get(name, ()):
        if module in sys.modules:
            with suppress(AttributeError):
                function = attrgetter(path)(sys.modules[module])
                plain = isinstance(function, types.FunctionType) and function.__closure__ is None
                if plain and function not in functions:  # another body has no place for a closure
                    functions.append(function)
    return functions


_functions_found: dict[str, list[types.FunctionType]] = {}


def forbidden_call(name: str) -> str:
    """Return the sentence for a student on a call of a forbidden function."""
    return f"called {name}, which this exercise asks you to build"
