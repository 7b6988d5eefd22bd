"""Forbidden functions are refused whatever way they are called, and all else is left alone."""

import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode, handle_torch_function, wrap_torch_function

from attncourse.checks import examine, exercises
from attncourse.checks.trying.watch import (
    OPERATORS,
    WATCH_TAKEN_DOWN,
    Forbidden,
    forbidding,
    kernels_of,
)
from attncourse.grading.course.folders import find_assignment
from attncourse.grading.demo import fill_solution_cells
from attncourse.grading.judge.judge import grade_submission
from attncourse.grading.limits import Limits
from attncourse.grading.sample import CLASS, IMPORTS
from attncourse.kqv import scaled_dot_product_attention as right
from helpers.project import ROOT

TORCH_ATTENTION = F.scaled_dot_product_attention
TORCH_MULTIHEAD = F.multi_head_attention_forward
SDPA = "scaled_dot_product_attention"
MHA = "multi_head_attention_forward"
FORBIDDEN_NAMES = (SDPA, MHA)


def library(query, key, value, mask=None, *, scale=None):
    return TORCH_ATTENTION(query, key, value, attn_mask=mask, scale=scale)


def another_name(query, key, value, mask=None, *, scale=None):
    return torch._C._nn.scaled_dot_product_attention(query, key, value, mask, scale=scale)


def from_a_dict(query, key, value, mask=None, *, scale=None):
    return vars(F)["_".join(["scaled", "dot", "product", "attention"])](query, key, value, mask)


def thread(query, key, value, mask=None, *, scale=None):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(library, query, key, value, mask, scale=scale).result()


def disabled(query, key, value, mask=None, *, scale=None):
    with torch._C.DisableTorchFunction():
        return library(query, key, value, mask, scale=scale)


def popped(query, key, value, mask=None, *, scale=None):
    """Takes every mode from the stack, and puts them back."""
    from torch.overrides import _len_torch_function_stack, _pop_mode, _push_mode

    modes = [_pop_mode() for _ in range(_len_torch_function_stack())]
    try:
        return library(query, key, value, mask, scale=scale)
    finally:
        for mode in modes[::-1]:
            _push_mode(mode)


def emptied(query, key, value, mask=None, *, scale=None):
    """Has the modes in force forget what they look for."""
    from torch.overrides import _get_current_function_mode_stack

    for mode in _get_current_function_mode_stack():
        mode.names = ()
    return library(query, key, value, mask, scale=scale)


def wrapped(query, key, value, mask=None, *, scale=None):
    return wrap_torch_function(lambda *args: args[:3])(TORCH_ATTENTION)(query, key, value, mask)


