"""The decorator that holds a call against the function's annotations."""

import importlib
import inspect
import pickle

import numpy as np
import pytest
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attncourse import STEMS
from attncourse.kqv import scaled_dot_product_attention
from attncourse.support.shapes import Count, Positive, shaped

X = torch.ones(5, 3)


@shaped
def both(
    x: Float[Tensor, "*#batch n d"], y: Float[Tensor, "*#batch m d"] | None = None, h: Count = 2
) -> Float[Tensor, "*batch n d"]:
    """Whatever it does."""
    return x if y is None else x + h * y.sum(-2, keepdim=True)


@shaped(n="as many rows as entries")
def either(A: Float[np.ndarray, "*#batch m n"] | Float[np.ndarray, "n"], v: Float[np.ndarray, "n"]):
    return A @ v


@shaped
def under(
    x: Float[Tensor, "*#batch n d"],
    mask: Bool[Tensor, "*#batch #n"] | None = None,
    t: Positive = 1.0,
):
    return x / t


class ShapedLayer(nn.Module):
    @shaped
    def __init__(self, d: Count):
        super().__init__()
        self.d, self.linear = d, nn.Linear(d, 2)

    @shaped
    def forward(self, x: Float[Tensor, "*batch n d"]):
        return self.linear(x)


def test_a_decorated_function_is_still_itself():
    assert both.__doc__ == "Whatever it does."
    assert list(inspect.signature(both).parameters) == ["x", "y", "h"]
    assert "@shaped\ndef both(" in inspect.getsource(both)
    assert pickle.loads(pickle.dumps(both)) is both


def test_what_fits_goes_through():
    close = torch.testing.assert_close
    close(both(X), X)
    close(both(X, None), X)
    close(both(y=X.expand(2, 1, 5, 3), x=X.expand(7, 5, 3), h=np.int64(3)).shape, (2, 7, 5, 3))
    assert either([[1, 2], [3, 4]], [1, 2]).tolist() == [5.0, 11.0]
    assert either([1, 2], [1, 2]) == 5.0
    assert under(X.expand(2, 5, 3), torch.tensor([True])).shape == (2, 5, 3)
    assert ShapedLayer(3)(X).shape == (5, 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: both(X, X[:, :2]), "both: expected the same d, "
         "got x of shape (5, 3) and y of shape (5, 2)"),
        (lambda: both(X.expand(2, 5, 3), X.expand(4, 5, 3)), "expected batch axes that broadcast, "
         "got x of shape (2, 5, 3), y of shape (4, 5, 3)"),
        (lambda: both(X, X.double()), "expected one dtype, got x of torch.float32, "
         "y of torch.float64"),
        (lambda: both(None), "x: expected a torch tensor, got NoneType"),
        (lambda: both(X, h=0), "h: expected a whole number of at least 1, got 0"),
        (lambda: both(X, h=None), "h: expected a whole number of at least 1, got None"),
        (lambda: both(X[0]), "x: expected shape (..., n, d), got (3,)"),
        (lambda: both(X, X[:0]), "y: expected at least one entry along every axis, got (0, 3)"),
        (lambda: either(1.0, [1.0]), "A: expected shape (..., m, n) or (n), got ()"),
        (lambda: either([1.0, 2.0], [1.0]), "either: expected as many rows as entries, "
         "got A of shape (2,) and v of shape (1,)"),
        (lambda: under(X.expand(2, 5, 3), torch.ones(3, 1, dtype=torch.bool)), "expected batch "
         "axes that broadcast, got x of shape (2, 5, 3), mask of shape (3, 1)"),
        (lambda: under(X, t=0), "t: expected a finite number above 0, got 0"),
        (lambda: ShapedLayer(0), "d: expected a whole number of at least 1, got 0"),
        (lambda: ShapedLayer(4)(X), "x: expected d = 4 features a token, got shape (5, 3)"),
        (lambda: ShapedLayer(3)(X.double()), "expected one dtype, got x of torch.float64, "
         "parameters of torch.float32"),
        (lambda: scaled_dot_product_attention(X, X, X.expand(2, 5, 3),
                                              torch.ones(3, 5, 5, dtype=torch.bool)),
         "expected batch axes that broadcast, got query of shape (5, 3), key of shape (5, 3), "
         "value of shape (2, 5, 3), mask of shape (3, 5, 5)"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        call()
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: both(), "missing 1 required positional argument: 'x'"),
        (lambda: both(X, X, 2, 3), "takes from 1 to 3 positional arguments but 4 were given"),
        (lambda: both(X, x=X), "got multiple values for argument 'x'"),
        (lambda: both(X, z=X), "got an unexpected keyword argument 'z'"),
    ],
)
def test_a_wrong_call_is_the_functions_own_error(call, message):
    with pytest.raises(TypeError, match=message):
        call()


def test_an_agreed_result_is_checked_again_when_changed():
    layer = ShapedLayer(3)
    for _ in range(2):
        layer(X)
        with pytest.raises(ValueError, match=r"x of torch\.float64"):
            layer(X.double())
        with pytest.raises(ValueError, match="expected d = 3 features"):
            layer(X[:, :2])
    layer.double()
    with pytest.raises(ValueError, match=r"x of torch\.float32"):
        layer(X)
    layer.float().d = 4
    with pytest.raises(ValueError, match="expected d = 4 features"):
        layer(X)


def functions_of(module):
    """The functions that a module defines, and the methods of its classes."""
    for value in vars(module).values():
        if getattr(value, "__module__", None) == module.__name__:
            members = vars(value).values() if inspect.isclass(value) else [value]
            yield from (one for one in members if inspect.isfunction(one))


@pytest.mark.parametrize("stem", STEMS)
def test_arguments_that_broadcast_say_so(stem):
    """Two arguments with batch axes do not both have them as ``*batch``: they would be equal."""
    for function in functions_of(importlib.import_module(f"attncourse.{stem}")):
        given = inspect.signature(function).parameters.values()
        written = [getattr(p.annotation, "dim_str", "") for p in given]
        assert len([one for one in written if "*batch" in one]) <= 1, function.__qualname__
