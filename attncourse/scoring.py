"""Chapter 6: ways to compare a query with a key, and the model that needed one first.

A score says how well a query fits a key. All scores here map queries ``(..., m, d_q)`` and keys
``(..., n, d_k)`` to ``(..., m, n)``, row i for query i; batch axes broadcast, and the floating
dtype stays. The weights that ``attend`` makes of them are chapter 5's.

Sources: Bahdanau, Cho and Bengio (2015), Neural Machine Translation by Jointly Learning to Align
and Translate; Luong, Pham and Manning (2015), Effective Approaches to Attention-based Neural
Machine Translation, section 3.1.
"""

import datetime
import math
from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from attncourse.arrays import require_count
from attncourse.kqv import attention_scores, softmax_over_keys
from attncourse.tensors import require_float_tensor, require_same_batch, require_same_dtype

FIRST, LAST = datetime.date(1900, 1, 1), datetime.date(2099, 12, 31)
MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september",
          "october", "november", "december")  # fmt: skip
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
FORMATS = (
    "{day}/{month_number}/{year}",
    "{day} {month:.3} {year}",
    "{day} {month} {year}",
    "{month} {day}, {year}",
    "{weekday} {day} {month} {year}",
    "{weekday}, the {day}{th} of {month} {year}",
)
WRITTEN = "abcdefghijklmnopqrstuvwxyz0123456789/, "  # the characters of a written date
ISO = "0123456789- "  # and of its translation


def dot_score(
    query: Float[Tensor, "*batch m d"], key: Float[Tensor, "*batch n d"]
) -> Float[Tensor, "*batch m n"]:
    """The dot product of every query with every key, ``S[i, j] = query[i] · key[j]``.

    query: ``(..., m, d)``. key: ``(..., n, d)``. Returns ``(..., m, n)``. Raises ``ValueError``
    where queries and keys differ in width.
    """
    return attention_scores(query, key)  # (..., m, d) @ (..., d, n)


def scaled_dot_score(
    query: Float[Tensor, "*batch m d"], key: Float[Tensor, "*batch n d"]
) -> Float[Tensor, "*batch m n"]:
    """The dot product divided by the root of the width, ``S[i, j] = query[i] · key[j] / √d``.

    Arguments and errors as for ``dot_score``. Source: Vaswani et al. (2017), section 3.2.1.
    """
    return dot_score(query, key) / math.sqrt(query.shape[-1])


class BilinearScore(nn.Module):
    """The score ``S[i, j] = query[i] W key[j]ᵀ``, with a learned ``W`` of shape ``(d_q, d_k)``.

    For features of unit variance the new module's scores have unit variance too: the entries of
    ``W`` are drawn with variance 1/(d_q d_k). Luong et al. (2015) call this score *general*.
    """

    def __init__(self, d_q: int, d_k: int):
        super().__init__()
        d_q, d_k = require_count("d_q", d_q), require_count("d_k", d_k)
        self.W = nn.Parameter(torch.randn(d_q, d_k) / math.sqrt(d_q * d_k))

    def forward(
        self, query: Float[Tensor, "*batch m d_q"], key: Float[Tensor, "*batch n d_k"]
    ) -> Float[Tensor, "*batch m n"]:
        """The scores of every query with every key."""
        d_q, d_k = self.W.shape
        require_scorable(query, key, d_q, d_k, self.W)
        return query @ self.W @ key.mT  # (..., m, d_q) @ (d_q, d_k) @ (..., d_k, n)


