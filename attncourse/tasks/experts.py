"""Chapter 20: two of eight experts against one layer, at equal operations a token.

A GPT of chapter 13 learns pronoun world. In each of its two blocks it has either a feed-forward
layer of ``WIDTH`` hidden numbers, or eight *experts* of half that width, of which a gate chooses
two for each token; so a token meets as many hidden numbers, and the model holds four times as many.
The gate's own product is left out of the count. Contestants: the layer; experts without and with
the balancing loss; and, with four times the operations, a layer as wide as all experts together.
Each is trained from three seeds, at its best rate of three (tried with seed 0, judged by stories of
their own); losses are on 4000 fresh stories.

Sources: Shazeer et al. (2017), Outrageously Large Neural Networks; Fedus et al. (2022), Switch
Transformers.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from attncourse.gpt import GPT, GPTConfig, next_token_loss
from attncourse.serving import load_balance_loss, top_k_gate
from attncourse.tasks.language_model import mean_loss, train
from attncourse.tasks.pronouns import PAD, PronounWorld

EXPERTS, CHOSEN, WIDTH, D_MODEL = 8, 2, 16, 32
RATES, STEPS, BATCH, SEEDS, BALANCE = (0.003, 0.01, 0.03), 300, 64, 3, 0.01


class Experts(nn.Module):
    """Feed-forward layers of which each token goes through ``chosen``, mixed by a gate.

    All are computed here and those that are not chosen count 0: shorter, and right, and slow.
    ``forward`` keeps the gate's logits and weights, ``(..., n, n_experts)`` each.
    """

    def __init__(self, d_model: int, n_experts: int = EXPERTS, chosen: int = CHOSEN,
                 d_ff: int = WIDTH // CHOSEN):  # fmt: skip
        super().__init__()
        self.chosen = chosen
        self.gate = nn.Linear(d_model, n_experts, bias=False)
        self.W_1 = nn.Linear(d_model, n_experts * d_ff)
        self.W_2 = nn.Linear(n_experts * d_ff, d_model)

    def forward(self, x: Float[Tensor, "*batch n d_model"]) -> Float[Tensor, "*batch n d_model"]:
        """Return each token's blend of its chosen experts' results."""
        self.logits = self.gate(x)  # (..., n, e)
        self.weights = top_k_gate(self.logits, self.chosen)
        hidden = F.gelu(self.W_1(x)).unflatten(-1, (self.weights.shape[-1], -1))  # (..., n, e, f)
        return self.W_2((self.weights[..., None] * hidden).flatten(-2))


def with_layer(width: int = WIDTH, d_model: int = D_MODEL) -> GPT:
    """Return a GPT for pronoun world with feed-forward layers of this width."""
    world = PronounWorld()
    return GPT(GPTConfig(len(world.words), world.longest, d_model, d_ff=width))


def with_experts() -> GPT:
    """Return the same GPT with eight experts in place of each feed-forward layer."""
    gpt = with_layer()
    for block in gpt.blocks:
        block.feed_forward = Experts(D_MODEL)
    gpt.initialise()
    return gpt


def layers_of(model: GPT) -> list[Experts]:
    """Return a model's feed-forward layers."""
    return [block.feed_forward for block in model.blocks]


def balanced(model: GPT, factor: float = BALANCE) -> Callable:
    """Return a loss: chapter 13's, and how unevenly each layer's experts were used."""

    def loss(logits: Tensor, ids: Tensor, padding_id: int | None) -> Tensor:
        real = ids != PAD
        uneven = [load_balance_loss(layer.logits[real], CHOSEN) for layer in layers_of(model)]
        return next_token_loss(logits, ids, padding_id) + factor * torch.stack(uneven).sum()

    return loss


CONTESTANTS: dict[str, tuple[Callable[[], GPT], bool]] = {
    "one layer": (with_layer, False),
    "two of eight experts": (with_experts, False),
    "two of eight, balanced": (with_experts, True),
    "one layer as wide as all experts": (lambda: with_layer(WIDTH // CHOSEN * EXPERTS), False),
}


def train_experts(name: str, rate: float, seed: int, steps: int = STEPS) -> GPT:
    """Return the contestant of this name, trained at this rate from this seed."""
    build, even = CONTESTANTS[name]
    torch.manual_seed(seed)
    model = build()
    stories = PronounWorld(1 + seed).sample(BATCH * steps).unflatten(0, (steps, BATCH))
    more = {"loss": balanced(model)} if even else {}
    train(model, stories, rate=rate, padding_id=PAD, show=False, **more)
    return model


def hidden_numbers(model: GPT) -> dict[str, int]:
    """Return how many hidden numbers a token meets in a block, and how many there are."""
    layer = model.blocks[0].feed_forward
    all_numbers = layer.W_1.out_features
    used = all_numbers * layer.chosen // EXPERTS if isinstance(layer, Experts) else all_numbers
    return {"used": used, "there": all_numbers}


@torch.no_grad()
def who_goes_where(model: GPT, n: int = 1000, least: int = 20) -> dict:
    """Return for each layer every expert's share of the choices, and the top one by word.

    Words that stand in n stories fewer than ``least`` times are left out.
    """
    world = PronounWorld(3000)
    ids = world.sample(n)
    model.eval()(ids)
    real = ids != PAD
    words, layers = ids[real], []
    for layer in layers_of(model):
        weights = layer.weights[real]  # (tokens, e)
        by_word = {}
        for word in words.unique().tolist():
            mine = weights[words == word]
            if len(mine) >= least:
                mean = mine.mean(0)
                by_word[world.words[word]] = [int(mean.argmax()), round(float(mean.max()), 2)]
        shares = (weights > 0).float().mean(0) / CHOSEN
        layers.append({"shares": [round(x, 3) for x in shares.tolist()], "words": by_word})
    return {"layers": layers}


def experts_contest(
    names: Sequence[str] = tuple(CONTESTANTS),
    rates: Sequence[float] = RATES,
    seeds: int = SEEDS,
    steps: int = STEPS,
) -> list[dict]:
    """Return every contestant at its best rate: losses by seed, and where its tokens go."""
    unread, test = PronounWorld(1 + seeds).sample(1000), PronounWorld(1000).sample(4000)
    rows = []
    for name in names:
        first = {rate: train_experts(name, rate, 0, steps) for rate in rates}
        tried = {rate: mean_loss(model, unread, PAD) for rate, model in first.items()}
        rate = min(tried, key=tried.__getitem__)
        models = [
            first[rate],
            *(train_experts(name, rate, seed, steps) for seed in range(1, seeds)),
        ]
        row: dict[str, Any] = {"name": name, "rate": rate, **hidden_numbers(models[0])}
        row["tried"] = {str(rate): round(loss, 4) for rate, loss in tried.items()}
        row["losses"] = [round(mean_loss(model, test, PAD), 4) for model in models]
        if isinstance(layers_of(models[0])[0], Experts):
            where = [who_goes_where(model) for model in models]
            row["shares"] = [
                [layer["shares"] for layer in of_model["layers"]] for of_model in where
            ]
            row["words"] = [[layer["words"] for layer in of_model["layers"]] for of_model in where]
        rows.append(row)
    return rows


def measure_experts(**how) -> dict:
    """Measure experts, as the page shows them."""
    return {
        "floor": round(PronounWorld().entropy_rate(), 4),
        "experts": EXPERTS,
        "chosen": CHOSEN,
        "steps": how.get("steps", STEPS),
        "seeds": how.get("seeds", SEEDS),
        "rows": experts_contest(**how),
    }
