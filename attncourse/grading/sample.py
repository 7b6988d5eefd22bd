"""A made-up class of eight for ``attncourse demo``: what each wrote into chapter 5's cells.

``CLASS`` maps a student to the sources of their solution cells, by grade id; a cell that is not
named is left as it was released.
"""

IMPORTS = "import torch\nfrom torch import nn\n\n\n"

PROJECT = """\
def project(x, weight):
    return x @ weight
"""

ATTENTION_SCORES_SOURCE = """\
def attention_scores(query, key):
    return query @ key.mT
"""

ATTENTION = """\
def scaled_dot_product_attention(query, key, value, mask=None, *, scale=None):
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    scores = query @ key.mT * scale
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return torch.softmax(scores, dim=-1) @ value
"""

ATTENTION_HEAD_SOURCE = """\
class AttentionHead(nn.Module):
    def __init__(self, d_model, d_k, d_v=None, bias=False):
        super().__init__()
        d_v = d_k if d_v is None else d_v
        self.W_q = nn.Linear(d_model, d_k, bias=bias)
        self.W_k = nn.Linear(d_model, d_k, bias=bias)
        self.W_v = nn.Linear(d_model, d_v, bias=bias)

    def weights(self, x, mask=None):
        q, k = self.W_q(x), self.W_k(x)
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        return torch.softmax(scores, dim=-1)

    def forward(self, x, mask=None):
        return self.weights(x, mask) @ self.W_v(x)
"""

MATRICES = {
    "project": PROJECT,
    "attention_scores": ATTENTION_SCORES_SOURCE,
    "scaled_dot_product_attention": ATTENTION,
    "AttentionHead": ATTENTION_HEAD_SOURCE,
}

EINSUM = {
    "project": """\
def project(x, weight):
    return torch.einsum("...ni,io->...no", x, weight)
""",
    "attention_scores": """\
def attention_scores(query, key):
    return torch.einsum("...mk,...nk->...mn", query, key)
""",
    "scaled_dot_product_attention": """\
def scaled_dot_product_attention(query, key, value, mask=None, *, scale=None):
    if scale is None:
        scale = 1 / query.size(-1) ** 0.5
    scores = torch.einsum("...mk,...nk->...mn", query, key) * scale
    if mask is not None:
        scores = torch.where(mask, scores, torch.full_like(scores, -1e9))
    weights = (scores - scores.amax(-1, keepdim=True)).exp()
    weights = weights / weights.sum(-1, keepdim=True)
    return torch.einsum("...mn,...nv->...mv", weights, value)
""",
    "AttentionHead": ATTENTION_HEAD_SOURCE.replace(
        "q @ k.mT", 'torch.einsum("...mk,...nk->...mn", q, k)'
    ),
}

LOOPS = {
    "project": """\
def project(x, weight):
    columns = [(x * weight[:, j]).sum(-1) for j in range(weight.shape[1])]
    return torch.stack(columns, dim=-1)
""",
    "attention_scores": """\
def attention_scores(query, key):
    rows = []
    for i in range(query.shape[-2]):
        one = query[..., i : i + 1, :]
        rows.append((one * key).sum(-1))
    return torch.stack(rows, dim=-2)
""",
    "scaled_dot_product_attention": """\
def scaled_dot_product_attention(query, key, value, mask=None, *, scale=None):
    if scale is None:
        scale = query.shape[-1] ** -0.5
    rows = []
    for i in range(query.shape[-2]):
        scores = (query[..., i : i + 1, :] * key).sum(-1) * scale
        if mask is not None:
            allowed = mask.expand(*scores.shape[:-1], query.shape[-2], key.shape[-2])[..., i, :]
            scores = scores.masked_fill(~allowed, -torch.inf)
        weights = torch.softmax(scores, dim=-1)
        rows.append((weights[..., None] * value).sum(-2))
    return torch.stack(rows, dim=-2)
""",
    "AttentionHead": ATTENTION_HEAD_SOURCE,
}

ENDLESS = """\
def scaled_dot_product_attention(query, key, value, mask=None, *, scale=None):
    scores = attention_scores(query, key) / query.shape[-1] ** 0.5
    row = 0
    while row < scores.shape[-2]:
        scores = torch.softmax(scores, dim=-1)
    return scores @ value
"""

CRASHING = """\
def scaled_dot_product_attention(query, key, value, mask=None, *, scale=None):
    scores = query @ key.mT / query.shape[-1] ** 0.5
    return torch.softmax(scores, dim=-1) @ values
"""


def sample_answers(style: dict[str, str], **changed: str) -> dict[str, str]:
    """Return a style's cells with some sources changed, each with its imports in front."""
    return {grade_id: IMPORTS + source for grade_id, source in {**style, **changed}.items()}


CLASS: dict[str, dict[str, str]] = {
    "amara-matrices": sample_answers(MATRICES),
    "bela-einsum": sample_answers(EINSUM),
    "chidi-loops": sample_answers(LOOPS),
    "dana-divides": sample_answers(
        MATRICES,
        scaled_dot_product_attention=ATTENTION.replace("** -0.5", "** -1"),
        AttentionHead=ATTENTION_HEAD_SOURCE.replace("        super().__init__()\n", ""),
    ),
    "emre-columns": sample_answers(
        MATRICES,
        attention_scores=ATTENTION_SCORES_SOURCE.replace("key.mT", "key.T"),
        scaled_dot_product_attention=ATTENTION.replace("dim=-1", "dim=-2"),
    ),
    "fay-empty": {},
    "goran-crashes": sample_answers(
        MATRICES,
        scaled_dot_product_attention=CRASHING,
        AttentionHead="import os\n\nos.abort()\n",
    ),
    "hana-endless": sample_answers(MATRICES, scaled_dot_product_attention=ENDLESS),
}
