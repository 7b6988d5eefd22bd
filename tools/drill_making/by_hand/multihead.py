"""Chapter 9: right answers in steps, and wrong lines for them."""

import math

import torch
from torch import nn


def split_by_slices(x, n_heads):
    *batch, n, d = x.shape
    if d % n_heads:
        raise ValueError(f"{n_heads} heads do not divide {d}")
    width = d // n_heads
    heads = torch.empty(*batch, n_heads, n, width, dtype=x.dtype)
    for h in range(n_heads):
        heads[..., h, :, :] = x[..., h * width : (h + 1) * width]
    return heads


def split_in_two_steps(x, n_heads):
    *batch, n, d = x.shape
    width, rest = divmod(d, n_heads)
    if rest:
        raise ValueError(f"{n_heads} heads do not divide {d}")
    parts = x.reshape(*batch, n, n_heads, width)
    return parts.transpose(-3, -2)


def split_by_chunks(x, n_heads):
    if x.shape[-1] % n_heads != 0:
        raise ValueError("the heads do not divide the features")
    width = x.shape[-1] // n_heads
    parts = x.split(width, dim=-1)
    return torch.stack(parts, dim=-3)


def merge_by_axes(x):
    *batch, h, n, d_head = x.shape
    by_token = x.transpose(-3, -2)
    return by_token.reshape(*batch, n, h * d_head)


def merge_by_heads(x):
    h = x.shape[-3]
    parts = []
    for i in range(h):
        parts.append(x[..., i, :, :])
    return torch.cat(parts, dim=-1)


def merge_by_token(x):
    *batch, h, n, d_head = x.shape
    rows = []
    for i in range(n):
        token = x[..., :, i, :]
        rows.append(token.reshape(*batch, h * d_head))
    return torch.stack(rows, dim=-2)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, bias=True):
        super().__init__()
        self.n_heads = n_heads
        self.W_q = nn.Linear(d_model, d_model, bias=bias)
        self.W_k = nn.Linear(d_model, d_model, bias=bias)
        self.W_v = nn.Linear(d_model, d_model, bias=bias)
        self.W_o = nn.Linear(d_model, d_model, bias=bias)

    def forward(self, x):
        layers = (self.W_q, self.W_k, self.W_v)
        q, k, v = (split_in_two_steps(layer(x), self.n_heads) for layer in layers)
        mixed = (q @ k.mT / math.sqrt(q.shape[-1])).softmax(dim=-1) @ v
        return self.W_o(merge_by_axes(mixed))


def batched_in_steps(naive):
    n_heads = len(naive.heads)
    bias = naive.W_o.bias is not None
    batched = MultiHeadAttention(naive.W_o.in_features, n_heads, bias=bias)
    with torch.no_grad():
        for name in ("W_q", "W_k", "W_v"):
            layers = [getattr(head, name) for head in naive.heads]
            target = getattr(batched, name)
            target.weight.copy_(torch.cat([layer.weight for layer in layers]))
            if bias:
                target.bias.copy_(torch.cat([layer.bias for layer in layers]))
    batched.W_o.load_state_dict(naive.W_o.state_dict())
    return batched


