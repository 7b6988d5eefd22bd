"""Chapter 20: how one model answers many people.

Questions of different lengths become one batch (``pad_left``), keys, values and weights are held in
fewer bits (``quantize``), several guessed tokens are checked in one pass of the model
(``speculative_accept``, ``speculative_generate``), and a token is read by a few of many experts
(``top_k_gate``, ``load_balance_loss``).

Ids are ``(..., n)``, masks True where attention is allowed, positions count from 0. Sources:
Leviathan et al. (2023), Fast Inference from Transformers via Speculative Decoding; Chen et al.
(2023), Accelerating Large Language Model Decoding with Speculative Sampling; Saxena (2023), Prompt
Lookup Decoding; Shazeer et al. (2017), Outrageously Large Neural Networks; Fedus et al. (2022),
Switch Transformers.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from attncourse.gpt import (
    Cache,
    filter_logits,
    likeliest,
    require_chosen,
    require_prompt,
    require_temperature,
)
from attncourse.llama import Llama
from attncourse.masking import causal_mask
from attncourse.support.arrays import require_count, require_divisor
from attncourse.support.shapes import Count, shaped
from attncourse.support.tensors import (
    require_float_tensor,
    require_ids,
    require_whole_numbers,
    seen,
)

# What comes next, guessed: the ids (g,), alone where each is certain, else with the distributions
# (g, n_vocab) that they were drawn from. Called with all ids so far and how many are wanted.
Draft = Callable[[Tensor, int], Tensor | tuple[Tensor, Tensor]]

# --- many questions at once -----------------------------------------------------------------------


def pad_left(
    sequences: Sequence[Sequence[int] | Int[Tensor, "_"]], pad: int
) -> tuple[Int[Tensor, "b n"], Int[Tensor, "b n"], Bool[Tensor, "b n n"]]:
    """Sequences of different lengths as one batch that ends together: (ids, positions, mask).

    ids: ``(b, n)``, with ``pad`` before the shorter ones. positions: ``(b, n)``, from 0 at each
    sequence's first token, and 0 on padding. mask: ``(b, n, n)``, causal and without padding, which
    is told by length, whatever the ids are. Raises ``ValueError`` for no sequence, an empty one,
    and ids that are not whole numbers from 0 on.
    """
    rows = require_sequences(sequences)
    pad = require_count("pad", pad, least=0)
    lengths = torch.tensor([len(row) for row in rows])
    n = int(lengths.max())
    ids = torch.full((len(rows), n), pad)  # (b, n)
    for place, row in zip(ids, rows, strict=True):
        place[n - len(row) :] = torch.as_tensor(row)
    positions = torch.arange(n) - (n - lengths)[:, None]  # (b, n), negative on padding
    real = positions >= 0
    mask = causal_mask(n) & real[:, None, :]  # (b, n, n)
    return ids, positions.clamp(min=0), mask


@torch.no_grad()
def generate_batch(
    model: Llama,
    sequences: Sequence[Sequence[int] | Int[Tensor, "_"]],
    n_new: int,
    choose: Callable[[Tensor], Tensor] | None = None,
    pad: int = 0,
) -> Int[Tensor, "b n_new"]:
    """The ``n_new`` ids that follow each of some sequences, which the model reads as one batch.

    ``choose`` maps logits ``(b, n_vocab)`` to ids ``(b,)``, the likeliest unless given. Raises
    ``ValueError`` as ``pad_left`` does, and where one would become longer than ``max_length``.
    """
    require_count("n_new", n_new)
    ids, positions, mask = pad_left(sequences, pad)
    require_room(model, ids.shape[-1], n_new)
    real, cache, new = mask[:, -1], [], []  # real: (b, n), False on padding
    for _ in range(n_new):
        logits, cache = model(ids, cache, mask, positions)
        ids = require_chosen((choose or likeliest)(logits[:, -1]), logits[:, -1])[:, None]  # (b, 1)
        new.append(ids)
        real = F.pad(real, (0, 1), value=True)
        mask, positions = real[:, None], positions[:, -1:] + 1  # (b, 1, c + 1), (b, 1)
    return torch.cat(new, dim=-1)


# --- smaller numbers ------------------------------------------------------------------------------


@shaped
def quantize(
    x: Float[Tensor, "*batch d"], bits: int, block: Count
) -> tuple[Int[Tensor, "*batch d"], Float[Tensor, "*batch blocks"], Float[Tensor, "*batch blocks"]]:
    """Each number as one of ``2^bits`` values between the least and the greatest of its block.

    ``scale = (max − min) / (2^bits − 1)`` and ``code = round((x − min) / scale)``, half to even,
    for each ``block`` neighbours along the last axis. A block of equal numbers has scale and codes
    0. Returns codes ``(..., d)``, uint8, and scale and minimum, ``(..., d / block)``. Raises
    ``ValueError`` for bits outside 2 to 8, a block that does not divide d, numbers that are not
    finite, and a block whose range its dtype does not hold.
    """
    require_count("bits", bits, least=2, most=8)
    require_divisor("block", block, "the last axis of x", x.shape[-1])
    require_finite_tensor("x", x)
    blocks = x.unflatten(-1, (-1, block))  # (..., d / block, block)
    minimum, maximum = blocks.aminmax(dim=-1)  # (..., d / block)
    scale = (maximum - minimum) / (2**bits - 1)
    require_finite_tensor("max − min of a block of x", scale)
    step = scale.where(scale > 0, 1)
    codes = ((blocks - minimum[..., None]) / step[..., None]).round()
    codes = codes.clamp(max=2**bits - 1)  # more only where the scale is too small for its dtype
    return codes.flatten(-2).to(torch.uint8), scale, minimum


def dequantize(
    codes: Int[Tensor, "... d"],
    scale: Float[Tensor, "... blocks"],
    minimum: Float[Tensor, "... blocks"],
) -> Float[Tensor, "... d"]:
    """The numbers that some codes stand for, ``minimum + scale · code``, block by block.

    Each is at most half a scale from what ``quantize`` was given, up to rounding and unless its
    block spans so little that the scale underflows. Returns ``(..., d)``. Raises ``ValueError``
    where the blocks do not divide d, minimum has another shape than scale, codes are
    no whole numbers from 0 on, and scale or minimum are not finite.
    """
    require_whole_numbers(codes, "... d", "codes")
    if (codes < 0).any():
        raise ValueError(f"codes: expected whole numbers from 0 on, got {int(codes.min())}")
    for name, tensor in (("scale", scale), ("minimum", minimum)):
        require_finite_tensor(name, require_float_tensor(name, tensor, "... blocks"))
    if minimum.shape != scale.shape or codes.shape[:-1] != scale.shape[:-1]:
        shapes = (tuple(codes.shape), tuple(scale.shape), tuple(minimum.shape))
        raise ValueError(
            "codes, scale, minimum: expected shapes (..., d), (..., blocks) and (..., blocks), "
            "got {}, {} and {}".format(*shapes)
        )
    n_blocks = scale.shape[-1]
    require_divisor("the blocks of scale", n_blocks, "the last axis of codes", codes.shape[-1])
    blocks = codes.unflatten(-1, (n_blocks, -1))  # (..., blocks, block)
    return (minimum[..., None] + scale[..., None] * blocks).flatten(-2)


# --- guess and check ------------------------------------------------------------------------------


def speculative_accept(
    draft: Int[Tensor, "k"],
    p_draft: Float[Tensor, "k n_vocab"],
    p_target: Float[Tensor, "k_and_1 n_vocab"],
    rng: torch.Generator | None,
) -> Int[Tensor, "kept_and_1"]:
    """The guessed ids that are kept, and one more: distributed as if the target had drawn them all.

    Guess i, drawn from ``q = p_draft[i]``, is kept with probability ``min(1, p / q)``, where
    ``p = p_target[i]`` is what the target says there. The first that is not is replaced by one
    drawn from ``max(p − q, 0)``, made to sum to 1, and ends it; after k that are kept, one more is
    drawn from the last row. k may be 0. Returns ids, ``(kept + 1,)``, int64. Raises ``ValueError``
    where shapes do not fit, a guess is no id or has q = 0, or a row is no distribution.
    Source: Leviathan et al. (2023), algorithm 1 and appendix A.1.
    """
    require_guesses(draft, p_draft, p_target)
    require_generator(rng)
    q = require_distributions("p_draft", p_draft.double())  # (k, n_vocab)
    p = require_distributions("p_target", p_target.double())  # (k + 1, n_vocab)
    require_drawn(draft, q)
    for i, token in enumerate(draft.tolist()):
        u = torch.rand((), generator=rng, dtype=p.dtype)
        if u * q[i, token] >= p[i, token]:
            missing = (p[i] - q[i]).clamp(min=0)  # (n_vocab,); multinomial makes it sum to 1
            instead = torch.multinomial(missing, 1, generator=rng)
            return torch.cat([draft[:i], instead])
    more = torch.multinomial(p[-1], 1, generator=rng)
    return torch.cat([draft, more])


def speculative_generate(
    model: Llama,
    ids: Int[Tensor, "n"],
    n_new: int,
    draft: Draft,
    k: int = 4,
    temperature: float = 0.0,
    rng: torch.Generator | None = None,
) -> Int[Tensor, "n_and_new"]:
    """Return the ids and ``n_new`` more, as the model alone writes them, in at most n_new passes.

    Each pass reads up to k ids that ``draft(ids, k)`` guesses, and ``speculative_accept`` says what
    is kept. At temperature 0 the ids are those of ``model.generate``, but for ties that rounding
    breaks; above, they have the distribution of ids that are drawn one by one. Raises
    ``ValueError`` for an empty prompt, a negative temperature, and where the text or the draft
    would become longer than ``max_length``.
    """
    stream = speculative_stream(model, ids, n_new, draft, k, temperature, rng)
    return torch.cat([ids, *stream])


@torch.no_grad()
def speculative_stream(
    model: Llama,
    ids: Int[Tensor, "n"],
    n_new: int,
    draft: Draft,
    k: int = 4,
    temperature: float = 0.0,
    rng: torch.Generator | None = None,
) -> Iterator[Int[Tensor, "kept_and_1"]]:
    """The new ids of ``speculative_generate``, one tensor for each pass of the model."""
    require_prompt(ids, n_new)
    require_whole_numbers(ids, "n")
    require_count("k", k, least=0, most=model.max_length - 1)
    cache, end = [], require_room(model, len(ids), n_new)
    while len(ids) < end:
        wanted = min(k, end - len(ids) - 1)
        guess, p_draft = guessed(draft, ids, wanted, model.config.n_vocab)
        unread = ids[cached(cache) :]
        logits, cache = model(torch.cat([unread, guess]), cache)  # (unread + g, n_vocab)
        p_target = token_probabilities(logits[-len(guess) - 1 :], temperature)  # (g + 1, n_vocab)
        new = speculative_accept(guess, p_draft, p_target, rng)
        yield new
        ids = torch.cat([ids, new])
        cache = cut_back(cache, len(ids) - 1)  # what was refused is forgotten; the last is unread


def token_probabilities(
    logits: Float[Tensor, "*batch n_vocab"], temperature: float = 1.0
) -> Float[Tensor, "*batch n_vocab"]:
    """``softmax(logits / temperature)`` in float64; at temperature 0 the likeliest has 1.

    Raises ``ValueError`` for a temperature that is negative or not finite, and for logits that say
    nothing: NaN, ∞, or −∞ throughout a row.
    """
    require_temperature(temperature)
    require_float_tensor("logits", logits, "... n_vocab")
    most = logits.amax(dim=-1, keepdim=True)
    require_finite_tensor("the largest of logits", most)
    if temperature == 0:
        return one_hot(logits.argmax(dim=-1), logits.shape[-1])
    return ((logits - most).double() / temperature).softmax(dim=-1)


def one_hot(ids: Int[Tensor, "*batch"], n_vocab: int) -> Float[Tensor, "*batch n_vocab"]:
    """The distributions that are certain of these ids, in float64."""
    return F.one_hot(ids.long(), n_vocab).double()


def cached(cache: Sequence[Cache]) -> int:
    """Return the number of tokens in a cache."""
    return cache[0][0].shape[-2] if cache else 0


def cut_back(cache: Sequence[Cache], n: int) -> list[Cache]:
    """The cache of the first n tokens; ``ValueError`` where it holds fewer."""
    require_count("n", n, least=0, most=cached(cache))
    return [(key[..., :n, :], value[..., :n, :]) for key, value in cache]


def guessed(draft: Draft, ids: Tensor, wanted: int, n_vocab: int) -> tuple[Tensor, Tensor]:
    """Return a draft's guesses, ``(g,)``, and its distributions, ``(g, n_vocab)``.

    Raises ``ValueError`` for more ids than are wanted, and for what are no ids.
    """
    guess = draft(ids, wanted)
    guess, *rest = guess if isinstance(guess, tuple) else (guess,)
    require_whole_numbers(guess, name="draft")
    if guess.ndim != 1 or len(guess) > wanted:
        got = len(guess) if guess.ndim == 1 else f"shape {tuple(guess.shape)}"
        raise ValueError(f"draft: expected at most {wanted} ids, got {got}")
    if len(guess):
        require_ids(guess, n_vocab)
    if len(rest) > 1:
        raise ValueError(f"draft: expected ids and their distributions, got {1 + len(rest)} things")
    return guess, rest[0] if rest else one_hot(guess, n_vocab)


# --- two drafts -----------------------------------------------------------------------------------


def lookup_draft(ids: Int[Tensor, "n"], k: int, n_match: int = 2) -> Int[Tensor, "g"]:
    """Return the ids that followed where the last ``n_match`` ids stood before, or none.

    The latest such place counts. Where the text ends before k ids are found, what was copied is
    copied on. Returns ``(k,)`` or ``(0,)``. Source: Saxena (2023).
    """
    require_whole_numbers(ids, "n")
    require_count("k", k, least=0)
    require_count("n_match", n_match)
    n = len(ids)
    if n <= n_match:
        return ids[:0]
    before = ids[:-1].unfold(0, n_match, 1)  # (n − n_match, n_match)
    places = (before == ids[-n_match:]).all(dim=-1).nonzero()
    if len(places) == 0:
        return ids[:0]
    start = int(places[-1]) + n_match
    return ids[start + torch.arange(k) % (n - start)]


class ModelDraft:
    """A draft by a smaller model with the same vocabulary, which keeps a cache of its own."""

    def __init__(self, model: Llama, temperature: float = 0.0, rng: torch.Generator | None = None):
        """Keep the model, with an empty cache; ``rng`` draws where temperature is above 0."""
        self.model, self.rng = model, require_generator(rng)
        self.temperature = require_temperature(temperature)
        self.read, self.cache = torch.empty(0, dtype=torch.long), []

    @torch.no_grad()
    def __call__(self, ids: Int[Tensor, "n"], k: int) -> tuple[Tensor, Tensor]:
        """Return k ids, ``(k,)``, and the distributions they were drawn from, ``(k, n_vocab)``."""
        require_whole_numbers(ids, "n")
        require_count("k", k, least=0)
        rows = [torch.empty(0, self.model.config.n_vocab, dtype=torch.float64)]
        known = min(common_prefix(self.read, ids), len(ids) - 1)
        self.cache, end = cut_back(self.cache, known), len(ids) + k
        while len(ids) < end:
            logits, self.cache = self.model(ids[cached(self.cache) :], self.cache)
            rows.append(token_probabilities(logits[-1:], self.temperature))  # (1, n_vocab)
            drawn = torch.multinomial(rows[-1][0], 1, generator=self.rng)
            self.read, ids = ids, torch.cat([ids, drawn])
        return ids[end - k :], torch.cat(rows)


def common_prefix(a: Int[Tensor, "m"], b: Int[Tensor, "n"]) -> int:
    """Return how many ids two sequences share from their first on."""
    short = min(len(a), len(b))
    return int((a[:short] == b[:short]).cumprod(0).sum())


def with_layers(model: Llama, layers: Sequence[int]) -> Llama:
    """The model of some of these layers, in this order; it shares its parts with the other.

    Raises ``ValueError`` for no layer, and for one that does not exist.
    """
    layers = [require_count("layers", i, least=0, most=len(model.blocks) - 1) for i in layers]
    require_count("the number of layers", len(layers))
    with torch.device("meta"):
        short = Llama(replace(model.config, n_layers=len(layers)))
    short.tokens, short.norm, short.out = model.tokens, model.norm, model.out
    short.blocks = nn.ModuleList(model.blocks[i] for i in layers)
    return short.train(model.training)


# --- experts --------------------------------------------------------------------------------------


@shaped
def top_k_gate(
    logits: Float[Tensor, "*batch n_experts"], k: int
) -> Float[Tensor, "*batch n_experts"]:
    """Return each expert's weight for a token: the softmax over the k largest logits, else 0.

    Of equal logits the lower index is chosen; what is chosen sums to 1. Returns
    ``(..., n_experts)``. Raises ``ValueError`` for a k that is not from 1 to n_experts, and for
    logits that are not finite. Source: Shazeer et al. (2017), equations 3 to 5, without the noise.
    """
    require_count("k", k, most=logits.shape[-1])
    require_finite_tensor("logits", logits)
    return filter_logits(logits, top_k=k).softmax(dim=-1)


@shaped
def load_balance_loss(logits: Float[Tensor, "*batch n_experts"], k: int = 1) -> Float[Tensor, ""]:
    """Return how unevenly tokens are spread over experts: ``n_experts · Σ_i f_i P_i``, 1 if evenly.

    f_i is the fraction of the tokens' choices, k for each, that fall on expert i, which has no
    gradient; P_i is the mean of ``softmax(logits)[i]``, which has one. All axes but the last are
    tokens. Raises ``ValueError`` for a k that is not from 1 to n_experts, and for logits that are
    not finite. Source: Fedus et al. (2022), equations 4 to 6, where k is 1 and the loss has a
    factor α of 0.01.
    """
    n_experts = logits.shape[-1]
    require_count("k", k, most=n_experts)
    require_finite_tensor("logits", logits)
    rows = logits.reshape(-1, n_experts)  # (tokens, n_experts)
    chosen = filter_logits(rows, top_k=k).isfinite()
    fraction = chosen.to(rows).mean(dim=0) / k  # (n_experts,)
    probability = rows.softmax(dim=-1).mean(dim=0)  # (n_experts,)
    return n_experts * (fraction * probability).sum()


# --- refusals -------------------------------------------------------------------------------------


def require_sequences(sequences: Sequence) -> list[Int[Tensor, "_"]]:
    """The sequences as tensors of int64; ``ValueError`` unless each holds an id or more."""
    rows = []
    if not isinstance(sequences, Iterable):
        raise ValueError(f"sequences: expected a list of lists of ids, got {sequences!r}")
    for i, sequence in enumerate(sequences):
        try:
            row = torch.as_tensor(sequence)
        except (TypeError, ValueError, RuntimeError, OverflowError) as error:
            raise ValueError(f"sequences: expected whole numbers in {i}, got {error}") from None
        if row.ndim != 1 or len(row) == 0:
            raise ValueError(
                f"sequences: expected one id or more in each, got shape {tuple(row.shape)} in "
                f"sequence {i}"
            )
        require_whole_numbers(row)
        if (row < 0).any():
            raise ValueError(f"sequences: expected ids from 0 on, got {int(row.min())} in {i}")
        rows.append(row.long())
    if not rows:
        raise ValueError("sequences: expected one or more, got none")
    return rows


def require_finite_tensor(name: str, x: Tensor) -> None:
    """Raises ``ValueError`` where a number is NaN or infinite."""
    if seen(~x.isfinite()):
        where = tuple((~x.isfinite()).nonzero()[0].tolist())
        raise ValueError(f"{name}: expected finite numbers, got {float(x[where])} at index {where}")


def require_guesses(draft: Tensor, p_draft: Tensor, p_target: Tensor) -> None:
    """Raises ``ValueError`` where shapes do not fit each other, or a guess is no id."""
    require_whole_numbers(draft, name="draft")
    for name, p in (("p_draft", p_draft), ("p_target", p_target)):
        if not isinstance(p, Tensor) or not p.is_floating_point() or p.ndim != 2:
            got = f"{p.dtype} of shape {tuple(p.shape)}" if isinstance(p, Tensor) else type(p)
            raise ValueError(f"{name}: expected a floating-point tensor with a row each, got {got}")
    shapes = tuple(draft.shape), tuple(p_draft.shape), tuple(p_target.shape)
    k, n_vocab = draft.numel(), p_target.shape[-1]
    if n_vocab == 0 or shapes != ((k,), (k, n_vocab), (k + 1, n_vocab)):
        raise ValueError(
            "draft, p_draft, p_target: expected shapes (k,), (k, n_vocab) and (k + 1, n_vocab), "
            "got {}, {} and {}".format(*shapes)
        )
    if k:
        require_ids(draft, n_vocab)


def require_drawn(draft: Tensor, q: Tensor) -> None:
    """Raises ``ValueError`` for a guess that cannot have been drawn from its row of q."""
    impossible = q.gather(-1, draft.long()[:, None])[:, 0] == 0  # (k,)
    if impossible.any():
        i = int(impossible.nonzero()[0])
        got = f"id {int(draft[i])}, which has probability 0 in row {i}"
        raise ValueError(f"draft: expected ids that were drawn from p_draft, got {got}")


def require_generator(rng: torch.Generator | None) -> torch.Generator | None:
    """rng; ``ValueError`` unless it is a generator of torch, or None for torch's own."""
    if not isinstance(rng, torch.Generator | None):
        raise ValueError(f"rng: expected a torch.Generator, got {type(rng).__name__}")
    return rng


def require_distributions(name: str, p: Tensor) -> Tensor:
    """p, each row summing to 1; ``ValueError`` unless it did so to a thousandth."""
    total = p.sum(dim=-1, keepdim=True)
    right = (p >= 0).all(dim=-1) & ((total[..., 0] - 1).abs() < 1e-3)  # NaN is neither
    if not right.all():
        row = int((~right).nonzero()[0])
        got = f"a sum of {float(total[row]):.6g} and a least of {float(p[row].min()):.6g}"
        raise ValueError(
            f"{name}: expected probabilities that sum to 1 in each row, got {got} in row {row}"
        )
    return p / total


def require_room(model: Llama, n: int, n_new: int) -> int:
    """Return the length of the text with n_new ids; ``ValueError`` if the model reads fewer."""
    if n + n_new > model.max_length:
        got = f"{n} and {n_new} new ones"
        raise ValueError(f"ids: expected at most {model.max_length} tokens in all, got {got}")
    return n + n_new
