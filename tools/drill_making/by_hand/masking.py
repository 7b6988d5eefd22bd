"""Chapter 10: right answers in steps, and wrong lines for them."""

import torch


def padding_by_comparing(lengths, max_length):
    positions = torch.arange(max_length)
    ends = lengths.unsqueeze(-1)
    allowed = positions < ends
    return allowed.unsqueeze(-2)


RIGHT = {"masking.padding_mask": [padding_by_comparing]}
WRONG_LINES: dict[str, tuple[tuple[str, str], ...]] = {
    "masking.padding_mask": (
        ("allowed = positions < ends", "allowed = positions <= ends"),
        ("allowed = positions < ends", "allowed = positions >= max_length - ends"),
        ("allowed = positions < ends", "allowed = positions >= ends"),
        ("positions = torch.arange(max_length)", "positions = torch.arange(1, max_length + 1)"),
        ("positions = torch.arange(max_length)", "positions = torch.arange(int(lengths.max()))"),
        ("ends = lengths.unsqueeze(-1)", "ends = lengths.sort().values.unsqueeze(-1)"),
        ("return allowed.unsqueeze(-2)", "return allowed.unsqueeze(1)"),
    ),
    "masking.leak": (
        ("worst = max(worst, seen.max().item())", "worst = max(worst, seen.mean().item())"),
        ("worst = max(worst, seen.max().item())", "worst = max(worst, seen.sum().item())"),
        ("worst = max(worst, seen.max().item())", "worst = seen.max().item()"),
        ("for i in range(out.shape[-2]):", "for i in range(1):"),
        ("for i in range(out.shape[-2]):", "for i in range(out.shape[-2] - 1, out.shape[-2]):"),
        (
            "seen = gradient.abs().masked_fill(allowed[..., i, :, None], 0)",
            "seen = gradient.abs().masked_fill(allowed[..., 0, :, None], 0)",
        ),
        ("out = f(x)", "out = f(torch.zeros_like(x) + 0 * x)"),
    ),
}
