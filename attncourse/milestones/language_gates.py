"""Gates of a model that writes: before it has learned anything, and afterwards."""

import math
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from attncourse.milestones import blocks, gates
from attncourse.milestones.gates import difference_message, of_shape, relative_difference
from attncourse.milestones.milestone import Gate
from attncourse.tasks.language_model import floor_of_window
from attncourse.tasks.pronouns import PAD, PronounWorld

FRESH = 4242  # the seed of stories that no training reads


@cache
def sample_stories(n: int = 8) -> Tensor:
    """Ids of fresh stories, ``(n, 17)``."""
    return PronounWorld(seed=FRESH).sample(n)


def story_openings() -> Tensor:
    """The first eight words of stories, without the start that all have."""
    return sample_stories()[:, 1:9]


def surprises(model: Any, ids: Tensor) -> Tensor:
    """Our own loss: the surprise at each word that came, padding left out, in nats."""
    logits, next_words = model(ids)[:, :-1], ids[:, 1:]
    return F.cross_entropy(logits.mT, next_words, reduction="none")[next_words != PAD]


def logits_for_every_word(model: Any) -> str:
    """Return what is wrong with the logits' shape; "" for one row a word."""
    ids = sample_stories()
    return of_shape(model(ids), (*ids.shape, len(PronounWorld().words)))


def check_language_diagonal(model: Any) -> str:
    """Return that a word does not see itself; "" where each does."""
    return "a word does not see itself" if not model.causal(8).diagonal().all() else ""


def check_language_cache(model: Any) -> str:
    """Read piece by piece, with a cache, a text is what it is read at once."""
    said, caches = [], [None] * len(model.blocks)
    for piece in sample_stories().split([1, 4, 1, 11], dim=1):
        logits, caches = model.with_cache(piece, caches)
        said.append(logits)
    far = relative_difference(model(sample_stories()), torch.cat(said, dim=1))
    return difference_message("with a cache it says something else than without", far)


def check_language_loss(model: Any) -> str:
    """Return the loss and our own where they differ; "" where they agree."""
    ids = sample_stories()
    logits = model(ids)
    ours = float(surprises(model, ids).mean())
    theirs = float(model.loss(logits, ids, PAD))
    if not abs(theirs - ours) < 1e-3:
        return f"the loss is {theirs:.4g}, our own finds {ours:.4g}"
    whole = float(model.loss(logits[:, :6], ids[:, :6]))
    ours = float(F.cross_entropy(logits[:, :5].mT, ids[:, 1:6]))
    return (
        f"with no padding_id the loss is {whole:.4g}, ours {ours:.4g}"
        if not abs(whole - ours) < 1e-3
        else ""
    )


def goes_on(model: Any) -> str:
    """It writes behind what there is, the likeliest word each time, beyond its context too."""
    ids = written = sample_stories()[:4, :15]
    for _ in range(4):
        row = model(written[:, -model.max_length :])[:, -1]
        written = torch.cat([written, row.argmax(-1, keepdim=True)], dim=1)
    got = model.go_on(model, ids, 4)
    if got.shape != written.shape:
        return f"4 words behind 15 make ids of shape {tuple(got.shape)}"
    if (got[:, :15] != ids).any():
        return "the beginning is not what it was"
    drawn = model.go_on(model, ids, 2, lambda logits: logits.argmin(-1))
    if (drawn[:, 15] == written[:, 15]).any():
        return "its words are not those that were chosen"
    right = float((got == written)[:, 15:].float().mean())
    return f"{right:.0%} of the words it goes on with are the likeliest" if right < 1 else ""


def drawn_as_often(model: Any) -> str:
    """Words are drawn as often as they are likely, at every temperature."""
    shares = torch.tensor([0.4, 0.1, 0.3, 0.2])
    rows = shares.log().expand(2, 2000, 4)
    for temperature, top_k, right in (
        (1.0, None, shares),
        (0.5, None, shares**2 / (shares**2).sum()),
        (1.0, 2, torch.tensor([4, 0, 3, 0]) / 7),
        (0, None, torch.tensor([1.0, 0, 0, 0])),
    ):
        got = model.sample(rows, temperature, top_k)
        if got.shape != (2, 2000):
            return f"for 2 × 2000 rows it drew ids of shape {tuple(got.shape)}"
        frequencies = got.flatten().bincount(minlength=4) / got.numel()
        if (frequencies - right).abs().max() > 0.05:
            seen = ", ".join(f"{share:.2f}" for share in frequencies)
            want = ", ".join(f"{share:.2f}" for share in right)
            return f"at temperature {temperature:g} shares are {seen}, expected {want}"
    return "it draws the same words every time" * torch.equal(
        model.sample(rows), model.sample(rows)
    )