class AdditiveScore(nn.Module):
    """The score of a network with one hidden layer, ``S[i, j] = w(tanh(W_q(q_i) + W_k(k_j)))``.

    ``W_q`` maps d_q features to d_hidden, ``W_k`` maps d_k to d_hidden, ``w`` maps d_hidden to 1;
    none has a bias. The hidden layer is ``(..., m, n, d_hidden)``: one for every pair. Source:
    Bahdanau et al. (2015), appendix A.1.2; the *concat* score of Luong et al. (2015) is the same.
    """

    def __init__(self, d_q: int, d_k: int, d_hidden: int):
        super().__init__()
        d_q, d_k = require_count("d_q", d_q), require_count("d_k", d_k)
        d_hidden = require_count("d_hidden", d_hidden)
        self.W_q = nn.Linear(d_q, d_hidden, bias=False)
        self.W_k = nn.Linear(d_k, d_hidden, bias=False)
        self.w = nn.Linear(d_hidden, 1, bias=False)

    def forward(
        self, query: Float[Tensor, "*batch m d_q"], key: Float[Tensor, "*batch n d_k"]
    ) -> Float[Tensor, "*batch m n"]:
        """The scores of every query with every key."""
        d_q, d_k = self.W_q.in_features, self.W_k.in_features
        require_scorable(query, key, d_q, d_k, self.w.weight)
        rows = self.W_q(query).unsqueeze(-2)  # (..., m, 1, d_hidden)
        columns = self.W_k(key).unsqueeze(-3)  # (..., 1, n, d_hidden)
        return self.w(torch.tanh(rows + columns)).squeeze(-1)  # (..., m, n)


def attend(
    scores: Float[Tensor, "*batch m n"],
    values: Float[Tensor, "*batch n d_v"],
    mask: Bool[Tensor, "*#batch #m #n"] | None = None,
) -> Float[Tensor, "*batch m d_v"]:
    """The blend of values for each query, ``U = softmax(S) V``, whatever made the scores.

    scores: ``(..., m, n)``. values: ``(..., n, d_v)``. mask: True where attention is allowed,
    broadcasts to the scores. Returns ``(..., m, d_v)``; a query with no allowed key gets 0.

    Raises ``ValueError`` where there is not one value for each key, and for a mask that is not
    boolean, does not broadcast, or hides a NaN score.
    """
    require_float_tensor("scores", scores, "... m n")
    require_float_tensor("values", values, "... n d_v")
    require_same_dtype(scores=scores, values=values)
    if scores.shape[-1] != values.shape[-2]:
        raise ValueError(
            "attend: expected one value for each key, got scores of shape "
            f"{tuple(scores.shape)} and values of shape {tuple(values.shape)}"
        )
    require_same_batch(scores=scores, values=values)
    return softmax_over_keys(scores, mask) @ values  # (..., m, n) @ (..., n, d_v)


