"""Chapter 11: wrong lines for right answers."""

FREQUENCIES_LINE = "frequencies = base ** (-torch.arange(0, d, 2).double() / d)"
ANGLES_LINE = "angles = positions.double()[:, None] * frequencies"
COS_SIN_LINE = "cos, sin = (angles.cos().to(x.dtype), angles.sin().to(x.dtype))"
PAIRS_LINE = "a, b = (x[..., 0::2], x[..., 1::2])"
ROTATED_PAIRS_LINE = "return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten("
WRONG_LINES: dict[str, tuple[tuple[str, str], ...]] = {
    "positions.sinusoidal_encoding": (
        (
            "frequencies = base ** (-torch.arange(0, d, 2).double() / d)",
            "frequencies = base ** (torch.arange(0, d, 2).double() / d)",
        ),
        (
            "frequencies = base ** (-torch.arange(0, d, 2).double() / d)",
            "frequencies = base ** (-torch.arange(0, d, 2).double().flip(0) / d)",
        ),
        (
            "frequencies = base ** (-torch.arange(0, d, 2).double() / d)",
            "frequencies = base ** (-torch.arange(d // 2).double() / d)",
        ),
        (
            "angles = torch.arange(n)[:, None] * frequencies",
            "angles = -torch.arange(n)[:, None] * frequencies",
        ),
    ),
    "positions.apply_rope": (
        (FREQUENCIES_LINE, "frequencies = base ** (torch.arange(0, d, 2).double() / d)"),
        (FREQUENCIES_LINE, "frequencies = base ** (-torch.arange(2, d + 2, 2).double() / d)"),
        (FREQUENCIES_LINE, "frequencies = 10000.0 ** (-torch.arange(0, d, 2).double() / d)"),
        (FREQUENCIES_LINE, "frequencies = base ** -torch.arange(0, d, 2).double() / d"),
        (FREQUENCIES_LINE, "frequencies = base ** (-torch.arange(0, d, 2).double().flip(0) / d)"),
        (FREQUENCIES_LINE, "frequencies = base ** (-torch.arange(0, d, 2).double() / (d // 2))"),
        (ANGLES_LINE, "angles = -positions.double()[:, None] * frequencies"),
        (ANGLES_LINE, "angles = positions.abs().double()[:, None] * frequencies"),
        (ANGLES_LINE, "angles = positions.long().double()[:, None] * frequencies"),
        (ANGLES_LINE, "angles = torch.arange(len(positions)).double()[:, None] * frequencies"),
        (ANGLES_LINE, "angles = positions.float()[:, None] * frequencies.float()"),
        (COS_SIN_LINE, "cos, sin = (angles.sin().to(x.dtype), angles.cos().to(x.dtype))"),
        (PAIRS_LINE, "a, b = (x[..., : d // 2], x[..., d // 2 :])"),
        (
            ROTATED_PAIRS_LINE,
            ROTATED_PAIRS_LINE.replace("b * sin, a * sin", "b * sin, b * sin").replace(
                "+ b", "+ a"
            ),
        ),
        (
            ROTATED_PAIRS_LINE,
            "return torch.stack([a * cos + b * sin, b * cos - a * sin], dim=-1).flatten(",
        ),
        (
            ROTATED_PAIRS_LINE,
            "return torch.stack([a * cos + b * sin, a * sin + b * cos], dim=-1).flatten(",
        ),
        (
            ROTATED_PAIRS_LINE,
            "return torch.stack([a * cos + b * sin, a * sin - b * cos], dim=-1).flatten(",
        ),
        (
            ROTATED_PAIRS_LINE,
            "return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1).reshape(",
        ),
        ("if d % 2:", "if d < 2:"),
    ),
}
