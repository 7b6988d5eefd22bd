"""Questions that gates of several milestones share: do two outputs differ, and who changes whom?

A gate asks a model on a few inputs, and says what it saw, or nothing where all is well.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

MAX_DIFFERENCE = 1e-3  # what two ways of computing one thing may differ by, in units of its spread


def relative_difference(first: Tensor, second: Tensor) -> float:
    """Return by how much two outputs differ, over how much the first varies; NaN is very far."""
    far = (first - second).abs().max() / first.std().clamp(min=1e-9)
    return float(far.nan_to_num(nan=torch.inf))


def of_shape(got: Tensor, shape: tuple[int, ...]) -> str:
    """Say what is wrong with logits that are not finite or not of that shape; "" if nothing is."""
    if got.shape != shape:
        return f"expected logits of shape {shape}, got {tuple(got.shape)}"
    return "" if got.isfinite().all() else "some logits are not finite"


def difference_message(said: str, far: float) -> str:
    """Return the message for two outputs that differ, and by how much they do; "" if they agree."""
    return f"{said}, by {far:.2g}" if far > MAX_DIFFERENCE else ""


def nothing_ahead(draw_input: Callable[[], Tensor], what: str) -> Callable[[nn.Module], str]:
    """Return chapter 10's leak test as a gate: what comes later changes nothing before."""

    def shut(model: Any) -> str:
        ids = draw_input()
        right, n = model(ids), ids.shape[1]
        for cut in sorted({1, 2, n // 3, n // 2, n - 1}):
            changed = torch.cat([ids[:, :cut], ids[:, cut:].roll(1, 0)], dim=1)
            far = relative_difference(right[:, :cut], model(changed)[:, :cut])
            if far > MAX_DIFFERENCE:
                return difference_message(
                    f"{what} from position {cut} on change what is said before", far
                )
        return ""

    return shut


def all_behind(draw_input: Callable[[], Tensor], what: str) -> Callable[[nn.Module], str]:
    """Return a gate: the first token has influence on all that is said after it."""

    def shut(model: Any) -> str:
        ids = draw_input()
        changed = torch.cat([ids[:, :1].roll(1, 0), ids[:, 1:]], dim=1)
        moved = (model(ids)[:, 1:] - model(changed)[:, 1:]).abs().amax(dim=(0, 2))
        return (
            f"the first {what} changes nothing of what is said later" if moved.min() < 1e-4 else ""
        )

    return shut


def batch_independence_gate(
    draw_input: Callable[[], Tensor], what: str
) -> Callable[[nn.Module], str]:
    """Return a gate that opens where an input's answer depends on no other.

    ``draw_input`` draws inputs; ``what`` is what a message calls one.
    """

    def shut(model: Any) -> str:
        x = draw_input()
        far = relative_difference(model(x)[:1], model(x[:1]))
        return difference_message(f"a {what} is answered otherwise beside others", far)

    return shut


def no_batch_axis_gate(draw_input: Callable[[], Tensor], what: str) -> Callable[[nn.Module], str]:
    """Return a gate that opens where an input alone has the same answer.

    ``draw_input`` draws inputs; ``what`` is what a message calls one.
    """

    def shut(model: Any) -> str:
        x = draw_input()
        return difference_message(f"a {what} without a batch axis is answered otherwise",
                     relative_difference(model(x)[0], model(x[0])))  # fmt: skip

    return shut