class Seq2Seq(nn.Module):
    """A recurrent encoder–decoder over characters, with attention where a ``score`` is given.

    The encoder, a GRU in both directions, turns n characters into n states of 2·d_hidden features.
    The decoder, a GRU of d_hidden features, starts from the encoder's last states and reads what
    has been written so far. Its state, together with a context, predicts the next character. With
    a score the context is a blend of the encoder's states, by weights that the score of decoder
    state (query, d_hidden) and encoder state (key, 2·d_hidden) makes; without one it is the
    encoder's last states, the same for every character written.

    Ids are those of ``to_ids``; 0 pads and ends. n_source, n_target: the number of ids.
    """

    def __init__(
        self,
        n_source: int,
        n_target: int,
        d_hidden: int,
        score: nn.Module | None = None,
        d_embed: int = 32,
    ):
        super().__init__()
        n_source, n_target = (
            require_count("n_source", n_source),
            require_count("n_target", n_target),
        )
        d_hidden, d_embed = require_count("d_hidden", d_hidden), require_count("d_embed", d_embed)
        self.embed_source = nn.Embedding(n_source, d_embed)
        self.embed_target = nn.Embedding(n_target, d_embed)
        self.encoder = nn.GRU(d_embed, d_hidden, batch_first=True, bidirectional=True)
        self.bridge = nn.Linear(2 * d_hidden, d_hidden)
        self.decoder = nn.GRU(d_embed, d_hidden, batch_first=True)
        self.score = score
        self.join = nn.Linear(3 * d_hidden, d_hidden)
        self.out = nn.Linear(d_hidden, n_target)

    def forward(self, source: Int[Tensor, "b n"], target: Int[Tensor, "b t"]) -> Tensor:
        """Logits ``(b, t + 1, n_target)`` for each character of the target and its end.

        Each is predicted from the source and the *right* characters before it.
        """
        return self.write(self.encode(source), target)[0]

    def weights(self, source: Int[Tensor, "b n"], target: Int[Tensor, "b t"]) -> Tensor:
        """The alignment ``(b, t + 1, n)``: where each character of the target, and its end, looks.

        Raises ``ValueError`` for a model without a score.
        """
        if self.score is None:
            raise ValueError("weights: expected a model with a score, this one has no attention")
        return self.write(self.encode(source), target)[1]

    @torch.no_grad()
    def translate(self, source: Int[Tensor, "b n"], max_length: int) -> Int[Tensor, "b t"]:
        """The ids ``(b, max_length)`` that the model writes by itself, the likeliest at each step.

        From its end on a text is padded with 0.
        """
        encoded = self.encode(source)
        last, state = source.new_zeros(len(source), 1), None  # what was written before: nothing
        written = []
        for _ in range(require_count("max_length", max_length)):
            logits, _, state = self.step(encoded, last, state)  # (b, 1, n_target)
            last = logits.argmax(dim=-1)
            written.append(last)
        ids = torch.cat(written, dim=1)  # (b, max_length)
        return ids * (ids != 0).cumprod(dim=1)

    def encode(self, source: Int[Tensor, "b n"]) -> tuple[Tensor, Tensor, Tensor]:
        """Every character's state ``(b, n, 2·d_hidden)``, the last states, and what is no padding.

        The last states, one of each direction, are ``(b, 1, 2·d_hidden)``; the mask ``(b, 1, n)``.
        """
        require_ids("source", source, self.embed_source.num_embeddings, least=1)
        lengths = (source != 0).sum(dim=1)
        packed = pack_padded_sequence(
            self.embed_source(source), lengths, batch_first=True, enforce_sorted=False
        )  # so that neither direction reads the padding
        packed, last = self.encoder(packed)  # last: (2, b, d_hidden)
        states, _ = pad_packed_sequence(packed, batch_first=True, total_length=source.shape[1])
        return states, last.transpose(0, 1).flatten(1).unsqueeze(1), (source != 0).unsqueeze(1)

    def write(self, encoded: tuple, target: Tensor) -> tuple[Tensor, Tensor | None, Tensor]:
        """``step`` for a whole target at once, which begins after nothing (id 0)."""
        require_ids("target", target, self.embed_target.num_embeddings)
        return self.step(encoded, F.pad(target, (1, 0)))

    def step(
        self, encoded: tuple, before: Int[Tensor, "b t"], state: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None, Tensor]:
        """Logits ``(b, t, n_target)`` for what follows each id of ``before``, and the weights.

        ``state`` is the decoder's so far, None at the beginning; the new one is returned too.
        """
        states, last, mask = encoded
        if state is None:
            state = torch.tanh(self.bridge(last)).transpose(0, 1)  # (1, b, d_hidden)
        query, state = self.decoder(self.embed_target(before), state.contiguous())
        weights, context = None, last.expand(-1, query.shape[1], -1)  # (b, t, 2·d_hidden)
        if self.score is not None:
            scores = self.score(query, states)  # (b, t, n)
            weights, context = softmax_over_keys(scores, mask), attend(scores, states, mask)
        joined = torch.tanh(self.join(torch.cat([query, context], dim=-1)))  # (b, t, d_hidden)
        return self.out(joined), weights, state


def date_pairs(n: int, seed: int) -> list[tuple[str, str]]:
    """``n`` random dates of 1900 to 2099, each as somebody might write it and as *year-month-day*.

    Days and the six formats are equally likely; weekdays are the right ones.
    """
    n, rng = require_count("n", n), np.random.default_rng(require_count("seed", seed, least=0))
    days = rng.integers(FIRST.toordinal(), LAST.toordinal() + 1, n)
    formats = rng.integers(len(FORMATS), size=n)
    return [write_date(int(day), FORMATS[which]) for day, which in zip(days, formats, strict=True)]


