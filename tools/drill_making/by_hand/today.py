"""Chapter 21: wrong lines for right answers."""

SINK_COLUMN_LINE = "column = sink[:, None, None].expand(*scores.shape[:-1], 1)"
SINK_WEIGHTS_LINE = "return torch.cat([scores, column], dim=-1).softmax(-1)[..., :-1]"
WRONG_LINES: dict[str, tuple[tuple[str, str], ...]] = {
    "today.sink_softmax": (
        (
            "weights.sum(-1, keepdim=True) + torch.exp(sink[:, None, None] - top)",
            "weights.sum(-1, keepdim=True) + torch.exp(sink[:, None, None])",
        ),
        (
            "weights.sum(-1, keepdim=True) + torch.exp(sink[:, None, None] - top)",
            "weights.sum(-1, keepdim=True) + (sink[:, None, None] - top)",
        ),
        (
            "scores.logsumexp(-1, keepdim=True), sink[..., None, None]",
            "scores.logsumexp(-2, keepdim=True), sink[..., None, None]",
        ),
        ("heads = []", "heads = [torch.zeros_like(scores[..., 0, :, :])]"),
        ("weights = (head - top).exp()", "weights = head - top"),
        ("kept = weights[..., :-1] * mask", "kept = weights[..., :-1] * ~mask"),
        (
            "return kept / (kept.sum(-1, keepdim=True) + weights[..., -1:])",
            "return kept / kept.sum(-1, keepdim=True)",
        ),
        ("return kept / (kept.sum(-1, keepdim=True) + weights[..., -1:])", "return kept"),
        (SINK_WEIGHTS_LINE, "return torch.cat([scores, column], dim=-1).softmax(-1)[..., 1:]"),
        (SINK_WEIGHTS_LINE, "return torch.cat([scores, column], dim=-2).softmax(-1)[..., :-1, :]"),
        (SINK_WEIGHTS_LINE, "return torch.cat([scores, column], dim=-1).softmax(-2)[..., :-1]"),
        (SINK_WEIGHTS_LINE, "return torch.cat([scores, column], dim=-1)[..., :-1].softmax(-1)"),
        (SINK_COLUMN_LINE, "column = torch.zeros(*scores.shape[:-1], 1, dtype=scores.dtype)"),
        (SINK_COLUMN_LINE, "column = sink[:, None, None].exp().expand(*scores.shape[:-1], 1)"),
    ),
}
