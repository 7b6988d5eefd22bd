"""After chapter 11: two causal layers name the letter before, at lengths they never saw.

Trained on sequences of 8 letters, held to 24. Positions are rotations alone (chapter 11), heads are
split and merged (9), nobody sees ahead (10). The task is the one of chapter 11's page, after
Press et al. (2022) and Kazemnejad et al. (2023); see ``attncourse.tasks.copying``.
"""

from typing import Any

import torch
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from torch import Tensor, nn

from attncourse.figures.style import KEY, QUERY, set_style
from attncourse.milestones import gates
from attncourse.milestones.gates import difference_message, of_shape, relative_difference
from attncourse.milestones.milestone import Gate, Milestone
from attncourse.milestones.parts import Parts
from attncourse.tasks.copying import LETTERS, copy, sequences
from attncourse.tasks.training import accuracy, train

D, HEADS, LAYERS, STEPS, RATE = 32, 4, 2, 300, 0.01
SHORT, LONG = 8, 24  # letters, in training and afterwards
USES = (
    "kqv.scaled_dot_product_attention", "multihead.split_heads", "multihead.merge_heads",
    "masking.causal_mask", "positions.apply_rope",
)  # fmt: skip


class Copier(nn.Module):
    """Letters, two layers of causal attention with rotated queries and keys, a read-out."""

    def __init__(self, parts: Parts):
        super().__init__()
        self.attend, self.split, self.merge, self.causal, self.rotate = (parts[t] for t in USES)
        self.letters, self.read_out = nn.Embedding(LETTERS, D), nn.Linear(D, LETTERS)
        self.views = nn.ModuleList(nn.Linear(D, 3 * D, bias=False) for _ in range(LAYERS))
        self.back = nn.ModuleList(nn.Linear(D, D, bias=False) for _ in range(LAYERS))

    def forward(self, ids: Tensor) -> Tensor:
        """Return logits ``(batch, n, 32)`` for the letter before each of ids ``(batch, n)``."""
        x, mask = self.letters(ids), self.causal(ids.shape[-1])
        for views, back in zip(self.views, self.back, strict=True):
            query, key, value = self.heads(views(x))
            x = x + back(self.merge(self.attend(query, key, value, mask)))
        return self.read_out(x)

    def heads(self, views: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries and keys, rotated by their positions, and values: (batch, h, n, d/h)."""
        query, key, value = (self.split(part, HEADS) for part in views.chunk(3, dim=-1))
        where = torch.arange(query.shape[-2])
        return self.rotate(query, where), self.rotate(key, where), value


def train_copier(parts: Parts, show: bool = False) -> nn.Module:
    """Return a copier of these parts, trained."""
    task = copy(SHORT)
    return train(
        lambda: Copier(parts), task, rate=RATE, steps=STEPS, fade=True, seed=1, show=show
    ).model


# --- gates ----------------------------------------------------------------------------------------


def sample_letters(n: int = SHORT) -> Tensor:
    """Return twenty sequences of letters, always the same."""
    return sequences(20, n, torch.Generator().manual_seed(77))


def names_every_letter(model: Any) -> str:
    """Return what is wrong with the logits' shape; "" for one row a letter."""
    return of_shape(model(sample_letters()), (20, SHORT, LETTERS))


def a_letter_at_two_places(model: Any) -> str:
    """Return two different letters, then one of them at either place: positions must tell."""
    first, other = torch.tensor([[3, 4, 9]]), torch.tensor([[4, 3, 9]])
    far = relative_difference(model(first)[:, -1], model(other)[:, -1])
    return "two letters that change places make no difference to the third" if far < 1e-3 else ""


def check_copier_relative_positions(model: Any) -> str:
    """Scores depend on how far apart two tokens stand, not on where they do."""
    x = model.letters(sample_letters(4))[:, :2].repeat(
        1, 6, 1
    )  # the same two letters at 0 and 1, 2 and 3, …
    query, key, _ = model.heads(model.views[0](x))
    scores = query @ key.mT
    near = scores.diagonal(-1, -2, -1)[..., ::2]  # letter 1 asks letter 0, in every place
    far = relative_difference(near, near[..., :1])
    return (
        f"the score of two neighbours depends on where they stand, by {far:.2g}"
        if far > 1e-2
        else ""
    )


def heads_apart(model: Any) -> str:
    """A head reads its own features only."""
    views = torch.randn(2, SHORT, 3 * D, generator=torch.Generator().manual_seed(7))
    value = model.heads(views)[2]
    if value.shape != (2, HEADS, SHORT, D // HEADS):
        want = (2, HEADS, SHORT, D // HEADS)
        return f"expected heads of shape {want}, got {tuple(value.shape)}"
    back = model.merge(value)
    far = relative_difference(views[..., 2 * D :], back)
    return difference_message("merged heads are not what was split", far)


def first_layer_maps(model: Any) -> tuple[Tensor, Tensor]:
    """Return the first layer's attention maps and scores over √d_k, ``(batch, h, n, n)``."""
    query, key, _ = model.heads(model.views[0](model.letters(sample_letters(6))))
    n = query.shape[-2]
    one_hot = torch.eye(n).expand(*query.shape[:-2], n, n)
    maps = model.attend(query, key, one_hot, torch.ones(n, n, dtype=torch.bool).tril())
    return maps, query @ key.mT / query.shape[-1] ** 0.5


def check_copier_diagonal(model: Any) -> str:
    """Return that a letter does not see itself; "" where each does."""
    mask = model.causal(SHORT)
    return "" if bool(mask.diagonal().all()) else "a letter does not see itself"


def check_copier_scaling(model: Any) -> str:
    """The last token sees all: its weights' logarithms are its scores, but for one number."""
    maps, scores = first_layer_maps(model)
    logs = maps[..., -1, :].clamp(min=1e-12).log()
    last = scores[..., -1, :]
    far = relative_difference(
        last - last.mean(dim=-1, keepdim=True), logs - logs.mean(dim=-1, keepdim=True)
    )
    return f"weights are not the softmax of scores over √d_k, by {far:.2g}" if far > 1e-2 else ""


def copies(n: int):
    """Return a gate that opens for a model that copies sequences of n letters."""

    def shut(model: Any) -> str:
        right = accuracy(model, copy(n), 500)
        return f"{right:.0%} of letters right at length {n}, expected 97%" if right < 0.97 else ""

    return shut


def draw_copying(model: Any) -> Figure:
    """Draw the share of right answers by length: trained on 8 letters, asked up to 32."""
    set_style()
    lengths = list(range(4, LETTERS + 1, 2))
    right = [100 * accuracy(model, copy(n), 200) for n in lengths]
    figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
    ax.plot(lengths, right, "o-", color=QUERY)
    ax.axvline(SHORT, color=KEY, linestyle=":")
    ax.text(SHORT, 3, " trained on 8", color=KEY)
    ax.set(xlabel="length in letters", ylabel="letters right, %", ylim=(0, 104))
    ax.set_title("Your model copies sequences that it never saw the like of")
    return figure


MILESTONE = Milestone(
    name="copying",
    after="positions",
    what="two causal layers, trained on 8 letters, copy 24",
    uses=USES,
    build=Copier,
    train=train_copier,
    untrained=(
        Gate("logits for every letter", names_every_letter),
        Gate("nothing ahead is seen", gates.nothing_ahead(sample_letters, "letters")),
        Gate("everything behind is seen", gates.all_behind(sample_letters, "letter")),
        Gate("a letter sees itself", check_copier_diagonal),
        Gate(
            "one sequence at a time or many",
            gates.batch_independence_gate(sample_letters, "sequence"),
        ),
        Gate("heads apart", heads_apart),
        Gate("softmax of scores over √d_k", check_copier_scaling),
        Gate("a letter at two places", a_letter_at_two_places),
        Gate("distances alone", check_copier_relative_positions),
    ),
    trained=(
        Gate("fresh sequences as long as in training", copies(SHORT)),
        Gate("three times as long", copies(LONG)),
    ),
    picture=draw_copying,
)