def handled(query, key, value, mask=None, *, scale=None):
    class QuietTensor(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            with torch._C.DisableTorchFunction():
                return TORCH_ATTENTION(*args)

    quiet = query.as_subclass(QuietTensor)
    return handle_torch_function(len, (quiet,), quiet, key, value).as_subclass(torch.Tensor)


def other_mode(query, key, value, mask=None, *, scale=None):
    """A mode of its own, on top, that calls another function than it was asked for."""

    class Swap(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            return TORCH_ATTENTION(query, key, value, mask, scale=scale)

    with Swap():
        return query @ key.mT


def operator(query, key, value, mask=None, *, scale=None):
    return torch.ops.aten.scaled_dot_product_attention.default(query, key, value, mask, scale=scale)


def part(query, key, value, mask=None, *, scale=None):
    return torch.ops.aten._scaled_dot_product_attention_math(query, key, value, mask, scale=scale)[
        0
    ]


def decomposed(query, key, value, mask=None, *, scale=None):
    return torch.ops.aten.scaled_dot_product_attention.default.decompose(query, key, value, mask)


def vmapped(query, key, value, mask=None, *, scale=None):
    with torch._C.DisableTorchFunction():
        return torch.func.vmap(TORCH_ATTENTION)(query[None], key[None], value[None])[0]


def differentiated(query, key, value, mask=None, *, scale=None):
    return torch.func.vjp(TORCH_ATTENTION, query, key, value)[0]


class Hidden(torch.autograd.Function):
    @staticmethod
    def forward(ctx, query, key, value):
        return TORCH_ATTENTION(query, key, value)


def custom_function(query, key, value, mask=None, *, scale=None):
    return Hidden.apply(query, key, value)


def without_modes(query, key, value, mask=None, *, scale=None):
    from torch.utils._python_dispatch import _disable_current_modes

    with _disable_current_modes(), torch.inference_mode():
        return library(query.detach(), key.detach(), value.detach(), mask, scale=scale)


def half(query, key, value, mask=None, *, scale=None):
    with torch.autocast("cpu", torch.bfloat16):
        return library(query, key, value, mask, scale=scale)


def nested(query, key, value, mask=None, *, scale=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = [torch.nested.nested_tensor([x[None]]) for x in (query, key, value)]
    return TORCH_ATTENTION(*made)[0][0]


def swallowed(query, key, value, mask=None, *, scale=None):
    try:
        return library(query, key, value, mask, scale=scale)
    except Exception:
        return right(query, key, value, mask, scale=scale)


def generated(query, key, value, mask=None, *, scale=None):
    def step():
        yield library(query, key, value, mask, scale=scale)

    return next(step())


def plain(query, key, value):
    return F.scaled_dot_product_attention(query, key, value)


@cache
def compiled():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scripting is on its way out
        return torch.jit.script(plain)


def script(query, key, value, mask=None, *, scale=None):
    return compiled()(query, key, value)


def module(query, key, value, mask=None, *, scale=None):
    layer = nn.MultiheadAttention(query.shape[-1], 1, dtype=query.dtype)
    return layer(query, key, value)[0]


def weights_too(query, key, value, mask=None, *, scale=None):
    with torch._C.DisableTorchFunction():
        return module(query, key, value)


def fast_path(query, key, value, mask=None, *, scale=None):
    layer = nn.MultiheadAttention(query.shape[-1], 1, dtype=query.dtype, batch_first=True).eval()
    with torch.no_grad(), torch._C.DisableTorchFunction():
        return layer(query[None], query[None], query[None])[0]


def encoder_layer(query, key, value, mask=None, *, scale=None):
    layer = nn.TransformerEncoderLayer(query.shape[-1], 1, 8, batch_first=True, dtype=query.dtype)
    with torch.no_grad(), torch._C.DisableTorchFunction():
        return layer.eval()(query[None])[0]


WAYS_TO_CALL_ATTENTION = [
    library,
    another_name,
    from_a_dict,
    thread,
    disabled,
    popped,
    emptied,
    wrapped,
    handled,
]
WAYS_TO_CALL_ATTENTION += [
    other_mode,
    operator,
    part,
    decomposed,
    vmapped,
    differentiated,
    custom_function,
]
WAYS_TO_CALL_ATTENTION += [without_modes, half, nested, swallowed, generated, script]
WAYS_TO_CALL_A_LAYER = [module, weights_too, fast_path, encoder_layer]
CASES = [(way, SDPA) for way in WAYS_TO_CALL_ATTENTION] + [
    (way, MHA) for way in WAYS_TO_CALL_A_LAYER
]


@pytest.mark.parametrize(("answer", "name"), CASES, ids=[way.__name__ for way, _ in CASES])
def test_a_finished_function_is_refused_by_whatever_way(answer, name):
    verdict = examine("kqv.scaled_dot_product_attention", answer, seed=0)
    assert verdict.earned == 0
    assert f"called {name}, which this exercise asks you to build" in verdict.criteria[0].message


def test_a_layer_of_torchs_may_not_stand_in_for_heads():
    for way in WAYS_TO_CALL_A_LAYER:
        x = torch.randn(3, 4)
        with forbidding((MHA,)) as refused:
            with pytest.raises(Forbidden):
                way(x, x, x)
            assert MHA in refused()
            assert not refused()


def test_functions_that_are_not_forbidden_can_be_called():
    x = torch.randn(3, 4)
    with forbidding((MHA,)) as refused:
        library(x, x, x)
        assert not refused()
    with forbidding(("bilinear", "special_entr")) as refused:
        torch.einsum("ij,jk,kl->il", x, x.mT, x)
        assert not refused()
        with pytest.raises(Forbidden):
            F.bilinear(x, x, torch.randn(2, 4, 4))
        with pytest.raises(Forbidden):
            torch.special.entr(x)
        assert "bilinear" in refused()


def test_the_watch_leaves_torch_as_it_was():
    x = torch.randn(2, 3, 5, 7, requires_grad=True)
    before = TORCH_ATTENTION(x, x, x), TORCH_MULTIHEAD.__code__
    for answer, _ in CASES[:3]:
        examine("kqv.scaled_dot_product_attention", answer, seed=0)
    assert torch.equal(TORCH_ATTENTION(x, x, x), before[0])
    assert TORCH_MULTIHEAD.__code__ is before[1]
    (gradient,) = torch.autograd.grad(TORCH_ATTENTION(x, x, x).sum(), x)
    assert gradient.isfinite().all()
    layer = nn.MultiheadAttention(7, 1).eval()
    assert layer(x[0], x[0], x[0])[0].shape == (3, 5, 7)


def test_nested_watches_each_catch_their_function():
    x = torch.randn(3, 4)
    with forbidding(FORBIDDEN_NAMES) as outer:
        with forbidding(FORBIDDEN_NAMES) as inner:
            with pytest.raises(Forbidden):
                library(x, x, x)
            assert not inner()
        with pytest.raises(Forbidden):
            library(x, x, x)
        with forbidding(("bilinear",)), pytest.raises(Forbidden):
            library(x, x, x)
        assert SDPA in outer()
    library(x, x, x)


def own_kernels(query, key, value, mask=None, *, scale=None):
    """Registers kernels over those of the watch."""
    table = torch.library.Library("aten", "IMPL")
    table.impl(SDPA, lambda *args, **options: right(*args[:3]), "CompositeImplicitAutograd")
    kernel_tables.append(table)
    return right(query, key, value, mask, scale=scale)


def own_body(query, key, value, mask=None, *, scale=None):
    """Gives the function, which the watch has changed, the body that it had before."""
    TORCH_MULTIHEAD.__code__ = MULTIHEAD_CODE
    return right(query, key, value, mask, scale=scale)


kernel_tables: list = []
MULTIHEAD_CODE = TORCH_MULTIHEAD.__code__


@pytest.mark.parametrize("answer", [own_kernels, own_body])
@pytest.mark.filterwarnings("ignore")
def test_a_tampered_watch_fails_with_a_clear_error(answer):
    try:
        verdict = examine("kqv.scaled_dot_product_attention", answer, seed=0)
    finally:
        for table in kernel_tables:
            table._destroy()
        kernel_tables.clear()
    assert verdict.earned == 0
    assert WATCH_TAKEN_DOWN in verdict.criteria[0].message
    assert examine("kqv.scaled_dot_product_attention", right, seed=0).passed


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.filterwarnings("ignore")
def test_a_removed_watch_is_noticed_for_any_function(name):
    with forbidding((name,)) as refused:
        assert refused() == ""
        for operator, key in kernels_of(name).places:
            table = torch.library.Library("aten", "IMPL")
            table.impl(operator, lambda first, *more: first + 1, key)
            kernel_tables.append(table)
        try:
            assert refused() == WATCH_TAKEN_DOWN
        finally:
            for table in kernel_tables:
                table._destroy()
            kernel_tables.clear()


def test_a_thread_started_before_is_watched_too():
    """It waits for work in the cell, and does it during the call."""
    start, finished, box = threading.Event(), threading.Event(), []

    def wait():
        start.wait(60)
        try:
            box.append(library(*box))
        except Forbidden as error:
            box.append(error)
        finished.set()

    worker = threading.Thread(target=wait, daemon=True)
    worker.start()
    with forbidding(FORBIDDEN_NAMES) as refused:
        box += [torch.randn(3, 4)] * 3
        start.set()
        finished.wait(60)
        assert SDPA in refused()
    assert isinstance(box[-1], Forbidden)


def test_every_forbidden_function_can_be_watched():
    names = {name for exercise in exercises().values() for name in exercise.forbids}
    assert names == set(OPERATORS)
    for name in names:
        assert kernels_of(name).places
    with pytest.raises(ValueError, match="got softmax"):
        kernels_of("softmax")


CALLING_ANSWER = """
def scaled_dot_product_attention(query, key, value, mask=None, *, scale=None):
    return nn.functional.scaled_dot_product_attention(query, key, value, mask, scale=scale)
"""


def test_a_hidden_test_forbids_what_the_check_forbids():
    released = (ROOT / "exercises" / "05_kqv" / "05_kqv.ipynb").read_text(encoding="utf-8")
    answers = CLASS["amara-matrices"] | {SDPA: IMPORTS + CALLING_ANSWER}
    assignment = find_assignment(ROOT, "05_kqv")
    report = grade_submission(
        fill_solution_cells(released, answers).encode(), assignment, limits=Limits(submission=60)
    )
    lost = {grade_id for grade_id, cell in report.cells.items() if cell.points < cell.maximum}
    assert lost == {f"points_{SDPA}", f"hidden_{SDPA}"}
    message = report.cells[f"hidden_{SDPA}"].message
    assert message.startswith("a hidden test failed (Forbidden) on the way to: 5 queries")
