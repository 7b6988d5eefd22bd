"""Pronoun world's truth for chapter 14: which earlier words decide the storyteller's pronouns.

In every story the pronoun stands behind the first full stop, and the character alone decides it. So
it is known, without asking any model, which token *should* matter where the pronoun is chosen.
"""

import copy

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attncourse.gpt import GPT
from attncourse.interpret import ablate, attention_maps, rollout
from attncourse.masking import causal_mask
from attncourse.tasks.pretrained import gpt2_from_hub
from attncourse.tasks.pronouns import PAD, PronounWorld


def places(world: PronounWorld, ids: Tensor) -> tuple[Int[Tensor, "b"], Int[Tensor, "b"]]:
    """Return where each story's character stands, and the full stop before its pronoun.

    The character is the word before *is*: a name or a profession. ids: ``(b, n)``.
    """
    stop = (ids == world.places["."]).int().argmax(dim=-1)
    return (ids == world.places["is"]).int().argmax(dim=-1) - 1, stop


def antecedent_patterns(world: PronounWorld, ids: Tensor) -> Bool[Tensor, "b n n"]:
    """Return each story's pattern, True where the full stop looks at the character."""
    who, stop = places(world, ids)
    pattern = torch.zeros(*ids.shape, ids.shape[-1], dtype=torch.bool)
    pattern[torch.arange(len(ids)), stop, who] = True
    return pattern


@torch.no_grad()
def costs(model: nn.Module, world: PronounWorld, ids: Tensor) -> Float[Tensor, "3"]:
    """Return the mean surprise, in nats: at every token, and at the pronoun in its two parts.

    That a pronoun comes, −log p(she or he), and then which, −log p(the right one | she or he). The
    two add up to the surprise at the pronoun. ids: ``(b, n)``.
    """
    logs = model(ids).log_softmax(dim=-1)  # (b, n, n_vocab)
    surprise = -logs[:, :-1].gather(-1, ids[:, 1:, None])[..., 0]  # (b, n − 1)
    _, stop = places(world, ids)
    at_stop = logs[torch.arange(len(ids)), stop]  # (b, n_vocab)
    either = at_stop[:, [world.places["she"], world.places["he"]]].logsumexp(dim=-1)
    right = at_stop.gather(-1, ids.gather(1, stop[:, None] + 1))[:, 0]
    everywhere = surprise[ids[:, 1:] != PAD].mean()
    return torch.stack([everywhere, -either.mean(), (either - right).mean()])


def price_list(
    model: GPT, world: PronounWorld, ids: Tensor, how: str = "zero", over: Tensor | None = None
) -> Float[Tensor, "layers heads 3"]:
    """Return what it costs in nats to switch each head off.

    ``costs`` are those of the model as it is.

    ``how`` and ``over`` are the last arguments of ``ablate``.
    """
    whole = costs(model, world, ids)
    n_heads = model.blocks[0].attention.n_heads
    prices = [
        costs(ablate(model, layer, head, how, over), world, ids) - whole
        for layer in range(len(model.blocks))
        for head in range(n_heads)
    ]
    return torch.stack(prices).unflatten(0, (-1, n_heads))


def he_share(model: nn.Module, world: PronounWorld, beginning: str) -> float:
    """Return p(he) / (p(he) + p(she)) after these words."""
    with torch.no_grad():
        logits = model(torch.tensor(world.beginning(beginning)))[-1]
    return (logits[world.places["he"]] - logits[world.places["she"]]).sigmoid().item()


def preference(model: GPT, world: PronounWorld, vectors: Tensor, hidden: int | None = None):
    """Return log p(he) − log p(she) after the last of some token vectors ``(n, d_model)``.

    ``hidden``: a place that no other token may attend to.
    """
    n = len(vectors)
    mask = causal_mask(n)
    if hidden is not None:
        mask = mask.clone()
        mask[hidden + 1 :, hidden] = False
    x = model.positions(vectors, torch.arange(n))
    for block in model.blocks:
        x = block(x, mask)
    logits = model.out(model.norm(x))[-1]
    return logits[world.places["he"]] - logits[world.places["she"]]


METHODS = ("attention, last layer", "rollout", "gradient × input", "hide the token")


