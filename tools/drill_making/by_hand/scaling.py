"""Chapter 7: wrong lines for right answers."""

import torch


def jacobian_in_steps(p):
    n = p.shape[-1]
    outer = p[..., :, None] * p[..., None, :]
    diagonal = torch.zeros_like(outer)
    for i in range(n):
        diagonal[..., i, i] = p[..., i]
    return diagonal - outer


def entropy_in_steps(weights):
    is_zero = weights == 0
    logarithms = weights.masked_fill(is_zero, 1).log()
    terms = weights * logarithms
    return -terms.sum(dim=-1)


RIGHT = {
    "scaling.softmax_jacobian": [jacobian_in_steps],
    "scaling.attention_entropy": [entropy_in_steps],
}
QUERY = "query = torch.randn(n_samples, d_k, generator=generator)"
KEY = "key = torch.randn(n_samples, d_k, generator=generator)"
SCORES = "scores = (query * key).sum(dim=-1)"
RETURN = "return scores.var().item()"
WRONG_LINES: dict[str, tuple[tuple[str, str], ...]] = {
    "scaling.score_variance": (
        (RETURN, "return scores.std().item()"),
        (SCORES, "scores = (query * key).sum(dim=0)"),
        (KEY, "key = torch.randn(d_k, generator=generator)"),
        (QUERY, "query = torch.rand(n_samples, d_k, generator=generator)"),
        (RETURN, "return scores.mean().item()"),
        (SCORES, "scores = (query * key).mean(dim=-1)"),
        (
            "generator = torch.Generator().manual_seed(seed)",
            "generator = torch.Generator().manual_seed(0)",
        ),
        (RETURN, "return scores.square().sum().item()"),
        (SCORES, "scores = query @ key.mT"),
        (KEY, "key = query"),
        (KEY, "key = torch.randn(n_samples, d_k)"),
        (QUERY, "query = torch.randn(n_samples, d_k, generator=generator) / d_k**0.5"),
        (QUERY, "query = 2 * torch.rand(n_samples, d_k, generator=generator) - 1"),
        (KEY, "key = torch.randn(1, d_k, generator=generator)"),
        (RETURN, "return (scores**4).mean().item()"),
        (RETURN, "return scores.var()"),
        (RETURN, "return scores.square().var().item()"),
        (
            'return np.var(np.einsum("nd,nd->n", q, k))',
            'return np.mean(np.einsum("nd,nd->n", q, k))',
        ),
        (
            'return np.var(np.einsum("nd,nd->n", q, k))',
            'return np.var(np.einsum("nd,md->nm", q, k))',
        ),
        (
            'return np.var(np.einsum("nd,nd->n", q, k))',
            'return np.var(np.einsum("nd,nd->d", q, k))',
        ),
        (
            "k = np.random.RandomState(seed + 1).randn(d_k, n_samples)",
            "k = np.random.RandomState(seed).randn(d_k, n_samples)",
        ),
        (
            "k = np.random.RandomState(seed + 1).randn(d_k, n_samples)",
            "k = np.random.RandomState(seed + 1).rand(d_k, n_samples)",
        ),
        ("torch.manual_seed(seed)", "torch.manual_seed(0)"),
        (
            "score = rng.normal(size=d_k) @ rng.normal(size=d_k)",
            "score = np.mean(rng.normal(size=d_k) * rng.normal(size=d_k))",
        ),
        ("total += step * (score - mean)", "total += score - mean"),
        ("return total / (n_samples - 1)", "return total"),
        ("return total / (n_samples - 1)", "return (total / (n_samples - 1)) ** 0.5"),
        (SCORES, "scores = query * key"),
        (SCORES, "scores = (query * key).sum(dim=-1) / d_k**0.5"),
        ("generator = torch.Generator().manual_seed(seed)", "generator = torch.Generator()"),
        (
            "generator = torch.Generator().manual_seed(seed)",
            "generator = torch.Generator().manual_seed(seed or 1)",
        ),
    ),
    "scaling.softmax_jacobian": (
        ("outer = p[..., :, None] * p[..., None, :]", "outer = p[..., :, None] + p[..., None, :]"),
        ("outer = p[..., :, None] * p[..., None, :]", "outer = p[..., :, None] * p[..., :, None]"),
        ("diagonal[..., i, i] = p[..., i]", "diagonal[..., i, i] = 1"),
        ("diagonal[..., i, i] = p[..., i]", "diagonal[..., i, i] = p[..., i] ** 2"),
        ("diagonal[..., i, i] = p[..., i]", "diagonal[..., i, :] = p[..., i, None]"),
        ("return diagonal - outer", "return outer - diagonal"),
        ("return diagonal - outer", "return diagonal + outer"),
        ("return diagonal - outer", "return diagonal"),
        ("for i in range(n):", "for i in range(n - 1):"),
        ("diagonal = torch.zeros_like(outer)", "diagonal = torch.ones_like(outer)"),
    ),
    "scaling.attention_entropy": (
        ("is_zero = weights == 0", "is_zero = weights < 0.1"),
        ("return -terms.sum(dim=-1)", "return terms.sum(dim=-1)"),
        (
            "logarithms = weights.masked_fill(is_zero, 1).log()",
            "logarithms = (1 + weights).log()",
        ),
        (
            "logarithms = weights.masked_fill(is_zero, 1).log()",
            "logarithms = weights.clamp(min=0.01).log()",
        ),
        ("information = torch.where(", "information = -torch.where("),
        (
            "return (a * information).sum(-1).to(weights.dtype)",
            "return (a * information).sum().to(weights.dtype)",
        ),
        ("a == 0, 0, -a.clamp_min(1e-300).log2()", "a == 0, 0, -a.clamp_min(1e-2).log2()"),
        ("a == 0, 0, -a.clamp_min(1e-300).log2()", "a == 0, 0, a.clamp_min(1e-300).log2()"),
        ("a == 0, 0, -a.clamp_min(1e-300).log2()", "a < 0.1, 0, -a.clamp_min(1e-300).log2()"),
    ),
}
