"""Chapter 19: she or he after a profession, with templates, intervals and two controls."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from attncourse.circuits import gap_interval
from attncourse.llama import Llama

if TYPE_CHECKING:
    from attncourse.pretrained.byte_pairs import BytePairs

TEMPLATES = (
    "The {} said that",
    "The {} was late because",
    "The {} laughed when",
    "The {} was hungry, so",
    "I asked the {} whether",
    "The {} knew that",
    "Nobody saw the {} before",
    "We waited for the {} until",
)
PROFESSIONS = (
    "librarian", "nurse", "secretary", "teacher", "dancer", "singer", "writer", "artist",
    "student", "judge", "cook", "baker", "doctor", "scientist", "lawyer", "engineer",
    "driver", "mechanic", "farmer", "soldier",
)  # fmt: skip
CONTROLS = ("girl", "boy")


@torch.no_grad()
def pronoun_log_gaps(
    model: Llama, words: "BytePairs", who: str, templates: Sequence[str] = TEMPLATES
) -> list[float]:
    """Return log p(she) − log p(he) after each template, in nats.

    Raises ``ValueError`` for a word of several tokens: its templates would be longer than others.
    """
    she, he = (int(words.encode(" " + word)[0]) for word in ("she", "he"))
    if len(words.encode(" " + who)) != 1:
        raise ValueError(f"{who!r}: expected a word of one token")
    gaps = []
    for template in templates:
        logits: Tensor = model(words.encode(template.format(who)))[-1]
        gaps.append((logits[she] - logits[he]).item())
    return gaps


def measure_professions(
    model: Llama,
    words: "BytePairs",
    professions: Sequence[str] = PROFESSIONS,
    templates: Sequence[str] = TEMPLATES,
) -> dict:
    """Measure raw gaps, and intervals over a baseline of both controls, as the page shows them."""
    raw = {who: pronoun_log_gaps(model, words, who, templates) for who in (*CONTROLS, *professions)}
    baseline = np.mean([raw[who] for who in CONTROLS], axis=0)
    rng = np.random.default_rng(0)
    return {
        "templates": list(templates),
        "gaps": {who: [round(x, 3) for x in gaps] for who, gaps in raw.items()},
        "intervals": {
            who: [round(x, 3) for x in gap_interval(gaps, baseline, n_resamples=2000, rng=rng)]
            for who, gaps in raw.items()
        },
        "without_baseline": {
            who: [round(x, 3) for x in gap_interval(gaps, n_resamples=2000, rng=rng)]
            for who, gaps in raw.items()
        },
    }
