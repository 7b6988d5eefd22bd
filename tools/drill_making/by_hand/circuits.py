"""Chapter 19: right answers in steps, and wrong lines for them."""


def lens_in_steps(hidden, gain, table):
    mean_square = (hidden**2).mean(dim=-1, keepdim=True)
    length = (mean_square + 1e-5).sqrt()
    normed = hidden / length * gain
    return normed @ table.T


RIGHT_ANSWERS = {"circuits.logit_lens": [lens_in_steps]}
WRONG_LINES: dict[str, tuple[tuple[str, str], ...]] = {
    "circuits.cut_edges": (
        ("left[query, key] = False", "left[key, query] = False"),
        ("left[query, key] = False", "left[query] = False"),
        ("cut[..., query, key] = -math.inf", "cut[..., query, key] = 0"),
        ("cut[..., query, key] = -math.inf", "cut[..., query, key] = -100"),
        ("mask[..., query, key] = 0", "mask[..., key, query] = 0"),
    ),
    "circuits.logit_lens": (
        ("normed = hidden / length * gain", "normed = hidden / length + gain"),
        ("normed = hidden / length * gain", "normed = hidden * gain / length.mean()"),
        ("length = (mean_square + 1e-5).sqrt()", "length = mean_square + 1e-5"),
        (
            "mean_square = (hidden**2).mean(dim=-1, keepdim=True)",
            "mean_square = hidden.var(dim=-1, keepdim=True)",
        ),
        ("return normed @ table.T", "return (normed @ table.T).softmax(dim=-1)"),
        ("return normed @ table.T", "return normed @ (table / table.norm(dim=-1, keepdim=True)).T"),
        (
            "normed = hidden / length * gain",
            "normed = (hidden - hidden.mean(dim=-1, keepdim=True)) / length * gain",
        ),
        ("normed = hidden / length * gain", "normed = hidden / length"),
    ),
}