def evidence(
    model: GPT, world: PronounWorld, ids: Int[Tensor, "n"]
) -> dict[str, Float[Tensor, "n"]]:
    """Return how much each token of a beginning matters to its pronoun, by four methods, as shares.

    The last layer's map, averaged over its heads; ``rollout``; the size of the gradient of
    log p(he) − log p(she) by a token's vector times that vector; and how far that difference moves
    when nobody may attend to the token. The token that asks cannot be hidden and counts as 0.
    """
    maps = attention_maps(model, ids)
    vectors = model.tokens(ids).detach().requires_grad_()
    whole = preference(model, world, vectors)
    gradient = torch.autograd.grad(whole, vectors)[0]
    with torch.no_grad():
        moved = [preference(model, world, vectors, j) - whole for j in range(len(ids) - 1)]
    amounts = (
        maps[-1].mean(dim=0)[-1],
        rollout(maps)[-1],
        (gradient * vectors).sum(dim=-1).detach().abs(),
        torch.stack([*moved, torch.tensor(0.0)]).abs(),
    )
    return {name: x / x.sum() for name, x in zip(METHODS, amounts, strict=True)}


def name_stories(world: PronounWorld, n: int) -> list[Int[Tensor, "m"]]:
    """Return the beginnings of n stories about a name, up to the full stop before the pronoun.

    A name decides the pronoun; a profession makes it likely at most.
    """
    beginnings: list[Tensor] = []
    professions = {world.places[character_id] for character_id in world.men}
    while len(beginnings) < n:
        ids = world.sample(n)
        who, stop = places(world, ids)
        character = ids[torch.arange(n), who].tolist()
        beginnings += [
            row[: end + 1]
            for row, end, character_id in zip(ids, stop.tolist(), character, strict=True)
            if character_id not in professions
        ]
    return beginnings[:n]


def share_on_character(
    model: GPT, world: PronounWorld, stories: list
) -> dict[str, tuple[float, float]]:
    """Return by each method of ``evidence`` what the character gets on average, and how often most.

    That is how often it gets most of the tokens before the full stop.
    """
    sums = {name: [0.0, 0.0] for name in METHODS}
    for ids in stories:
        who = int((ids == world.places["is"]).int().argmax()) - 1
        for name, shares in evidence(model, world, ids).items():
            sums[name][0] += shares[who].item()
            sums[name][1] += float(shares[:-1].argmax() == who)
    n = len(stories)
    return {name: (total / n, most / n) for name, (total, most) in sums.items()}


def without(model: GPT, heads: list[tuple[int, int]]) -> GPT:
    """Return the model with several heads switched off."""
    changed = copy.deepcopy(model)
    for layer, head in heads:
        changed = ablate(changed, layer, head)
    return changed


def question(world: PronounWorld, who: str) -> list[str]:
    """Return beginnings about one character that differ in one trait, to ask for the pronoun."""
    return [f"{who} is {trait} ." for trait in ("small", "cute", "quiet", "brave", "tall")]


PRONOUN_PROMPTS = (
    "The doctor asked the nurse a question. She",
    "The doctor asked the nurse a question. He",
)


def probe_gpt2(layer: int = 5, head: int = 10, *, download: bool = False) -> None:
    """Print where a head of GPT-2 looks from *She* and from *He*, or why it was not asked.

    With ``download`` the weights are loaded, and fetched where they are not on this machine yet,
    0.5 GB; without, nothing is asked.
    """
    try:
        if not download:
            raise OSError
        model, tokenizer = gpt2_from_hub()
    except (ImportError, OSError, ValueError):
        print("GPT-2 was not asked: it needs the package transformers and its weights,")
        print("which probe_gpt2(download=True) fetches where there is a network.")
        return
    for text in PRONOUN_PROMPTS:
        ids = torch.tensor(tokenizer.encode(text))
        row = attention_maps(model, ids)[layer, head, -1]
        words = [tokenizer.decode([i]).strip() for i in ids.tolist()]
        shares = {w: row[words.index(w)].item() for w in ("doctor", "nurse")}
        shares_in_words = ", ".join(f"{w} {share:.2f}" for w, share in shares.items())
        print(f"layer {layer}, head {head}, from {words[-1]!r}: {shares_in_words}")
