"""Chapter 3: wrong lines for right answers."""

WRONG_LINES: dict[str, tuple[tuple[str, str], ...]] = {
    "lookup.soft_lookup": (
        (
            "z = np.asarray(query, np.float64) / temperature @ keys.swapaxes(-2, -1)",
            "z = np.asarray(query, np.float64) / temperature**2 @ keys.swapaxes(-2, -1)",
        ),
        ("e = np.exp(z - z.max(-1, keepdims=True))", "e = np.exp(z - z.max())"),
        ("e = np.exp(z - z.max(-1, keepdims=True))", "e = np.exp(z)"),
        ("e = np.exp(z - z.max(-1, keepdims=True))", "e = z - z.min(-1, keepdims=True)"),
        (
            "e = [math.exp((s - max(scores)) / temperature) for s in scores]",
            "e = [math.exp(s / temperature - max(scores)) for s in scores]",
        ),
    ),
}
