"""Chapter 10: right answers in steps, and wrong lines for them."""

import torch


def padding_by_comparing(lengths, max_length):
    positions = torch.arange(max_length)
    ends = lengths.unsqueeze(-1)
    allowed = positions < ends
    return allowed.unsqueeze(-2)


RIGHT_ANSWERS = {"masking.padding_mask": [padding_by_comparing]}
WRONG_LINES: dict[str, tuple[tuple[str, str], ...]] = {
    "masking.causal_mask": (
        ("queries = torch.arange(n_keys - n_queries, n_keys)", "queries = torch.arange(n_queries)"),
        ("offset = n_keys - n_queries", "offset = 0"),
        (
            "np.tri(n_queries, n_keys, n_keys - n_queries).astype(bool)",
            "np.tri(n_queries, n_keys).astype(bool)",
        ),
    ),
    "masking.padding_mask": (
        ("allowed = positions < ends", "allowed = positions <= ends"),
        ("allowed = positions < ends", "allowed = positions >= max_length - ends"),
        ("allowed = positions < ends", "allowed = positions >= ends"),
        ("positions = torch.arange(max_length)", "positions = torch.arange(1, max_length + 1)"),
        ("positions = torch.arange(max_length)", "positions = torch.arange(int(lengths.max()))"),
        ("ends = lengths.unsqueeze(-1)", "ends = lengths.sort().values.unsqueeze(-1)"),
        ("return allowed.unsqueeze(-2)", "return allowed.unsqueeze(1)"),
        (
            "return allowed.unsqueeze(-2)",
            "return torch.where(allowed, 0.0, -torch.inf).unsqueeze(-2)",
        ),
        ("row[:, :length] = True", "row[:, : length + 1] = True"),
        ("row[:, :length] = True", "row[:, : lengths.max()] = True"),
        ("row[:, :length] = True", "row[:, 1:length] = True"),
        ("row[:, :length] = True", "row[:, max_length - length :] = True"),
        ("[j < length for j in range(max_length)]", "[0 < j < length for j in range(max_length)]"),
        ("[j < length for j in range(max_length)]", "[j <= length for j in range(max_length)]"),
    ),
    "masking.leak": (
        ("worst = max(worst, seen.max().item())", "worst = max(worst, seen.mean().item())"),
        ("worst = max(worst, seen.max().item())", "worst = max(worst, seen.sum().item())"),
        ("worst = max(worst, seen.max().item())", "worst = seen.max().item()"),
        ("for i in range(out.shape[-2]):", "for i in range(1):"),
        ("for i in range(out.shape[-2]):", "for i in range(out.shape[-2] - 1, out.shape[-2]):"),
        (
            "seen = gradient.abs().masked_fill(allowed[..., i, :, None], 0)",
            "seen = gradient.abs().masked_fill(allowed[..., 0, :, None], 0)",
        ),
        ("out = f(x)", "out = f(torch.zeros_like(x) + 0 * x)"),
        (
            "out[..., i, a].sum(), x, retain_graph=True",
            "out[..., i, a].mean(), x, retain_graph=True",
        ),
        ("out[..., i, a].sum(), x, retain_graph=True", "out.sum(), x, retain_graph=True"),
        ("return float(found.max()) if len(found) else 0.0", "return float(found.max())"),
        (
            "return float(found.max()) if len(found) else 0.0",
            "return float(found.mean()) if len(found) else 0.0",
        ),
        (
            "out[..., i, a].sum().backward(retain_graph=True)",
            "out.sum().backward(retain_graph=True)",
        ),
        (
            "out[..., i, a].sum().backward(retain_graph=True)",
            "out[..., i, a].mean().backward(retain_graph=True)",
        ),
        ("x = x.detach().clone().requires_grad_()", "x = torch.zeros_like(x).requires_grad_()"),
        ("x = x.detach().clone().requires_grad_()", "x = torch.ones_like(x).requires_grad_()"),
        ("return worst", "return worst > 0"),
        ("direction[..., j, c] = 1", "direction[..., j, :] = 1"),
    ),
}
