"""Chapter 16: which T-cell receptors recognise which virus?

A receptor's loop CDR3 is a short sequence of amino acids, read as tokens. ``ReceptorClassifier``
reads it with attention; the rest is what an honest answer needs: a split that keeps near-copies
together, a score that does not reward the larger class, and an interval around it.

Sources: Levenshtein (1966), Binary Codes Capable of Correcting Deletions, Insertions and Reversals;
Efron and Tibshirani (1993), An Introduction to the Bootstrap, chapter 13.
"""

from collections.abc import Callable, Sequence
from typing import Any

import networkx as nx
import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import ArrayLike
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist
from torch import Tensor, nn

from attncourse.cross_attention import AttentionPooling
from attncourse.positions import LearnedPositions
from attncourse.support.arrays import require_count
from attncourse.support.shapes import Count, shaped
from attncourse.support.tensors import require_ids
from attncourse.transformer import EncoderBlock

ALPHABET = "ACDEFGHIKLMNPQRSTVWY"  # the twenty amino acids; ids count from 1, and 0 pads
AT_ONCE = 500  # how many sequences are compared with all others at a time


@shaped
def encode_cdr3(sequence: str, max_length: Count) -> Int[Tensor, "max_length"]:
    """The ids of a sequence of amino acids, 1 to 20, and 0 behind its end: ``(max_length,)``.

    Lower case is read as upper. Raises ``ValueError`` for any other letter, for a sequence longer
    than ``max_length`` and for an empty one.
    """
    if not isinstance(sequence, str) or not sequence:
        raise ValueError(f"sequence: expected letters of amino acids, got {sequence!r}")
    for place, letter in enumerate(sequence):
        if letter.upper() not in ALPHABET or not letter.isascii():
            raise ValueError(
                f"sequence: expected letters of {ALPHABET}, got {letter!r} at {place} "
                f"in {sequence[:40]!r}"
            )
    if len(sequence) > max_length:
        raise ValueError(f"sequence: expected at most {max_length} letters, got {len(sequence)}")
    numbers = [1 + ALPHABET.index(a) for a in sequence.upper()]
    ids = torch.zeros(max_length, dtype=torch.int64)
    ids[: len(numbers)] = torch.tensor(numbers)
    return ids


def similarity_clusters(sequences: Sequence[str], max_distance: int = 1) -> list[list[int]]:
    """Single-linkage clusters: who is within ``max_distance`` edits of a member belongs to it.

    An edit is a letter inserted, deleted or exchanged (Levenshtein). Returns lists of indices, in
    order of their first.
    """
    require_count("max_distance", max_distance, least=0)
    unique, where = np.unique(np.asarray(sequences, dtype=object), return_inverse=True)
    linked = nx.utils.UnionFind(range(len(unique)))
    for first in range(0, len(unique), AT_ONCE):
        batch = unique[first : first + AT_ONCE]
        # pyrefly: ignore [no-matching-overload]  the stubs know no scorer for texts
        distances = cdist(
            batch,
            unique[first:],
            scorer=Levenshtein.distance,
            score_cutoff=max_distance,  # beyond it the distance is cut off at one more
            dtype=np.uint16,
        )
        for i, j in np.argwhere(distances <= max_distance):
            linked.union(first + int(i), first + int(j))
    members: dict[int, list[int]] = {}
    for index, place in enumerate(where.tolist()):
        members.setdefault(linked[place], []).append(index)
    return list(members.values())