def only_the_likely(model: Any) -> str:
    """Check that cut logits are −∞, the others unchanged, and as many as were asked for."""
    logits = model(sample_stories())[:, -4:].flatten(0, 1)  # (32, words)
    best = logits.topk(5).indices
    likely_logits = model.likely(logits, top_k=5)
    if likely_logits.shape != logits.shape or not torch.equal(
        likely_logits.gather(1, best), logits.gather(1, best)
    ):
        return "the five likeliest words do not keep their logits"
    if int((likely_logits > -math.inf).sum()) != 5 * len(logits):
        return "of every row, the five likeliest words are not all that is left"
    likely_logits = model.likely(logits, top_p=0.6)
    shares, left = logits.softmax(-1), likely_logits > -math.inf
    whole = shares.where(left, 0).sum(-1)
    least = shares.where(left, 1).amin(-1)
    if (whole < 0.6 - 1e-4).any() or (whole - least > 0.6 + 1e-4).any():
        return "the words left are not the fewest that make 60%"
    return (
        "a likelier word is cut" if (shares.where(~left, 0).amax(-1) > least + 1e-6).any() else ""
    )


def choices(model: Any) -> str:
    """Perplexity of two batches of different sizes is that of both together."""
    parts = [surprises(model, ids) for ids in sample_stories().split([3, 5])]
    right = float(torch.cat(parts).mean().exp())
    got = model.perplexity([float(p.mean()) for p in parts], [len(p) for p in parts])
    return (
        f"the perplexity of two batches is {got:.4g}, ours {right:.4g}"
        if not abs(got - right) < 1e-3 * right
        else ""
    )


# --- once it has learned --------------------------------------------------------------------------


def near_the_floor(model: Any) -> str:
    """Return what fresh stories cost where that is far above the floor; else ""."""
    ids = sample_stories(1000)
    loss, world = float(surprises(model, ids).mean()), PronounWorld()
    pairs, floor = floor_of_window(ids, 1, PAD), world.entropy_rate()
    if loss < floor + 0.25 * (pairs - floor):
        return ""
    return (
        f"fresh stories cost {loss:.3f} nats a word; counting pairs of words costs {pairs:.3f}, "
        f"and no model less than {floor:.3f}"
    )


def check_language_attention(model: Any) -> str:
    """With attention made uniform, which no query asks for, it is lost."""
    ids = sample_stories(200)
    before = float(surprises(model, ids).mean())
    with blocks.made_zero(b.attention.W_q for b in model.blocks):
        after = float(surprises(model, ids).mean())
    return (
        f"with uniform attention its loss is no larger ({after:.3f}, {before:.3f})"
        if after < before + 0.1
        else ""
    )


def stories_are_right(model: Any) -> str:
    """Return how many of the stories written are none, where many are; else ""."""
    world = PronounWorld()
    written = [world.decode(ids[1:]) for ids in model.write(200)]
    right = sum(math.isfinite(world.surprise(story)) for story in written) / len(written)
    wrong = next((s for s in written if not math.isfinite(world.surprise(s))), "")
    return (
        f"{right:.0%} of what it writes are stories; this is none: {wrong}" if right < 0.6 else ""
    )


UNTRAINED = (  # what takes least time first
    Gate("perplexity is that of all words", choices),
    Gate("the loss is our own", check_language_loss),
    Gate("only the likely are left", only_the_likely),
    Gate("drawn as often as likely", drawn_as_often),
    Gate("logits for every word", logits_for_every_word),
    Gate("a word sees itself", check_language_diagonal),
    Gate("one story at a time or many", gates.batch_independence_gate(sample_stories, "story")),
    Gate("no batch axis", gates.no_batch_axis_gate(sample_stories, "story")),
    Gate("everything behind is seen", gates.all_behind(story_openings, "word")),
    Gate("nothing ahead is seen", gates.nothing_ahead(sample_stories, "words")),
    Gate("maps are shares", blocks.map_rows_gate(sample_stories, causal=True)),
    Gate("branches add to the stream", blocks.branches_add(sample_stories)),
    Gate("rows of one size", blocks.norm_rows_gate(sample_stories)),
    Gate("blocks are their parts", blocks.block_parts_gate(sample_stories, causal=True)),
    Gate("a cache changes nothing", check_language_cache),
    Gate("it goes on with the likeliest", goes_on),
)
TRAINED = (
    Gate("fresh stories, near the least loss", near_the_floor),
    Gate("its attention counts", check_language_attention),
    Gate("what it writes are stories", stories_are_right),
)
