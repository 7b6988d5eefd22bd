"""Chapter 13: right answers in steps, and wrong lines for them."""

import math

import torch


def filter_logits(logits, top_k=None, top_p=None):
    if top_k is not None:
        rank = logits.argsort(dim=-1, descending=True, stable=True).argsort(dim=-1)
        logits = logits.masked_fill(rank >= top_k, -torch.inf)
    if top_p is not None:
        shares, order = logits.softmax(dim=-1).sort(dim=-1, descending=True, stable=True)
        before = shares.cumsum(dim=-1) - shares
        dropped = (before >= top_p).scatter(-1, order, before >= top_p)
        logits = logits.masked_fill(dropped, -torch.inf)
    return logits


def token_in_steps(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if temperature == 0:
        return logits.argmax(dim=-1)
    scaled = logits / temperature
    kept = filter_logits(scaled, top_k, top_p)
    shares = kept.softmax(dim=-1)
    rows = shares.reshape(-1, shares.shape[-1])
    drawn = torch.multinomial(rows, 1, generator=generator)
    return drawn.reshape(logits.shape[:-1])


def perplexity_in_steps(losses, counts):
    total, tokens = 0.0, 0
    for loss, count in zip(losses, counts, strict=True):
        total += float(loss) * int(count)
        tokens += int(count)
    return math.exp(total / tokens)


RIGHT_ANSWERS = {"gpt.sample_token": [token_in_steps], "gpt.perplexity": [perplexity_in_steps]}
FILTERED_LOGITS_LINE = "kept = filter_logits(scaled, top_k, top_p)"
SHARES_LINE = "shares = kept.softmax(dim=-1)"
DRAWN_TOKENS_LINE = "drawn = torch.multinomial(rows, 1, generator=generator)"
WRONG_LINES: dict[str, tuple[tuple[str, str], ...]] = {
    "gpt.generate": (
        (
            "logits = model(ids[..., -model.max_length :])[..., -1, :]",
            "logits = model(ids[..., : model.max_length])[..., -1, :]",
        ),
        (
            "logits = model(ids[..., -model.max_length :])[..., -1, :]",
            "logits = model(ids[..., -1:])[..., -1, :]",
        ),
        (
            "ids = torch.cat([ids, token[..., None]], dim=-1)",
            "ids = torch.cat([token[..., None], ids], dim=-1)",
        ),
        (
            "logits = model(ids[..., -model.max_length :])[..., -1, :]",
            "logits = model(ids[..., 1 - model.max_length :])[..., -1, :]",
        ),
    ),
    "gpt.sample_token": (
        ("scaled = logits / temperature", "scaled = logits * temperature"),
        ("scaled = logits / temperature", "scaled = logits"),
        ("scaled = logits / temperature", "scaled = logits / temperature**2"),
        (FILTERED_LOGITS_LINE, "kept = scaled"),
        (FILTERED_LOGITS_LINE, "kept = filter_logits(logits, top_k, top_p) / temperature"),
        (FILTERED_LOGITS_LINE, "kept = filter_logits(logits, top_k, top_p)"),
        (SHARES_LINE, "shares = kept.exp()"),
        (SHARES_LINE, "shares = kept.clamp(min=0)"),
        (SHARES_LINE, "shares = (kept > -torch.inf).to(kept.dtype)"),
        (DRAWN_TOKENS_LINE, "drawn = torch.multinomial(rows, 1)"),
        (DRAWN_TOKENS_LINE, "drawn = rows.argmax(dim=-1, keepdim=True)"),
        ("rows = shares.reshape(-1, shares.shape[-1])", "rows = shares"),
        ("return drawn.reshape(logits.shape[:-1])", "return drawn.reshape(*logits.shape[:-1], 1)"),
        ("if temperature == 0:", "if temperature is None:"),
    ),
    "gpt.filter_logits": (
        ("kept = shares.cumsum(dim=-1) - shares < top_p", "kept = shares.cumsum(dim=-1) < top_p"),
        (
            "kept = shares.cumsum(dim=-1) - shares < top_p",
            "kept = shares.cumsum(dim=-1) - shares <= top_p",
        ),
        ("kept = shares.cumsum(dim=-1) - shares < top_p", "kept = shares >= top_p"),
        (
            "kept = shares.cumsum(dim=-1) - shares < top_p",
            "kept = logits.gather(-1, order).cumsum(dim=-1) < top_p",
        ),
        ("keep = torch.zeros_like(kept).scatter(-1, order, kept)", "keep = kept"),
        ("keep = torch.zeros_like(kept).scatter(-1, order, kept)", "keep = kept.gather(-1, order)"),
        ("shares = logits.softmax(dim=-1).gather(-1, order)", "shares = logits.softmax(dim=-1)"),
        (
            "order = logits.argsort(dim=-1, descending=True, stable=True)",
            "order = logits.argsort(dim=-1, stable=True).flip(-1)",
        ),
        (
            "order = logits.argsort(dim=-1, descending=True, stable=True)",
            "order = logits.argsort(dim=-1, stable=True)",
        ),
        (
            "logits = logits.masked_fill(~keep, -math.inf)",
            "logits = logits.masked_fill(~keep, math.inf)",
        ),
        ("logits = logits.masked_fill(~keep, -math.inf)", "logits = logits.masked_fill(~keep, 0)"),
        ("return logits", "return logits.gather(-1, order)"),
        (
            "number = (along.cumsum(-1) < top_p).sum(-1, keepdim=True) + 1",
            "number = (along.cumsum(-1) < top_p).sum(-1, keepdim=True) + 2",
        ),
        (
            "number = (along.cumsum(-1) < top_p).sum(-1, keepdim=True) + 1",
            "number = (along.cumsum(-1) < top_p).sum(-1, keepdim=True)",
        ),
        (
            "number = (along.cumsum(-1) < top_p).sum(-1, keepdim=True) + 1",
            "number = (along.cumsum(-1) < top_p).sum() + 1",
        ),
        ("along = logits.softmax(-1).gather(-1, order)", "along = logits.softmax(-1)"),
        ("along = logits.softmax(-1).gather(-1, order)", "along = logits.gather(-1, order)"),
        ("along = logits.softmax(-1).gather(-1, order)", "along = logits.exp().gather(-1, order)"),
        ("gone = F.pad(reached[..., :-1], (1, 0)) >= top_p", "gone = reached >= top_p"),
        ("gone = F.pad(reached[..., :-1], (1, 0)) >= top_p", "gone = reached > 1 - top_p"),
        ("gone[..., 0] = False", "gone[..., -1] = True"),
        ("reached = values.softmax(-1).cumsum(-1)", "reached = values.exp().cumsum(-1)"),
        (
            "shares = logits.softmax(dim=-1).gather(-1, order)",
            "shares = logits.exp().gather(-1, order)",
        ),
    ),
    "gpt.perplexity": (
        ("total += float(loss) * int(count)", "total += float(loss)"),
        ("tokens += int(count)", "tokens += 1"),
        ("return math.exp(total / tokens)", "return math.exp(total)"),
        ("return math.exp(total / tokens)", "return math.exp(-total / tokens)"),
        (
            "return math.exp(total / sum((int(count) for count in counts)))",
            "return math.exp(total)",
        ),
        (
            "return math.exp(total / sum((int(count) for count in counts)))",
            "return math.exp(total / len(counts))",
        ),
        (
            "return math.exp(total / sum((int(count) for count in counts)))",
            "return math.exp(-total / sum((int(count) for count in counts)))",
        ),
        (
            "return math.exp(total / sum((int(count) for count in counts)))",
            "return 2 ** (total / sum((int(count) for count in counts)))",
        ),
        ("float(loss) * int(count)", "float(loss)"),
        ("if count:", "if count and loss:"),
        ("every = [", "every = [0.0] + ["),
        ("return math.e**mean", "return 2**mean"),
    ),
}
