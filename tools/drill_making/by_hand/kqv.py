"""Chapter 5: right answers in steps, and wrong lines for them."""

import torch


def scores_by_pairs(query, key):
    m, n = query.shape[-2], key.shape[-2]
    batch = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2])
    scores = torch.zeros(*batch, m, n, dtype=query.dtype)
    for i in range(m):
        for j in range(n):
            product = query[..., i, :] * key[..., j, :]
            scores[..., i, j] = product.sum(dim=-1)
    return scores


def scores_by_axes(query, key):
    queries = query[..., :, None, :]
    keys = key[..., None, :, :]
    products = queries * keys
    return products.sum(dim=-1)


def scores_in_order(query, key):
    axes = list(range(key.ndim))
    axes[-2], axes[-1] = axes[-1], axes[-2]
    turned = key.permute(axes)
    return torch.matmul(query, turned)


RIGHT_ANSWERS = {"kqv.attention_scores": [scores_by_pairs, scores_by_axes, scores_in_order]}
SCALE_LINE = "query.shape[-1] ** 0.5"
SCORES_WRONG_LINES = (
    ("product = query[..., i, :] * key[..., j, :]", "product = query[..., i, :] * key[..., i, :]"),
    (
        "product = query[..., i, :] * key[..., j, :]",
        "product = (query[..., i, :] - key[..., j, :]) ** 2",
    ),
    (
        "scores[..., i, j] = product.sum(dim=-1)",
        f"scores[..., i, j] = product.sum(dim=-1) / {SCALE_LINE}",
    ),
    ("scores[..., i, j] = product.sum(dim=-1)", "scores[..., i, j] = product.sum(dim=-1).tanh()"),
    ("scores[..., i, j] = product.sum(dim=-1)", "scores[..., j, i] = product.sum(dim=-1)"),
    ("scores[..., i, j] = product.sum(dim=-1)", "scores[..., i, j] = product.sum()"),
    ("return scores", "return scores.softmax(dim=-1)"),
    ("return scores", "return torch.tanh(scores)"),
    ("return scores", f"return scores / {SCALE_LINE}"),
    ("return scores", "return scores.mT"),
    ("queries = query[..., :, None, :]", "queries = query[..., None, :, :]"),
    ("keys = key[..., None, :, :]", "keys = key[..., :, None, :]"),
    ("products = queries * keys", "products = (queries - keys) ** 2"),
    ("products = queries * keys", "products = queries * keys.flip(-1)"),
    ("return products.sum(dim=-1)", "return products.sum(dim=-2)"),
    ("return products.sum(dim=-1)", "return products.sum(dim=-3)"),
    ("return products.sum(dim=-1)", "return products"),
    ("return products.sum(dim=-1)", "return torch.cosine_similarity(queries, keys, dim=-1)"),
    ("return products.sum(dim=-1)", f"return products.sum(dim=-1) / {SCALE_LINE}"),
    ("return products.sum(dim=-1)", "return products.sum(dim=-1).softmax(dim=-1)"),
    ("return products.sum(dim=-1)", "return products.sum(dim=-1).tanh()"),
    ("return products.sum(dim=-1)", "return products.sum(dim=-1).sigmoid()"),
    ("axes[-2], axes[-1] = (axes[-1], axes[-2])", "axes[0], axes[1] = (axes[1], axes[0])"),
    ("axes[-2], axes[-1] = (axes[-1], axes[-2])", "axes[1], axes[2] = (axes[2], axes[1])"),
    ("axes[-2], axes[-1] = (axes[-1], axes[-2])", "axes.reverse()"),
    (
        "turned = key.permute(axes)",
        "turned = key.reshape(*key.shape[:-2], key.shape[-1], key.shape[-2])",
    ),
    ("turned = key.permute(axes)", "turned = key"),
    ("return torch.matmul(query, turned)", "return torch.matmul(turned, query)"),
    ("return torch.matmul(query, turned)", f"return torch.matmul(query, turned) / {SCALE_LINE}"),
    ("return torch.matmul(query, turned)", "return torch.matmul(query, turned).softmax(dim=-1)"),
)
WRONG_LINES: dict[str, tuple[tuple[str, str], ...]] = {"kqv.attention_scores": SCORES_WRONG_LINES}
