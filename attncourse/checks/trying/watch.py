"""The watch on finished functions: whoever calls one that an exercise forbids is refused.

It goes by what is called and not by what it is called like. While a watch is on, torch's table of
kernels holds a refusal for each operator that does the forbidden work, and a forbidden function
that is written in Python has a refusal for its body. So it makes no difference by which name,
from which thread, from Python, TorchScript or C++ the call comes; and nothing else costs anything.
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
OF_GROUPS = (  # of which one group, or one token, makes the norm of a row
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
    "layer_norm": ("layer_norm", "native_layer_norm", *OF_GROUPS),
    "rms_norm": ("rms_norm", "_fused_rms_norm"),
}
# And the functions that have no operator, where their module is in use.
ANOTHER = (
    ("torch.nn.attention.flex_attention", "flex_attention"),
    ("torch.ao.nn.quantizable.modules.activation", "MultiheadAttention._forward_impl"),
    ("torch.onnx.ops._impl", "attention_23._init_fn"),
)
PYTHON_FUNCTIONS = {
    "scaled_dot_product_attention": ANOTHER,
    "multi_head_attention_forward": (
        ("torch.nn.functional", "multi_head_attention_forward"),
        *ANOTHER,
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
TAKEN_DOWN = "took down the watch on the functions that this exercise forbids"


class Unusable(Exception):
    """Raised for an answer that cannot be tried any further. Its message is all there is to say."""


class Forbidden(Unusable):
    """Raised when an implementation hands its work to a function that the exercise forbids."""


class Kernels(NamedTuple):
    """The kernels to replace for one name: their places in the table, and a call to try them."""

    places: tuple[tuple[str, str], ...]
    probe: Callable[[Any], Any]


def nothing_refused() -> str:
    """Return "": of a watch that another one already keeps."""
    return ""


_on: set[tuple[str, ...]] = set()


@contextmanager
def forbidding(names: tuple[str, ...]) -> Iterator[Callable[[], str]]:
    """Have torch functions of these names raise ``Forbidden`` inside the ``with`` block.

    What it gives tells, each time that it is called, whether there was such a call since the last
    time, even if its exception was caught, or whether the watch itself was harmed. Inside of
    another one for the same names it does nothing, and tells nothing: that one does.
    """
    if not names or names in _on:
        yield nothing_refused
        return
    with ExitStack() as stack:
        forbidden_calls = start_watch(stack, names)
        _on.add(names)
        stack.callback(_on.discard, names)
        yield forbidden_calls


def start_watch(stack: ExitStack, names: tuple[str, ...]) -> Callable[[], str]:
    """Put up the watch on these names until the stack is left; return what tells what it saw."""
    import torch

    calls: list[str] = []
    token = torch.zeros(())

    def refusal(name: str) -> Callable:
        def refuse(*args: Any, **kwargs: Any) -> Any:
            if args and args[0] is token:
                return token
            calls.append(name)
            raise Forbidden(forbidden_call(name))

        return refuse

    refusals = {name: refusal(name) for name in names}
    stack.enter_context(
        replaced_kernels({place: refusals[n] for n in names for place in kernels_of(n).places})
    )
    bodies: dict[types.FunctionType, types.CodeType] = {}
    loaded = 0

    def watch_what_is_loaded() -> None:
        nonlocal loaded
        if loaded == len(sys.modules):
            return
        loaded = len(sys.modules)
        for n in names:
            for function in python_functions(n):
                if function not in bodies:
                    bodies[function] = body_of(refusals[n])
                    stack.enter_context(body_replaced(function, bodies[function]))

    watch_what_is_loaded()
    probes = tuple(kernels_of(n).probe for n in names)

    def report() -> str:
        """Try the watch, too: what it was put over shows whether it is still there."""
        harmed = any(function.__code__ is not body for function, body in bodies.items())
        watch_what_is_loaded()
        try:
            harmed |= any(probe(token) is not token for probe in probes)
        except Exception:
            harmed = True
        said = forbidden_call(calls[0]) if calls else TAKEN_DOWN if harmed else ""
        calls.clear()
        return said

    return report


@contextmanager
def replaced_kernels(refusals: dict[tuple[str, str], Callable]) -> Iterator[None]:
    """Have operators refuse, in every thread: these, by their places in the table of kernels."""
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
def body_replaced(function: types.FunctionType, body: types.CodeType) -> Iterator[None]:
    """Have a function refuse, whoever holds it."""
    old, function.__code__ = function.__code__, body
    try:
        yield
    finally:
        function.__code__ = old


def body_of(refuse: Callable) -> types.CodeType:
    """Return a function's body that calls ``refuse``: a constant, for it sees no names of ours."""

    def body(*args: Any, **kwargs: Any) -> Any:
        function: Any = "refuse"
        return function(*args, **kwargs)

    code = body.__code__
    return code.replace(co_consts=tuple(refuse if c == "refuse" else c for c in code.co_consts))


@cache
def kernels_of(name: str) -> Kernels:
    """Return where torch has what does the work of a forbidden function.

    A grader asks before it runs what students write, which could answer in torch's name.
    """
    import torch

    if name not in OPERATORS:
        raise ValueError(f"expected one of {', '.join(OPERATORS)} to be forbidden, got {name}")
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    known = set(torch._C._dispatch_get_all_op_names())
    places = tuple(
        (operator, key)
        for operator in OPERATORS[name]
        if f"aten::{operator}" in known
        for key in DISPATCH_KEYS
        if has(f"aten::{operator}", key)
    )
    return Kernels(places, probe_of(OPERATORS[name]))


def probe_of(operators: tuple[str, ...]) -> Callable[[Any], Any]:
    """Return a call of the first of these that returns one tensor, with plain arguments."""
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
    """Look up all that can be forbidden, where torch is in use."""
    if "torch" in sys.modules:
        for name in OPERATORS:
            kernels_of(name), python_functions(name)


def python_functions(name: str) -> list[types.FunctionType]:
    """Return the functions of this kind that are written in Python and can be called by now.

    One that was seen before is among them, whatever has become of its module.
    """
    seen = _seen.setdefault(name, [])
    for module, path in PYTHON_FUNCTIONS.get(name, ()):
        if module in sys.modules:
            with suppress(AttributeError):
                function = attrgetter(path)(sys.modules[module])
                plain = isinstance(function, types.FunctionType) and function.__closure__ is None
                if plain and function not in seen:  # another body has no place for a closure
                    seen.append(function)
    return seen


_seen: dict[str, list[types.FunctionType]] = {}


def forbidden_call(name: str) -> str:
    """Return what a student is told of a call of a forbidden function."""
    return f"called {name}, which this exercise asks you to build"
