"""Cases that several of the chapter's exercises share."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from attncourse.checks.exercise import Case, Rng
from attncourse.checks.writing.cases import CaseTable, Row, row, standard
from attncourse.checks.writing.modules import tensor


def separated_logits(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Return rows whose entries are at least 0.3 apart, in any order, every second one steep."""
    steps = rng.uniform(0.3, 0.4, shape)
    steps.reshape(-1, shape[-1])[::2] += 0.45
    return rng.permuted(steps.cumsum(-1) - 2, axis=-1)


def share_between(rng: Rng, logits: torch.Tensor, top_k: int | None) -> float:
    """Return a p that no row's cumulative shares come near.

    Where it can be, no row reaches it with its first token, and rows keep more or fewer tokens.
    """
    rows = logits.double().sort(-1, descending=True).values[..., :top_k]
    edges = rows.softmax(-1).cumsum(-1).reshape(-1, rows.shape[-1])
    candidates = torch.from_numpy(rng.uniform(0.3, 0.95, 200))
    gaps = (candidates[:, None] - edges.flatten()).abs().min(-1).values
    below = (edges < candidates[:, None, None]).sum(
        -1
    )  # (200, rows), tokens before the last one kept
    fewest, most = below.aminmax(dim=-1)
    separates_rows = (fewest > 0) & ((most > fewest) | (len(edges) == 1)) & (gaps > 0.003)
    return float(candidates[(gaps + separates_rows).argmax()])


@dataclass(frozen=True)
class FilteredTable(CaseTable):
    """A table of logits and how they are filtered; ``top_p`` of True is drawn."""

    spec: Any = field(default_factory=lambda: {"logits": "... n_vocab"})
    how: Callable = separated_logits

    def case(self, rng: Rng, row: Row) -> Case:
        case = super().case(rng, row)
        options = dict(case.kwargs)
        if options.get("top_p") is True:
            options["top_p"] = share_between(rng, case.args[0], options.get("top_k"))
        return replace(case, kwargs=options)


FILTER_CASES = FilteredTable()
FILTER_ROWS = standard(FILTER_CASES)
SEVEN_TOKENS = row("n_vocab=7")
ROWS = SEVEN_TOKENS.but(batch=(5,), note="five rows")
LOGITS_BY_HAND = tensor(np.log([0.1, 0.5, 0.15, 0.25]))  # by hand: likeliest are 1, 3, 2, 0
