"""Chapter 21: wrong lines for right answers."""

COLUMN = "column = sink[:, None, None].expand(*scores.shape[:-1], 1)"
LAST = "return torch.cat([scores, column], dim=-1).softmax(-1)[..., :-1]"
WRONG_LINES: dict[str, tuple[tuple[str, str], ...]] = {
    "today.sink_softmax": (
        (LAST, "return torch.cat([scores, column], dim=-1).softmax(-1)[..., 1:]"),
        (LAST, "return torch.cat([scores, column], dim=-2).softmax(-1)[..., :-1, :]"),
        (LAST, "return torch.cat([scores, column], dim=-1).softmax(-2)[..., :-1]"),
        (LAST, "return torch.cat([scores, column], dim=-1)[..., :-1].softmax(-1)"),
        (COLUMN, "column = torch.zeros(*scores.shape[:-1], 1, dtype=scores.dtype)"),
        (COLUMN, "column = sink[:, None, None].exp().expand(*scores.shape[:-1], 1)"),
    ),
}
