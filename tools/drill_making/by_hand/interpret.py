"""Chapter 14: right answers in steps, and wrong lines for them."""

CHANGED = "changed = copy.deepcopy(model)"
LAYER = "attention = changed.blocks[layer].attention"
OWN = "own = slice(head * d_head, (head + 1) * d_head)"
MEAN = "mean = seen[0][..., own].flatten(0, -2).mean(dim=0)"
SAID = "said = W_o.weight[:, own] @ mean"
SILENT = "W_o.weight[:, own] = 0"
BIAS = "said if W_o.bias is None else W_o.bias + said"
LATER = "pattern[:, 1:] = same[:, :-1]"
EQUAL = "pattern[i, j] = ids[j - 1] == ids[i]"
WRONG_LINES: dict[str, tuple[tuple[str, str], ...]] = {
    "interpret.induction_pattern": (
        (LATER, "pattern[:, :-1] = same[:, 1:]"),
        (LATER, "pattern[:, 2:] = same[:, :-2]"),
        (LATER, "pattern[1:, 1:] = same[:-1, :-1]"),
        (EQUAL, "pattern[i, j] = ids[j - 1] == ids[i - 1]"),
        (EQUAL, "pattern[i, j] = ids[j - 1] != ids[i]"),
        (EQUAL, "pattern[i, j] = ids[j - 2] == ids[i]"),
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
        (SILENT, "W_o.weight[own] = 0"),
        (SILENT, "W_o.weight[:] = 0"),
        (SILENT, "W_o.weight[:, own] *= 1 / 2"),
        (SILENT, "attention.W_v.weight[own] = 0"),
        (SILENT, "attention.W_q.weight[own] = 0"),
        (CHANGED, "changed = model"),
        (CHANGED, "changed = copy.copy(model)"),
        (LAYER, "attention = changed.blocks[-1].attention"),
        (LAYER, "attention = changed.blocks[layer - 1].attention"),
        (LAYER, "attention = changed.blocks[head].attention"),
        (OWN, "own = slice(head, None, attention.n_heads)"),
        (OWN, "own = slice(head * d_head, head * d_head + attention.n_heads)"),
        (OWN, "own = slice((head + 1) * d_head, (head + 2) * d_head)"),
        (OWN, "own = slice((head - 1) * d_head, head * d_head)"),
        (OWN, "own = slice(head, head + 1)"),
        (OWN, "own = slice(0, (head + 1) * d_head)"),
        (MEAN, "mean = seen[0][..., own].mean(dim=-2)[0]"),
        (MEAN, "mean = seen[0][0, ..., own].mean(dim=0)"),
        (MEAN, "mean = seen[0][..., own].flatten(0, -2)[-1]"),
        (MEAN, "mean = seen[0][..., own].flatten(0, -2).sum(dim=0)"),
        (MEAN, "mean = seen[0][..., own].flatten(0, -2).median(dim=0).values"),
        (SAID, "said = W_o.weight[own] @ mean"),
        (SAID, "said = W_o.weight[:, own].sum(dim=1) * mean.mean()"),
        (BIAS, "said if W_o.bias is None else W_o.bias"),
        ('if how == "mean":', 'if how != "mean":'),
        ('if how == "mean":', 'if how == "average":'),
    ),
}
