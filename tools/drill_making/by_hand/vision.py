"""Chapter 15: right answers in steps, and wrong lines for them."""

import torch


def windows_in_steps(x, window):
    *batch, H, W, d = x.shape
    if H % window or W % window:
        raise ValueError(f"a window of {window} does not divide {H} × {W} tokens")
    windows = []
    for r in range(0, H, window):
        for s in range(0, W, window):
            tokens = x[..., r : r + window, s : s + window, :]
            windows.append(tokens.reshape(*batch, window * window, d))
    return torch.stack(windows, dim=-3)


RIGHT_ANSWERS = {"vision.window_partition": [windows_in_steps]}
WRONG_LINES: dict[str, tuple[tuple[str, str], ...]] = {
    "vision.unpatchify": (
        ("r, s = divmod(i, width // patch)", "s, r = divmod(i, height // patch)"),
        ("r, s = divmod(i, width // patch)", "r, s = divmod(i, height // patch)"),
        ("r, s = divmod(i, width // patch)", "r, s = divmod(i, round(n**0.5))"),
        (
            "one = patches[..., i, :].reshape(*batch, -1, patch, patch)",
            "one = patches[..., i, :].reshape(*batch, patch, patch, -1).movedim(-1, -3)",
        ),
        (
            "rows, columns = (height // patch, width // patch)",
            "columns, rows = (height // patch, width // patch)",
        ),
        (
            "blocks = patches.unflatten(-1, (-1, patch, patch))",
            "blocks = patches.unflatten(-1, (-1, patch, patch)).mT",
        ),
        (
            "for row in blocks.split(width // patch, dim=-4):",
            "for row in blocks.split(height // patch, dim=-4):",
        ),
        ("return torch.cat(tall, dim=-2)", "return torch.cat(tall, dim=-2).movedim(-3, -1)"),
    ),
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
        (
            "windows.append(tokens.reshape(*batch, window * window, d))",
            "windows.append(tokens.transpose(-3, -2).reshape(*batch, window * window, d))",
        ),
        ("for s in range(0, W, window):", "for s in range(0, H, window):"),
        ("return torch.stack(windows, dim=-3)", "return torch.stack(windows, dim=1)"),
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
