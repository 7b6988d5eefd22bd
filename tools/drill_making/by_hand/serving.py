"""Chapter 20: wrong lines for right answers."""

LAST = "return (ids, positions.clamp(min=0), causal_mask(n) & real[:, None, :])"
WRONG_LINES: dict[str, tuple[tuple[str, str], ...]] = {
    "serving.pad_left": (
        ("real = positions >= 0", "real = positions > 0"),
        ("real = positions >= 0", "real = ids != pad"),
        (LAST, "return (ids, positions.clamp(min=0), causal_mask(n) & real[0])"),
        (LAST, "return (ids, positions.clamp(min=0), real[:, None, :].expand(-1, n, -1))"),
        (LAST, "return (ids, positions.clamp(min=0), causal_mask(n).expand(len(ids), n, n))"),
        (LAST, "return (ids, positions, causal_mask(n) & real[:, None, :])"),
        (LAST, "return (ids, positions.abs(), causal_mask(n) & real[:, None, :])"),
        (LAST, "return (ids, positions.clamp(min=0), causal_mask(n).mT & real[:, None, :])"),
        (LAST, "return (ids, positions.clamp(min=0), ~(causal_mask(n) & real[:, None, :]))"),
        (
            "positions = torch.arange(n) - (n - lengths)[:, None]",
            "positions = torch.arange(n) - (n - lengths)[:, None] + 1",
        ),
        ("n = int(lengths.max())", "n = int(lengths.max()) + 1"),
        ("start = n - len(row)", "start = 0"),
        ("mask[i, start + j, start : start + j + 1] = True", "mask[i, start + j, start:] = True"),
        (
            "mask[i, start + j, start : start + j + 1] = True",
            "mask[i, start + j, start : start + j] = True",
        ),
        (
            "mask[i, start + j, start : start + j + 1] = True",
            "mask[i, start + j, : start + j + 1] = True",
        ),
    ),
}
