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


RIGHT_ANSWERS = {
    "scaling.softmax_jacobian": [jacobian_in_steps],
    "scaling.attention_entropy": [entropy_in_steps],
}
RANDOM_QUERY_LINE = "query = torch.randn(n_samples, d_k, generator=generator)"
RANDOM_KEY_LINE = "key = torch.randn(n_samples, d_k, generator=generator)"
RANDOM_SCORES_LINE = "scores = (query * key).sum(dim=-1)"
VARIANCE_LINE = "return scores.var().item()"
WRONG_LINES: dict[str, tuple[tuple[str, str], ...]] = {
    "scaling.score_variance": (
        (VARIANCE_LINE, "return scores.std().item()"),
        (RANDOM_SCORES_LINE, "scores = (query * key).sum(dim=0)"),
        (RANDOM_KEY_LINE, "key = torch.randn(d_k, generator=generator)"),
        (RANDOM_QUERY_LINE, "query = torch.rand(n_samples, d_k, generator=generator)"),
        (VARIANCE_LINE, "return scores.mean().item()"),
        (RANDOM_SCORES_LINE, "scores = (query * key).mean(dim=-1)"),
        (
            "generator = torch.Generator().manual_seed(seed)",
            "generator = torch.Generator().manual_seed(0)",
        ),
        (VARIANCE_LINE, "return scores.square().sum().item()"),
        (RANDOM_SCORES_LINE, "scores = query @ key.mT"),
        (RANDOM_KEY_LINE, "key = query"),
        (RANDOM_KEY_LINE, "key = torch.randn(n_samples, d_k)"),
        (RANDOM_QUERY_LINE, "query = torch.randn(n_samples, d_k, generator=generator) / d_k**0.5"),
        (RANDOM_QUERY_LINE, "query = 2 * torch.rand(n_samples, d_k, generator=generator) - 1"),
        (RANDOM_KEY_LINE, "key = torch.randn(1, d_k, generator=generator)"),
        (VARIANCE_LINE, "return (scores**4).mean().item()"),
        (VARIANCE_LINE, "return scores.var()"),
        (VARIANCE_LINE, "return scores.square().var().item()"),
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
        (RANDOM_SCORES_LINE, "scores = query * key"),
        (RANDOM_SCORES_LINE, "scores = (query * key).sum(dim=-1) / d_k**0.5"),
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