def split_by_similarity(
    sequences: Sequence[str], max_distance: int = 1, test_fraction: float = 0.2, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Indices to train on and to test on; no test sequence is a near-copy of one to train on.

    Whole clusters of sequences at most ``max_distance`` edits apart go to one side, in an order
    drawn from the seed: to the test side where that brings it closer to its share. Returns
    (train, test), sorted; the test side differs from ``test_fraction · n`` by at most the size of
    the largest cluster. Raises ``ValueError`` where a side would be empty.
    """
    if isinstance(sequences, str) or not all(isinstance(sequence, str) for sequence in sequences):
        raise ValueError("sequences: expected a list of strings")
    if not 0 < test_fraction < 1:
        raise ValueError(f"test_fraction: expected a share between 0 and 1, got {test_fraction}")
    clusters = similarity_clusters(sequences, max_distance)
    wanted, test = test_fraction * len(sequences), []
    order = np.random.default_rng(seed).permutation(len(clusters))
    for number in order:
        missing = wanted - len(test)
        if abs(missing - len(clusters[number])) < missing:
            test += clusters[number]
    train = np.setdiff1d(np.arange(len(sequences)), test)
    if not test or not len(train):
        largest = max(map(len, clusters), default=0)
        raise ValueError(
            f"expected sequences that can be split, got {len(sequences)} in clusters of up to "
            f"{largest}: try a smaller max_distance than {max_distance}"
        )
    return train, np.sort(np.array(test))


def balanced_accuracy(labels: ArrayLike, predictions: ArrayLike) -> float:
    """The mean over the classes of the share that was recognised, ``mean_c recall_c``.

    Classes are those that occur in labels. A guess that ignores the input gets 1 / classes, however
    unequal they are. Raises ``ValueError`` for no labels and for another number of predictions.
    """
    labels, predictions = np.asarray(labels), np.asarray(predictions)
    if labels.shape != predictions.shape or labels.ndim != 1 or not len(labels):
        got = f"shapes {labels.shape} and {predictions.shape}"
        raise ValueError(f"expected one prediction for each label, got {got}")
    classes = np.unique(labels)
    recalls = [np.mean(predictions[labels == c] == c) for c in classes]
    return float(np.mean(recalls))


def bootstrap_interval(
    statistic: Callable[..., float],
    *arrays: Any,
    level: float = 0.95,
    n_resamples: int = 1000,
    rng: np.random.Generator | None = None,
) -> tuple[float, float]:
    """Where a statistic falls in ``level`` of the samples drawn from this one, (low, high).

    Each resample draws as many rows as there are, with replacement, the same ones from every array;
    the interval lies between the quantiles (1 − level)/2 and (1 + level)/2 of the statistic on
    them. Raises ``ValueError`` for arrays of unequal length, a level not between 0 and 1, and fewer
    than one resample. Source: Efron and Tibshirani (1993), section 13.3.
    """
    require_count("n_resamples", n_resamples)
    if not 0 < level < 1:
        raise ValueError(f"level: expected a share between 0 and 1, got {level}")
    arrays = tuple(np.asarray(array) for array in arrays)
    lengths = sorted({len(array) for array in arrays})
    if len(lengths) != 1 or not lengths[0]:
        raise ValueError(f"arrays: expected some rows, as many in each, got lengths {lengths}")
    rng = np.random.default_rng() if rng is None else rng
    values = []
    for _ in range(n_resamples):
        rows = rng.integers(lengths[0], size=lengths[0])
        values.append(statistic(*(array[rows] for array in arrays)))
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


class ReceptorClassifier(nn.Module):
    """A class for each receptor: letters and places, blocks, one learned query, a score a class."""

    blocks: Any  # a list of modules has no type for its elements

    @shaped
    def __init__(
        self,
        n_classes: Count,
        max_length: Count,
        d_model: Count = 32,
        n_heads: Count = 4,
        n_layers: int = 1,
    ):
        """Make a vector for each letter and place, n_layers blocks, pooling and the last layer."""
        super().__init__()
        n_ids = 1 + len(ALPHABET)  # with the padding
        self.letters = nn.Embedding(n_ids, d_model, padding_idx=0)
        self.positions = LearnedPositions(max_length, d_model)
        sizes = d_model, n_heads
        blocks = [EncoderBlock(*sizes) for _ in range(n_layers)]
        self.blocks = nn.ModuleList(blocks)
        self.pooling = AttentionPooling(d_model)
        self.out = nn.Linear(d_model, n_classes)

    def forward(self, ids: Int[Tensor, "b n"]) -> Float[Tensor, "b n_classes"]:
        """Logits ``(b, n_classes)``; padding is not attended to."""
        x, mask = self.read(ids)
        return self.out(self.pooling(x, mask).squeeze(-2))

    def weights(self, ids: Int[Tensor, "b n"]) -> Float[Tensor, "b n"]:
        """Return the pooling query's attention to the letters."""
        x, mask = self.read(ids)
        return self.pooling.weights(x, mask).squeeze(-2)

    def read(self, ids: Tensor) -> tuple[Float[Tensor, "b n d"], Bool[Tensor, "b 1 n"]]:
        """A row for each letter, having read the others, and which of them are no padding."""
        require_ids(ids, 1 + len(ALPHABET), longest=len(self.positions.table))
        mask = (ids != 0).unsqueeze(-2)  # (b, 1, n)
        x = self.positions(self.letters(ids))
        for block in self.blocks:
            x = block(x, mask)
        return x, mask
