"""Chapter 13: the chances of the next token, which temperature, top-k and top-p change."""

from html import escape

import numpy as np

from attncourse.figures.moving.controls import button, controls, slider_control
from attncourse.figures.moving.figure import Moving
from attncourse.support.arrays import as_floats, require_finite


def sampling(
    logits: np.ndarray,
    tokens: list[str],
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float = 1.0,
) -> Moving:
    """Return a bar for each token, with sliders for temperature, top-k and top-p, and a draw.

    logits: ``(n,)``, of 2 to 12 tokens. tokens: n words. The other arguments are the first state;
    temperature is from 0 to 3. A bar's outline is what the softmax alone gives.

    Raises ``ValueError`` for other logits or words, and for settings outside their range.
    """
    scores = as_floats("logits", logits, "n").astype(float)
    require_finite(logits=scores)
    n = len(scores)
    if scores.ndim != 1 or not 2 <= n <= 12:
        raise ValueError(f"logits: expected a row of 2 to 12, got shape {scores.shape}")
    if isinstance(tokens, str) or len(tokens) != n:
        raise ValueError(f"tokens: expected {n} words, one for each logit, got {tokens!r}")
    if max(map(len, tokens)) > 14:
        raise ValueError(
            f"tokens: expected words of at most 14 letters, got {max(tokens, key=len)!r}"
        )
    if not 0 <= temperature <= 3:
        raise ValueError(f"temperature: expected a number from 0 to 3, got {temperature}")
    top_k = n if top_k is None else top_k
    shares = sampling_shares(scores, temperature, top_k, top_p)
    plain = sampling_shares(scores, 1.0, n, 1.0)
    lines = "".join(
        f'<tr><th scope="row">{escape(token)}</th><td class="am-bar">'
        f'<i style="width:{100 * a:.4g}%"></i><b style="width:{100 * b:.4g}%"></b></td>'
        f"<td>{100 * b:.1f} %</td></tr>"
        for token, a, b in zip(tokens, plain, shares, strict=True)
    )
    left = int((shares > 0).sum())
    return Moving(
        "sampling",
        "Which token comes next?",
        f'<table data-part="bars"><tbody>{lines}</tbody></table>'
        + controls(
            slider_control("temperature", "temperature", 0, 3, temperature, 0.05),
            slider_control("k", "top-k", 1, n, top_k),
            slider_control("p", "top-p", 0.05, 1, top_p, 0.05),
        )
        + controls(button("draw", "Draw ten"), button("reset", "Back")),
        "In a browser that runs scripts, three sliders change the bars.",
        {"logits": scores.tolist(), "tokens": list(tokens)}
        | {"first": [temperature, top_k, top_p], "plain": plain.tolist()},
        f"{left} of {n} tokens can come.",
    )


def sampling_shares(logits: np.ndarray, temperature: float, top_k: int, top_p: float) -> np.ndarray:
    """Return the shares that tokens are drawn with, ``(n,)``.

    At temperature 0 the likeliest has all.
    """
    import torch  # pages on NumPy do without

    from attncourse.gpt import filter_logits

    if temperature == 0:
        temperature, top_k = 1.0, 1
    filtered = filter_logits(torch.from_numpy(logits / temperature), top_k, top_p)
    return filtered.softmax(-1).numpy()
