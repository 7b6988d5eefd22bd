"""Small cases of chapter 10: scores far from 0, three keys; two tokens that are mixed."""

import torch

from attncourse.checks import callers
from attncourse.checks.exercise import Case
from attncourse.checks.writing.modules import tensor


def masked_softmax_cases() -> list[Case]:
    """Return cases of ``masked_softmax``: allowed scores below a number put in the place of −∞."""
    mask = torch.tensor(((1, 0, 1), (1, 1, 0))).bool()
    return [
        Case((tensor(((-20000, 0, -20000), (-30000, -30001, 5))), mask)),
        Case((tensor(((-2e9, 0, -2e9), (-3e9, -3e9, 5))), mask)),
    ]


def leak_cases() -> list[Case]:
    """Return cases of ``leak``: f(x) = A x W of two tokens, of which one feature or two come."""
    A, W = tensor(((2, 3), (1, -4))), tensor(((1, 0), (2, -5)))
    single = tensor(((1, 2), (3, 4)))
    causal = torch.tensor(((1, 0), (1, 1))).bool()
    masks = (causal, causal.mT, torch.tensor(((1, 1), (1, 1))).bool())
    pair = torch.stack([single, single + 1])
    mask_of_each = torch.stack([causal, causal.mT])
    inputs = [(single, mask) for mask in masks]
    inputs += [(pair, mask) for mask in (causal, causal.mT, mask_of_each)]
    return [
        Case(
            ("linear_mix", x, mask),
            {"A": A, "W": W},
            use=callers.call_on_function,
            note="f(x) = A x W",
            shown="leak(f, x, mask)",
        )
        for x, mask in inputs
    ]


CASES = {"masking.masked_softmax": masked_softmax_cases, "masking.leak": leak_cases}