RIGHT_ANSWERS = {
    "multihead.naive_to_batched": [batched_in_steps],
    "multihead.split_heads": [split_by_slices, split_in_two_steps, split_by_chunks],
    "multihead.merge_heads": [merge_by_axes, merge_by_heads, merge_by_token],
}
WEIGHT_ROWS_LINE = "target.weight.copy_(torch.cat([layer.weight for layer in layers]))"
BIAS_ROWS_LINE = "target.bias.copy_(torch.cat([layer.bias for layer in layers]))"
HEAD_SLICES_LINE = "heads[..., h, :, :] = x[..., h * width : (h + 1) * width]"
HEAD_PARTS_LINE = "parts = x.reshape(*batch, n, n_heads, width)"
MERGED_HEADS_LINE = "return by_token.reshape(*batch, n, h * d_head)"
HEAD_LAYERS_LINE = "layers = [getattr(head, name) for head in naive.heads]"
OUTPUT_STATE_LINE = 'f"W_o.{part}": tensor for part, tensor in naive.W_o.state_dict().items()'
WRONG_LINES: dict[str, tuple[tuple[str, str], ...]] = {
    "multihead.split_heads": (
        (HEAD_SLICES_LINE, "heads[..., h, :, :] = x[..., h::n_heads]"),
        (
            "return x.reshape(*batch, n, n_heads, d // n_heads).transpose(-3, -2)",
            "return x.reshape(*batch, n, d // n_heads, n_heads).movedim(-1, -3)",
        ),
        (HEAD_SLICES_LINE, "heads[..., h, :, :] = x[..., :width]"),
        (HEAD_SLICES_LINE, "heads[..., h, :, :] = x[..., h : h + width]"),
        (HEAD_SLICES_LINE, "heads[..., h, :, :] = x[..., d - (h + 1) * width : d - h * width]"),
        ("for h in range(n_heads):", "for h in range(n_heads - 1):"),
        ("if d % n_heads:", "if n % n_heads:"),
        ("if d % n_heads:", "if n_heads % d:"),
        ("if d % n_heads:", "if n_heads > d:"),
        ("if d % n_heads:", "if d % 2:"),
        ("width = d // n_heads", "width = n_heads"),
        ("if rest:", "if rest > 1:"),
        ("if rest:", "if not width:"),
        ("width, rest = divmod(d, n_heads)", "width, rest = divmod(n_heads, d)"),
        ("width, rest = divmod(d, n_heads)", "width, rest = divmod(d, d // n_heads)"),
        (HEAD_PARTS_LINE, "parts = x.reshape(*batch, n, width, n_heads).mT"),
        (HEAD_PARTS_LINE, "parts = x.reshape(*batch, n_heads, n, width).transpose(-3, -2)"),
        (HEAD_PARTS_LINE, "parts = x.reshape(*batch, n, width, n_heads)"),
        ("return parts.transpose(-3, -2)", "return parts"),
        ("return parts.transpose(-3, -2)", "return parts.transpose(-2, -1)"),
        ("return parts.transpose(-3, -2)", "return parts.transpose(1, 2)"),
        ("return parts.transpose(-3, -2)", "return parts.reshape(*batch, n_heads, n, width)"),
        ("if x.shape[-1] % n_heads != 0:", "if x.shape[-2] % n_heads != 0:"),
        ("if x.shape[-1] % n_heads != 0:", "if x.shape[-1] < n_heads:"),
        ("parts = x.split(width, dim=-1)", "parts = x.split(n_heads, dim=-1)"),
        ("parts = x.split(width, dim=-1)", "parts = [x[..., h::n_heads] for h in range(n_heads)]"),
        ("return torch.stack(parts, dim=-3)", "return torch.stack(parts)"),
        ("return torch.stack(parts, dim=-3)", "return torch.stack(parts, dim=1)"),
        ("return torch.stack(parts, dim=-3)", "return torch.stack(parts, dim=-2)"),
        ("return torch.stack(parts, dim=-3)", "return parts"),
    ),
    "multihead.merge_heads": (
        ("by_token = x.transpose(-3, -2)", "by_token = x"),
        ("by_token = x.transpose(-3, -2)", "by_token = x.movedim(-3, -1)"),
        ("by_token = x.transpose(-3, -2)", "by_token = x.transpose(1, 2)"),
        ("by_token = x.transpose(-3, -2)", "by_token = x.transpose(0, 1)"),
        ("by_token = x.transpose(-3, -2)", "by_token = x.transpose(-2, -1)"),
        ("by_token = x.transpose(-3, -2)", "by_token = x.transpose(-3, -1)"),
        (MERGED_HEADS_LINE, "return by_token.view(*batch, n, h * d_head)"),
        (MERGED_HEADS_LINE, "return by_token.reshape(*batch, h, n * d_head)"),
        (MERGED_HEADS_LINE, "return by_token.mean(dim=-2)"),
        (MERGED_HEADS_LINE, "return by_token.mT.reshape(*batch, n, h * d_head)"),
        ("parts.append(x[..., i, :, :])", "parts.append(x[..., 0, :, :])"),
        ("parts.append(x[..., i, :, :])", "parts.append(x[i])"),
        ("parts.append(x[..., i, :, :])", "parts.append(x[:, i])"),
        ("return torch.cat(parts, dim=-1)", "return torch.cat(parts, dim=-2)"),
        ("return torch.cat(parts, dim=-1)", "return torch.stack(parts, dim=-1).flatten(-2)"),
        ("return torch.cat(parts, dim=-1)", "return torch.stack(parts).mean(dim=0)"),
        ("return torch.cat(parts, dim=-1)", "return sum(parts)"),
        ("token = x[..., :, i, :]", "token = x[..., :, i, :].mT"),
        ("token = x[..., :, i, :]", "token = x[..., :, i, :].flip(-2)"),
        ("return torch.stack(rows, dim=-2)", "return torch.stack(rows, dim=-1)"),
        ("return torch.stack(rows, dim=-2)", "return torch.stack(rows, dim=1)"),
        ("h = x.shape[-3]", "h = x.shape[0]"),
        ("h = x.shape[-3]", "h = x.shape[1]"),
        (
            "out[..., i * d_head : (i + 1) * d_head] = x[..., i, :, :]",
            "out[..., i::h] = x[..., i, :, :]",
        ),
    ),
    "multihead.naive_to_batched": (
        ("batched.W_o.load_state_dict(naive.W_o.state_dict())", "batched.W_o = naive.W_o"),
        ("n_heads = len(naive.heads)", "n_heads = naive.heads[0].W_q.out_features"),
        (
            WEIGHT_ROWS_LINE,
            "target.weight.copy_(torch.cat([layer.weight for layer in layers[::-1]]))",
        ),
        (WEIGHT_ROWS_LINE, "target.weight.copy_(sum(h.weight for h in layers).repeat(n_heads, 1))"),
        (
            WEIGHT_ROWS_LINE,
            "target.weight.copy_(torch.stack([h.weight for h in layers], dim=1).flatten(0, 1))",
        ),
        (BIAS_ROWS_LINE, "target.bias.copy_(torch.cat([layer.bias for layer in layers[::-1]]))"),
        (BIAS_ROWS_LINE, "target.bias.copy_(layers[0].bias.repeat(n_heads))"),
        ("target = getattr(batched, name)", 'target = getattr(batched, "W_v")'),
        (HEAD_LAYERS_LINE, 'layers = [getattr(head, "W_q") for head in naive.heads]'),
        (HEAD_LAYERS_LINE, "layers = [getattr(head, name) for head in naive.heads[::-1]]"),
        (HEAD_LAYERS_LINE, "layers = [getattr(naive.heads[0], name) for head in naive.heads]"),
        (HEAD_LAYERS_LINE, 'layers = [getattr(head, "W_k") for head in naive.heads]'),
        (
            OUTPUT_STATE_LINE,
            'f"W.{part}": tensor for part, tensor in naive.W_o.state_dict().items()',
        ),
        (
            "batched.load_state_dict(state, strict=False)",
            "batched.load_state_dict(state, strict=False, assign=True)",
        ),
        (
            "naive.W_o.in_features, len(naive.heads), bias=bias",
            "naive.W_o.in_features, naive.heads[0].W_q.out_features, bias=bias",
        ),
        (
            "[getattr(layer, part) for layer in layers]",
            "[getattr(layer, part) for layer in layers[::-1]]",
        ),
        (
            "[getattr(layer, part) for layer in layers]",
            "[getattr(layers[0], part) for layer in layers]",
        ),
        ('for name in ("W_q", "W_k", "W_v"):', 'for name in ("W_q", "W_k"):'),
        ('for name in ("W_q", "W_k", "W_v"):', 'for name in ("W_k", "W_v"):'),
        (
            'for part in ("weight", "bias") if bias else ("weight",):',
            'for part in ("weight",):',
        ),
        ("return batched", "return naive"),
        ("return batched", "return state"),
        ("return batched", "return MultiHeadAttention(*naive.W_o.weight.shape, bias=bias)"),
        ("batched.load_state_dict(state, strict=False)", "state = batched.state_dict()"),
        (
            "naive.W_o.in_features, len(naive.heads), bias=bias",
            "naive.W_o.in_features, 1, bias=bias",
        ),
        (
            "naive.W_o.in_features, len(naive.heads), bias=bias",
            "naive.W_o.in_features, len(naive.heads), bias=True",
        ),
        (
            "[getattr(layer, part) for layer in layers]",
            "[getattr(layer, part) / len(layers) for layer in layers]",
        ),
        (
            "[getattr(layer, part) for layer in layers]",
            "[getattr(layer, part).T for layer in layers]",
        ),
        ("bias = naive.W_o.bias is not None", "bias = False"),
        ("bias = naive.W_o.bias is not None", "bias = True"),
    ),
}
SPLIT_HEADS_LINE = "x = split_heads(x, self.n_kv_heads)"
REPEATED_HEADS_LINE = "return x.repeat_interleave(self.n_heads // self.n_kv_heads, dim=-3)"
HEAD_SCORES_LINE = "scores = q @ k.mT / math.sqrt(q.shape[-1])"
MASKED_SCORES_LINE = "scores = scores.masked_fill(~mask, -torch.inf)"
HEAD_WEIGHTS_LINE = "return scores.softmax(dim=-1)"
HEAD_MIXED_LINE = "mixed = self.weights(query, key, value, mask) @ self.heads_of("
DEFAULT_KEY_LINE = "key = query if key is None else key"
WRONG_LINES["multihead.MultiHeadAttention"] = (
    (HEAD_SCORES_LINE, "scores = q @ k.mT"),
    (HEAD_SCORES_LINE, "scores = q @ k.mT / q.shape[-1]"),
    (HEAD_SCORES_LINE, "scores = q @ k.mT / math.sqrt(query.shape[-1])"),
    (HEAD_SCORES_LINE, "scores = q @ k.mT / math.sqrt(k.shape[-2])"),
    (HEAD_SCORES_LINE, "scores = q @ k.mT * math.sqrt(q.shape[-1])"),
    (HEAD_WEIGHTS_LINE, "return scores.softmax(dim=-2)"),
    (HEAD_WEIGHTS_LINE, "return scores.softmax(dim=-3)"),
    (HEAD_WEIGHTS_LINE, "return scores.softmax(dim=1)"),
    (HEAD_WEIGHTS_LINE, "return scores.sigmoid()"),
    (HEAD_WEIGHTS_LINE, "return scores"),
    (HEAD_WEIGHTS_LINE, "return scores.softmax(dim=-1).mean(dim=-3, keepdim=True)"),
    (MASKED_SCORES_LINE, "scores = scores.masked_fill(mask, -torch.inf)"),
    (MASKED_SCORES_LINE, "scores = scores * mask"),
    (MASKED_SCORES_LINE, "scores = scores + mask"),
    (MASKED_SCORES_LINE, "scores = scores.masked_fill(~mask, 0)"),
    (MASKED_SCORES_LINE, "scores = scores.masked_fill(~mask, -1.0)"),
    (MASKED_SCORES_LINE, "scores = scores.masked_fill(~mask.mT, -torch.inf)"),
    ("if 2 < mask.ndim < scores.ndim:", "if mask.ndim < scores.ndim:"),
    ("if 2 < mask.ndim < scores.ndim:", "if mask.ndim > scores.ndim:"),
    ("mask = mask.unsqueeze(-3)", "mask = mask.unsqueeze(0)"),
    (REPEATED_HEADS_LINE, "return x.tile(self.n_heads // self.n_kv_heads, 1, 1)"),
    (REPEATED_HEADS_LINE, "return x[..., :1, :, :].expand(*x.shape[:-3], self.n_heads, -1, -1)"),
    (REPEATED_HEADS_LINE, "return x"),
    (SPLIT_HEADS_LINE, "x = x.reshape(*x.shape[:-2], self.n_kv_heads, x.shape[-2], -1)"),
    (HEAD_MIXED_LINE, "mixed = self.weights(query, key, value) @ self.heads_of("),
    ("value = key if value is None else value", "value = query if value is None else value"),
    ("value = key if value is None else value", "value = key"),
    ("return self.W_o(merge_heads(mixed))", "return merge_heads(mixed)"),
    ("return self.W_o(merge_heads(mixed))", "return query + self.W_o(merge_heads(mixed))"),
    ("return self.W_o(merge_heads(mixed))", "return self.W_o(mixed.mean(dim=-3))"),
    (
        "return self.W_o(merge_heads(mixed))",
        "return self.W_o(mixed.reshape(*query.shape[:-1], -1))",
    ),
    ("self.W_o = nn.Linear(d_model, d_model, bias=bias)", "self.W_o = nn.Linear(d_model, d_model)"),
    ("self.W_v = nn.Linear(d_model, d_kv, bias=bias)", "self.W_v = self.W_k"),
    ("if d_model % n_heads:", "if n_heads % d_model:"),
    ("if d_model % n_heads:", "if d_model < n_heads:"),
    ("self.W_v(value)", "self.W_k(value)"),
    ("self.W_v(value)", "value"),
    ("split_heads(self.W_q(query), self.n_heads),", "split_heads(query, self.n_heads),"),
    ("split_heads(self.W_q(query), self.n_heads),", "split_heads(self.W_k(query), self.n_heads),"),
)
