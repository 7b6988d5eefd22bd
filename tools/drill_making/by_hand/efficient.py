"""Chapter 17: right answers in steps, and wrong lines for them."""

NEW_MAXIMUM_LINE = "larger = torch.maximum(maximum, scores.amax(-1, keepdim=True))"
FINITE_MAXIMUM_LINE = "seen = larger.masked_fill(larger == -math.inf, 0)"
BLOCK_SUM_LINE = "new = (scores - seen).exp().sum(-1, keepdim=True)"
RESCALED_SUM_LINE = "normaliser = normaliser * (maximum - seen).exp() + new"
TILE_SUM_LINE = "normaliser = normaliser * shrink + weights.sum(-1, keepdim=True)"
TILE_TOTAL_LINE = "total = total * shrink + weights @ value[..., j : j + block, :]"
TILE_WEIGHTS_LINE = "weights, shrink = ((scores - seen).exp(), (maximum - seen).exp())"
TILE_MASK_LINE = "~mask[..., i : i + block, j : j + block], -math.inf"
TILE_QUERY_LINE = "q = query[..., i : i + block, :] / math.sqrt(query.shape[-1])"
WRONG_LINES: dict[str, tuple[tuple[str, str], ...]] = {
    "efficient.online_softmax": (
        (RESCALED_SUM_LINE, "normaliser = normaliser + new"),
        (RESCALED_SUM_LINE, "normaliser = normaliser * (seen - maximum).exp() + new"),
        (RESCALED_SUM_LINE, "normaliser = (normaliser + new) * (maximum - seen).exp()"),
        (RESCALED_SUM_LINE, "normaliser = normaliser + new * (maximum - seen).exp()"),
        (RESCALED_SUM_LINE, "normaliser = new"),
        (FINITE_MAXIMUM_LINE, "seen = larger"),
        (FINITE_MAXIMUM_LINE, "seen = maximum.masked_fill(maximum == -math.inf, 0)"),
        (FINITE_MAXIMUM_LINE, "seen = larger.clamp(min=0)"),
        (
            BLOCK_SUM_LINE,
            "new = (scores - scores.amax(-1, keepdim=True)).exp().sum(-1, keepdim=True)",
        ),
        (BLOCK_SUM_LINE, "new = scores.exp().sum(-1, keepdim=True)"),
        (BLOCK_SUM_LINE, "new = (scores - seen).exp().mean(-1, keepdim=True)"),
        (BLOCK_SUM_LINE, "new = (scores - seen).float().exp().sum(-1, keepdim=True)"),
        (NEW_MAXIMUM_LINE, "larger = scores.amax(-1, keepdim=True)"),
        (NEW_MAXIMUM_LINE, "larger = torch.maximum(maximum, scores.amax())"),
        (NEW_MAXIMUM_LINE, "larger = torch.minimum(maximum, scores.amin(-1, keepdim=True))"),
        ("maximum = torch.full_like(scores[..., :1], -math.inf)", "maximum = scores[..., :1] * 0"),
        (
            "maximum = torch.full_like(scores[..., :1], -math.inf)",
            "maximum = torch.full_like(scores[..., :1], -100.0)",
        ),
        ("normaliser = torch.zeros_like(maximum)", "normaliser = torch.ones_like(maximum)"),
        ("return (maximum, normaliser)", "return (maximum, normaliser.log())"),
        ("return (maximum, normaliser)", "return (normaliser, maximum)"),
        ("return (maximum, normaliser)", "return (seen, normaliser)"),
        ("z = z * torch.exp(m - safe) + z2 * torch.exp(m2 - safe)", "z = z + z2"),
        (
            "z = z * torch.exp(m - safe) + z2 * torch.exp(m2 - safe)",
            "z = z + z2 * torch.exp(m2 - safe)",
        ),
        (
            "z = z * torch.exp(m - safe) + z2 * torch.exp(m2 - safe)",
            "z = z * torch.exp(m - safe) + z2",
        ),
        ("m = m3", "m = m2"),
        ("m3 = torch.maximum(m, m2)", "m3 = torch.minimum(m, m2)"),
    ),
    "efficient.tiled_attention": (
        (TILE_QUERY_LINE, "q = query[..., i : i + block, :]"),
        (TILE_QUERY_LINE, "q = query[..., i : i + block, :] / query.shape[-1]"),
        (TILE_QUERY_LINE, "q = query[..., i : i + block, :] / math.sqrt(value.shape[-1])"),
        (TILE_MASK_LINE, "mask[..., i : i + block, j : j + block], -math.inf"),
        (TILE_MASK_LINE, "~mask[..., :block, :block], -math.inf"),
        (TILE_MASK_LINE, "~mask[..., i : i + block, j : j + block], 0"),
        (TILE_MASK_LINE, "~mask[..., i : i + block, j : j + block], -1"),
        (TILE_MASK_LINE, "~mask[..., j : j + block, i : i + block].mT, -math.inf"),
        (FINITE_MAXIMUM_LINE, "seen = larger"),
        (NEW_MAXIMUM_LINE, "larger = scores.amax(-1, keepdim=True)"),
        (NEW_MAXIMUM_LINE, "larger = torch.maximum(maximum, scores.amax())"),
        (TILE_SUM_LINE, "normaliser = normaliser + weights.sum(-1, keepdim=True)"),
        (TILE_SUM_LINE, "normaliser = (normaliser + weights.sum(-1, keepdim=True)) * shrink"),
        (TILE_TOTAL_LINE, "total = total + weights @ value[..., j : j + block, :]"),
        (TILE_TOTAL_LINE, "total = weights @ value[..., j : j + block, :]"),
        (TILE_TOTAL_LINE, "total = total * shrink + weights @ key[..., j : j + block, :]"),
        (TILE_WEIGHTS_LINE, "weights, shrink = ((scores - seen).exp(), (seen - maximum).exp())"),
        (TILE_WEIGHTS_LINE, "weights, shrink = (scores.softmax(dim=-1), (maximum - seen).exp())"),
        (TILE_WEIGHTS_LINE, "weights, shrink = ((scores - seen).exp(), 1.0)"),
        ("outputs.append(total / normaliser)", "outputs.append(total)"),
        ("outputs.append(total / normaliser)", "outputs.append(total / (normaliser + 1e-3))"),
        (
            "maximum = torch.full_like(q[..., :1], -math.inf)",
            "maximum = torch.zeros_like(q[..., :1])",
        ),
        ("return torch.cat(outputs, dim=-2)", "return torch.cat(outputs, dim=-1)"),
        (
            "for j in range(0, key.shape[-2], block):",
            "for j in range(0, key.shape[-2] - block, block):",
        ),
        ("for j in range(0, key.shape[-2], block):", "for j in range(0, i + block, block):"),
        (
            "for j in range(0, key.shape[-2], block):",
            "for j in range(0, key.shape[-2] // block * block, block):",
        ),
        (
            "for i in range(0, query.shape[-2], block):",
            "for i in range(0, query.shape[-2] // block * block, block):",
        ),
        (
            "total = total * (size - safe).exp() + mixed * (log - safe).exp()",
            "total = total + mixed",
        ),
        ("scores = query @ key[..., part, :].mT * scale", "scores = query @ key[..., part, :].mT"),
        (
            "scores = scores.masked_fill(~mask[..., part], -math.inf)",
            "scores = scores.masked_fill(~mask[..., : scores.shape[-1]], -math.inf)",
        ),
    ),
}
