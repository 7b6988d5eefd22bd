"""Chapter 14: right answers in steps, and wrong lines for them."""

CHANGED_LINE = "changed = copy.deepcopy(model)"
LAYER_LINE = "attention = changed.blocks[layer].attention"
HEAD_SLICE_LINE = "own = slice(head * d_head, (head + 1) * d_head)"
MEAN_LINE = "mean = seen[0][..., own].flatten(0, -2).mean(dim=0)"
MEAN_OUTPUT_LINE = "said = W_o.weight[:, own] @ mean"
ZEROED_COLUMNS_LINE = "W_o.weight[:, own] = 0"
MOVED_BIAS_LINE = "said if W_o.bias is None else W_o.bias + said"
SHIFTED_PATTERN_LINE = "pattern[:, 1:] = same[:, :-1]"
EQUAL_TOKENS_LINE = "pattern[i, j] = ids[j - 1] == ids[i]"
WRONG_LINES: dict[str, tuple[tuple[str, str], ...]] = {
    "interpret.induction_pattern": (
        (SHIFTED_PATTERN_LINE, "pattern[:, :-1] = same[:, 1:]"),
        (SHIFTED_PATTERN_LINE, "pattern[:, 2:] = same[:, :-2]"),
        (SHIFTED_PATTERN_LINE, "pattern[1:, 1:] = same[:-1, :-1]"),
        (EQUAL_TOKENS_LINE, "pattern[i, j] = ids[j - 1] == ids[i - 1]"),
        (EQUAL_TOKENS_LINE, "pattern[i, j] = ids[j - 1] != ids[i]"),
        (EQUAL_TOKENS_LINE, "pattern[i, j] = ids[j - 2] == ids[i]"),
        (
            "seen.setdefault(words[i - 1], set()).add(i)",
            "seen[words[i - 1]] = {i}",
        ),
        (
            "came_after.setdefault(int(ids[i - 1]), set()).add(i)",
            "came_after.setdefault(int(ids[i - 1]), {i})",
        ),
    ),
    "interpret.ablate": (
        (ZEROED_COLUMNS_LINE, "W_o.weight[own] = 0"),
        (ZEROED_COLUMNS_LINE, "W_o.weight[:] = 0"),
        (ZEROED_COLUMNS_LINE, "W_o.weight[:, own] *= 1 / 2"),
        (ZEROED_COLUMNS_LINE, "attention.W_v.weight[own] = 0"),
        (ZEROED_COLUMNS_LINE, "attention.W_q.weight[own] = 0"),
        (CHANGED_LINE, "changed = model"),
        (CHANGED_LINE, "changed = copy.copy(model)"),
        (LAYER_LINE, "attention = changed.blocks[-1].attention"),
        (LAYER_LINE, "attention = changed.blocks[layer - 1].attention"),
        (LAYER_LINE, "attention = changed.blocks[head].attention"),
        (HEAD_SLICE_LINE, "own = slice(head, None, attention.n_heads)"),
        (HEAD_SLICE_LINE, "own = slice(head * d_head, head * d_head + attention.n_heads)"),
        (HEAD_SLICE_LINE, "own = slice((head + 1) * d_head, (head + 2) * d_head)"),
        (HEAD_SLICE_LINE, "own = slice((head - 1) * d_head, head * d_head)"),
        (HEAD_SLICE_LINE, "own = slice(head, head + 1)"),
        (HEAD_SLICE_LINE, "own = slice(0, (head + 1) * d_head)"),
        (MEAN_LINE, "mean = seen[0][..., own].mean(dim=-2)[0]"),
        (MEAN_LINE, "mean = seen[0][0, ..., own].mean(dim=0)"),
        (MEAN_LINE, "mean = seen[0][..., own].flatten(0, -2)[-1]"),
        (MEAN_LINE, "mean = seen[0][..., own].flatten(0, -2).sum(dim=0)"),
        (MEAN_LINE, "mean = seen[0][..., own].flatten(0, -2).median(dim=0).values"),
        (MEAN_OUTPUT_LINE, "said = W_o.weight[own] @ mean"),
        (MEAN_OUTPUT_LINE, "said = W_o.weight[:, own].sum(dim=1) * mean.mean()"),
        (MOVED_BIAS_LINE, "said if W_o.bias is None else W_o.bias"),
        ('if how == "mean":', 'if how != "mean":'),
        ('if how == "mean":', 'if how == "average":'),
    ),
}
