"""After chapter 5: a head that finds the pair it is asked for, among eight in any order.

*c5 a1 h7 … c?* is answered by 5. The task is the one of chapter 5's page, by Graves et al. (2014)
and Ba et al. (2016); see ``attncourse.tasks.recall``.
"""

from typing import Any

import torch
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from torch import Tensor, nn

from attncourse.figures.style import GREY, KEY, set_style
from attncourse.milestones import gates
from attncourse.milestones.gates import difference_message, of_shape, relative_difference
from attncourse.milestones.milestone import Gate, Milestone
from attncourse.milestones.parts import Parts
from attncourse.tasks.recall import ASKED, DIGITS, LETTERS, recall
from attncourse.tasks.training import accuracy, train

D_MODEL, D_K, CLASSES, STEPS, RATE = 26, 16, 10, 300, 0.01
HEAD_TARGET = "kqv.AttentionHead"
USES = (
    "kqv.project", "kqv.attention_scores", "kqv.scaled_dot_product_attention", HEAD_TARGET,
)  # fmt: skip


class Recaller(nn.Module):
    """One head over the nine tokens, none of which attends to itself."""

    def __init__(self, parts: Parts):
        super().__init__()
        self.head = parts[HEAD_TARGET](D_MODEL, D_K, CLASSES)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return logits for every token, ``(batch, 9, 10)``; the last row answers the question."""
        return self.head(x, others_mask(x) if mask is None else mask)

    def weights(self, x: Tensor) -> Tensor:
        """Return the attention map, ``(batch, 9, 9)``."""
        return self.head.weights(x, others_mask(x))


def others_mask(x: Tensor) -> Tensor:
    """True where a token may attend: everywhere but to itself."""
    return ~torch.eye(x.shape[-2], dtype=torch.bool)


def train_recaller(parts: Parts, show: bool = False) -> nn.Module:
    """Return a recaller of these parts, trained."""
    return train(lambda: Recaller(parts), recall, rate=RATE, steps=STEPS, show=show).model


# --- gates ----------------------------------------------------------------------------------------


def sample_questions(batch: int = 50) -> Tensor:
    """Return sequences that no training has seen."""
    return recall(batch, torch.Generator().manual_seed(77))[0]


def answers_every_token(model: Any) -> str:
    """Return what is wrong with the answers' shape; "" for one row a token."""
    return of_shape(model(sample_questions()), (50, 9, CLASSES))


def order_of_pairs(model: Any) -> str:
    """Return how far an answer hangs on the pairs' order; "" where it does not."""
    x = sample_questions()
    shuffled = torch.cat([x[:, :8].flip(1), x[:, 8:]], dim=1)
    far = relative_difference(model(x)[:, -1], model(shuffled)[:, -1])
    return difference_message("the answer changes when the eight pairs change places", far)


def what_is_forbidden(model: Any) -> str:
    """Return how far a forbidden token changes others; "" where it does not."""
    x, mask = sample_questions(), torch.ones(9, 9, dtype=torch.bool)
    mask[:, 3] = False  # nobody may attend to the fourth pair
    changed = x.clone()
    changed[:, 3] = x[:, 3].roll(1, dims=-1)
    allowed = [i for i in range(9) if i != 3]  # its own query is its own
    far = relative_difference(model(x, mask)[:, allowed], model(changed, mask)[:, allowed])
    return difference_message("a forbidden token changes the others' answers", far)


def map_of_blends(model: Any) -> str:
    """Return how far weights @ values are from what comes out; "" where they agree."""
    x = sample_questions()
    values = model.head.W_v(x)
    far = relative_difference(model(x), model.weights(x) @ values)
    return f"weights @ values is not what comes out: they differ by {far:.2g}" if far > 1e-3 else ""


