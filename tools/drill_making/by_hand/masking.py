"""Chapter 10: wrong lines for right answers."""

WRONG_LINES: dict[str, tuple[tuple[str, str], ...]] = {
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
