"""Chapter 15: wrong lines for right answers."""

WRONG_LINES: dict[str, tuple[tuple[str, str], ...]] = {
    "vision.patchify": (
        ("x = x.movedim((-4, -2), (-5, -4))", "x = x.movedim((-2, -4), (-5, -4))"),
        ("for r in range(0, H, patch)", "for r in range(0, H - patch + 1)"),
        (
            "images[..., r : r + patch, s : s + patch].reshape(*batch, -1)",
            "images[..., r : r + patch, s : s + patch].mT.reshape(*batch, -1)",
        ),
        ("return torch.stack(rows, dim=-2)", "return torch.stack(rows, dim=-1)"),
        (
            "images[..., r : r + patch, s : s + patch].reshape(*batch, -1)",
            "images[..., r : r + patch, s : s + patch].movedim(-3, -1).reshape(*batch, -1)",
        ),
    ),
    "vision.attention_on_image": (
        ("shares = weights[..., 1:]", "shares = weights[..., :-1]"),
        (
            "shares = shares / shares.sum(dim=-1, keepdim=True)",
            "shares = shares / shares.amax(dim=-1, keepdim=True)",
        ),
        ("shares = shares / shares.sum(dim=-1, keepdim=True)", "shares = shares / shares.sum()"),
        ("shares = shares / shares.sum(dim=-1, keepdim=True)", "shares = shares.softmax(dim=-1)"),
        (
            "return shares.reshape(*weights.shape[:-1], height, width)",
            "return shares.reshape(*weights.shape[:-1], height, width).flip(-2)",
        ),
    ),
    "vision.window_partition": (
        ("x = x.transpose(-4, -3)", "x = x.movedim((-3, -5), (-5, -4))"),
        ("for r in range(0, H, window)", "for r in range(0, H - window + 1)"),
        ("x = x.transpose(-4, -3)", "x = x.transpose(2, 3)"),
        (
            "return x.reshape(*batch, -1, window * window, d)",
            "return x.reshape(-1, window * window, d)",
        ),
        (
            "x = x.reshape(*batch, H // window, window, W // window, window, d)",
            "x = x.reshape(*batch, window, H // window, window, W // window, d)",
        ),
    ),
}