def check_recall_map_rows(model: Any) -> str:
    """Return what a token's weights sum to where that is not 1; else ""."""
    sums = model.weights(sample_questions()).sum(dim=-1)
    low, high = float(sums.min()), float(sums.max())
    return (
        f"a token's weights sum to {low:.3g} to {high:.3g}, not to 1"
        if max(1 - low, high - 1) > 1e-3
        else ""
    )


def check_recall_large_entries(model: Any) -> str:
    """Return that large entries give NaN or infinity; "" where they do not."""
    return (
        ""
        if model(1e5 * sample_questions()).isfinite().all()
        else "large entries give NaN or infinity"
    )


def scale_of_scores(model: Any) -> str:
    """Scores of random projections have a spread that does not grow with d_k."""
    x = sample_questions()
    spread = model.weights(x).clamp(min=1e-12).log()[:, -1, :8].std(dim=-1).mean()
    query, key = model.head.W_q(x)[:, -1:], model.head.W_k(x)[:, :8]
    right = ((query @ key.mT) / D_K**0.5).std(dim=-1).mean()
    far = float(spread / right)
    return f"scores spread {far:.2g} times as far as those over √d_k" if not 0.9 < far < 1.1 else ""


def recalls(model: Any) -> str:
    """Return the share of fresh questions answered where it is too small; else ""."""
    right = accuracy(model, recall)
    return f"{right:.0%} of fresh questions answered, expected 99%" if right < 0.99 else ""


def looks_at_the_pair(model: Any) -> str:
    """The pair with the letter that is asked for is what the question attends to most."""
    x = sample_questions(500)
    pair = (x[:, :8, LETTERS] * x[:, 8:, ASKED]).sum(-1).argmax(-1)
    looked_at = model.weights(x)[:, -1, :8].argmax(-1)
    share = float((looked_at == pair).float().mean())
    return (
        f"the question looks most at its pair in {share:.0%} of sequences" if share < 0.99 else ""
    )


def draw_recall(model: Any) -> Figure:
    """Draw four fresh questions: how the head's attention is shared among the eight pairs."""
    set_style()
    x, answers = recall(4, torch.Generator().manual_seed(5))
    with torch.no_grad():
        weights, said = model.weights(x)[:, -1, :8], model(x)[:, -1].argmax(-1)
    figure, axes = plt.subplots(2, 2, figsize=(7, 5), sharey=True, layout="constrained")
    for i, ax in enumerate(axes.flat):
        letters = x[i, :8, LETTERS].argmax(-1)
        names = [
            f"{chr(97 + a)}{d}" for a, d in zip(letters, x[i, :8, DIGITS].argmax(-1), strict=True)
        ]
        asked_key = int(x[i, 8, ASKED].argmax())
        colours = [KEY if letter == asked_key else GREY for letter in letters]
        ax.bar(names, weights[i].tolist(), color=colours)
        ax.set(
            title=f"{chr(97 + asked_key)}?  answered {said[i]}, right is {answers[i, 0]}",
            ylim=(0, 1),
        )
    figure.supylabel("attention of the question")
    return figure


MILESTONE = Milestone(
    name="recall",
    after="kqv",
    what="a head answers c5 a1 h7 … c? with 5",
    uses=USES,
    build=Recaller,
    train=train_recaller,
    untrained=(
        Gate("logits for every token", answers_every_token),
        Gate("pairs in any order", order_of_pairs),
        Gate(
            "one sequence at a time or many",
            gates.batch_independence_gate(sample_questions, "sequence"),
        ),
        Gate("no batch axis", gates.no_batch_axis_gate(sample_questions, "sequence")),
        Gate("what is forbidden has no influence", what_is_forbidden),
        Gate("weights are shares", check_recall_map_rows),
        Gate("large entries", check_recall_large_entries),
        Gate("the map is the one that blends", map_of_blends),
        Gate("scores over √d_k", scale_of_scores),
    ),
    trained=(
        Gate("fresh questions", recalls),
        Gate("the question finds its pair", looks_at_the_pair),
    ),
    picture=draw_recall,
)