def write_date(ordinal: int, form: str) -> tuple[str, str]:
    """The date with this number, written in this form and as *year-month-day*."""
    date = datetime.date.fromordinal(ordinal)
    endings = {1: "st", 2: "nd", 3: "rd", 21: "st", 22: "nd", 23: "rd", 31: "st"}
    written = form.format(
        day=date.day,
        th=endings.get(date.day, "th"),
        month=MONTHS[date.month - 1],
        month_number=date.month,
        year=date.year,
        weekday=WEEKDAYS[date.weekday()],
    )
    return written, date.isoformat()


def to_ids(texts: Sequence[str], alphabet: str) -> Int[Tensor, "b n"]:
    """Each character's place in the alphabet, from 1; 0 behind the end of the shorter texts.

    Returns ``(len(texts), n)`` with n the length of the longest. Raises ``ValueError`` for no
    texts and for a character that the alphabet does not hold.
    """
    if isinstance(texts, str) or not len(texts):
        raise ValueError(f"texts: expected a list of one text or more, got {texts!r}")
    places = {character: place for place, character in enumerate(alphabet, start=1)}
    missing = next((c for text in texts for c in text if c not in places), None)
    if missing is not None:
        raise ValueError(f"texts: expected characters of {alphabet!r}, got {missing!r}")
    n = max(map(len, texts))
    return torch.tensor([[places[c] for c in text] + [0] * (n - len(text)) for text in texts])


def to_texts(ids: Int[Tensor, "b n"], alphabet: str) -> list[str]:
    """The texts that ``to_ids`` made these ids of: each row up to its first 0."""
    require_ids("ids", ids, len(alphabet) + 1)
    rows = (ids * (ids != 0).cumprod(dim=1)).tolist()
    return ["".join(alphabet[i - 1] for i in row if i) for row in rows]


def require_scorable(query: Tensor, key: Tensor, d_q: int, d_k: int, weight: Tensor) -> None:
    """Raises ``ValueError`` unless queries of d_q and keys of d_k features fit each other."""
    for name, value, axes, size in (
        ("query", query, "m d_q", d_q),
        ("key", key, "n d_k", d_k),
    ):
        require_float_tensor(name, value, f"... {axes}")
        if value.shape[-1] != size:
            raise ValueError(
                f"{name}: expected {axes.split()[-1]} = {size} features, "
                f"got shape {tuple(value.shape)}"
            )
    require_same_dtype(query=query, key=key, parameters=weight)
    require_same_batch(query=query, key=key)


def require_ids(name: str, ids: Tensor, n_ids: int, *, least: int = 0) -> None:
    """Raises ``ValueError`` unless these are rows of ids below n_ids, with zeros at the end only.

    ``least`` is the number of ids that each row has at least.
    """
    if not isinstance(ids, Tensor) or ids.dtype != torch.int64 or ids.ndim != 2 or not len(ids):
        got = f"{ids.dtype} {tuple(ids.shape)}" if isinstance(ids, Tensor) else type(ids).__name__
        raise ValueError(f"{name}: expected ids, an int64 tensor of shape (b, n), got {got}")
    if ids.numel() and not 0 <= int(ids.min()) <= int(ids.max()) < n_ids:
        raise ValueError(
            f"{name}: expected ids from 0 to {n_ids - 1}, got {int(ids.min())} to {int(ids.max())}"
        )
    there = ids != 0
    if (there[:, 1:] & ~there[:, :-1]).any():
        raise ValueError(f"{name}: expected 0 at the end of a row only, as padding")
    if least and int(there.sum(dim=1).min()) < least:
        raise ValueError(f"{name}: expected at least {least} id in each row, got only padding")
