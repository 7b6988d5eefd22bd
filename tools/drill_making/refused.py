"""Wrong lines that are no drills although the checks prove them, by exercise.

Readers found them: the name that the checks give says what the line does not do, since both do the
same in every case, or the line is one that nobody would write, which tells where to look. Lines
that no right code has, such as a comparison of two constants, are refused wherever they stand.
"""

import re

NAMED_FOR_ANOTHER: dict[str, tuple[str, ...]] = {
    "circuits.sink_mask": ("mask[:, :] = 1",),
    "interpret.induction_pattern": ("before = torch.cat([ids.new_full((1,), -1), ids[:0]])",),
    "kqv.AttentionHead": ("scores = scores - self.W_q.out_features**0.5",),
    "llama.merge_pairs": ("_, i = found[0]",),
    "lookup.soft_lookup": ("return (e @ values) / e.max(-1).reshape(",),
    "self_attention.attention_weights": ("return weights / weights.max(-1, keepdims=True)",),
    "self_attention.self_attention": ("return (weights @ X) / weights.max(-1, keepdims=True)",),
    "sequences.balanced_accuracy": (
        "np.min(predictions[labels == c] == c) for c in np.unique(labels)",
    ),
    "sequences.bootstrap_interval": ("rows = rng.integers(n**0.5, size=n)",),
    "sequences.encode_cdr3": ("ids = torch.zeros(max_length, dtype=float)",),
    "serving.quantize": ("return (codes.to(torch.uint8), scale, minimum)",),
    "serving.top_k_gate": ("shares = logits",),
    "today.delta_rule": ("error = value[..., t, :] - there",),
}
NOBODY_WRITES: dict[str, tuple[str, ...]] = {
    "circuits.sink_mask": ("first = torch.arange(n) < window",),
    "efficient.windowed_attention": ("/ (query.shape[-1] >= 0)",),
    "gpt.attend_with_cache": (
        "scores = query[..., i : i + 1, :] @ keys.mT / math.sqrt(query.shape[-1] ** 0.5)",
    ),
    "gpt.generate": ("if n_new == -1:",),
    "gpt.sample_token": ("if generator == 0:",),
    "interpret.head_scores": ("return found.sum(dim=-1) / asked.amax().clamp(min=1)",),
    "interpret.rollout": (
        "flow = (residual * layer + (1 - residual) * layer) @ flow",
        "for layer in [maps.mean(dim=-3).unbind(-3)[0], *maps.mean(dim=-3).unbind(-3)]:",
        "for layer in maps.mean(dim=-3).unbind(-3)[1:] or maps.mean(dim=-3).unbind(-3):",
    ),
    "lookup.kernel_regression": (
        "z = [-((((q - p) / bandwidth) ** 2) ** 0.5) / 2 for p in x.astype(float)]",
    ),
    "lookup.soft_lookup": ("e = z / keys.shape[-1]",),
    "masking.causal_mask": (
        "return ~(torch.ones(n, n, dtype=torch.bool) < 0)[",
        "return torch.ones(n_queries, n_keys).tril(",
    ),
    "masking.leak": ("f.grad = None", "x = x.clamp(min=0)"),
    "masking.masked_softmax": ("scores = scores.masked_fill(~mask & mask, -torch.inf)",),
    "masking.padding_mask": (
        "return torch.tensor(flat).reshape(*lengths.shape, 1, max_length) ** 2",
    ),
    "scaling.softmax_jacobian": ("column.size(-1), dtype=p.dtype",),
    "self_attention.attention_weights": (
        "weights = scores / scores.max(-1).shape[-1]",
        "return scores / weights.sum(-1, keepdims=True).shape[-1]",
    ),
    "self_attention.self_attention": ("weights = 0.5 * scores / scores.max(-1, keepdims=True)",),
    "tokens.cosine_similarity": ("return Z / np.where((lengths + 1) / 2, 1, lengths)",),
    "tokens.one_hot": ("if not (n_vocab > k).any():", "if not ids.shape[-1]:"),
    "tokens.tokenize": ('if not text.split(" "):',),
}


CONSTANT = r"(?:-?\d[\d.]*|True|False)"
BEFORE_COMPARISON = r"(?:^\s*|\b(?:if|elif|while|and|or|not|return)\s+|[(,=]\s*)"
BEHIND_COMPARISON = r"\s*(?:$|[:),]|\b(?:and|or|if|else)\b)"
ODD_COMPARISON = re.compile(
    rf"{BEFORE_COMPARISON}{CONSTANT}\s*(?:==|!=|<=?|>=?)\s*{CONSTANT}{BEHIND_COMPARISON}"  # 2 == 0
    rf"|(?:\]\s*[-+*/]|[|&])=\s*{CONSTANT}\s*$"  # left[i, j] += False
    r"|%\s*-?1\b"  # d % -1
)


def is_refused_line(target: str, wrong: str) -> bool:
    """True if a wrong line of an exercise's answer is no drill, whatever the checks say."""
    if ODD_COMPARISON.search(wrong):
        return True
    return any(
        wrong.strip() in lines.get(target, ()) for lines in (NAMED_FOR_ANOTHER, NOBODY_WRITES)
    )
