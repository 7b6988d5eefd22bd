"""Three ways to read a receptor, and how they are compared.

``AttentionReader`` is chapter 16's network, ``KmerReader`` a logistic regression on counts of runs
of letters, ``NeighbourReader`` chapter 3's soft lookup with edit distances for scores. Each is
fitted with ``fit(sequences, labels, n_classes)`` and answers with ``shares(sequences)``, a
probability for each class.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist
from torch import Tensor
from torch.nn import functional as F

from attncourse.lookup import softmax
from attncourse.sequences import (
    ALPHABET,
    ReceptorClassifier,
    balanced_accuracy,
    bootstrap_interval,
    encode_cdr3,
    split_by_similarity,
)
from attncourse.tasks.adam import Adam
from attncourse.tasks.runs import faded

BATCH = 64


def encoded(sequences: Sequence[str], max_length: int) -> Tensor:
    """Return the ids of several receptors, ``(b, max_length)``."""
    return torch.stack([encode_cdr3(sequence, max_length) for sequence in sequences])


@dataclass
class AttentionReader:
    """Letters, one block, a pooling query; Adam, the rate falls to 0 over the second half."""

    rate: float = 0.01
    epochs: int = 10
    seed: int = 0
    max_length: int = 15
    name: str = "attention pooling"
    model: Any = None

    def fit(self, sequences: Sequence[str], labels: np.ndarray, n_classes: int):
        """Train the reader on sequences and their labels; return it."""
        torch.manual_seed(self.seed)
        self.model = ReceptorClassifier(n_classes, self.max_length)
        ids, answers = encoded(sequences, self.max_length), torch.as_tensor(labels)
        adam = Adam(self.model.parameters(), self.rate)
        steps, step = self.epochs * -(-len(ids) // BATCH), 0
        for _ in range(self.epochs):
            for rows in torch.randperm(len(ids)).split(BATCH):
                loss = F.cross_entropy(self.model(ids[rows]), answers[rows])
                step += 1
                adam.zero_grad()
                loss.backward()
                adam.step(faded(step, steps))
        self.model.eval()
        return self

    @torch.no_grad()
    def shares(self, sequences: Sequence[str]) -> np.ndarray:
        """Return each sequence's probabilities of the classes."""
        parts = encoded(sequences, self.max_length).split(1000)
        return torch.cat([self.model(part).softmax(-1) for part in parts]).numpy()

    @torch.no_grad()
    def weights(self, sequences: Sequence[str]) -> np.ndarray:
        """Return the pooling query's attention over the letters, ``(b, max_length)``."""
        return self.model.weights(encoded(sequences, self.max_length)).numpy()


@dataclass
class KmerReader:
    """A logistic regression on how often each run of one to three letters occurs."""

    strength: float = 1.0
    name: str = "k-mers"
    counter: Any = None
    model: Any = None

    def fit(self, sequences: Sequence[str], labels: np.ndarray, n_classes: int):
        """Fit a regression on counts of letters' runs; return the reader."""
        from sklearn.feature_extraction.text import CountVectorizer
        from sklearn.linear_model import LogisticRegression

        self.counter = CountVectorizer(analyzer="char", ngram_range=(1, 3), lowercase=False)
        counts = self.counter.fit_transform(sequences)
        self.model = LogisticRegression(C=self.strength, max_iter=2000).fit(counts, labels)
        self.n_classes = n_classes
        return self

    def shares(self, sequences: Sequence[str]) -> np.ndarray:
        """Return each sequence's probabilities of the classes."""
        shares = np.zeros((len(sequences), self.n_classes))
        known_shares = self.model.predict_proba(self.counter.transform(sequences))
        shares[:, self.model.classes_] = known_shares
        return shares

    def weights(self, sequences: Sequence[str], labels: Sequence[int]) -> np.ndarray:
        """Return what each letter adds to its class: the coefficients of its k-mers."""
        length = max(map(len, sequences))
        total = np.full((len(sequences), length), -np.inf)
        for row, (sequence, label) in enumerate(zip(sequences, labels, strict=True)):
            coefficients = self.model.coef_[list(self.model.classes_).index(label)]
            total[row, : len(sequence)] = 0
            for size in (1, 2, 3):
                for start in range(len(sequence) - size + 1):
                    place = self.counter.vocabulary_.get(sequence[start : start + size])
                    if place is not None:
                        total[row, start : start + size] += coefficients[place] / size
        return total


@dataclass
class NeighbourReader:
    """A soft lookup: labels for values, minus the edit distance over a temperature for scores."""

    temperature: float = 0.3
    name: str = "nearest neighbours"
    known: list[str] = field(default_factory=list)

    def fit(self, sequences: Sequence[str], labels: np.ndarray, n_classes: int):
        """Keep the sequences and their labels; return the reader."""
        self.known, self.values = list(sequences), np.eye(n_classes)[labels]
        return self

    def shares(self, sequences: Sequence[str]) -> np.ndarray:
        """Return each sequence's shares of the classes, nearer neighbours first."""
        # pyrefly: ignore [no-matching-overload]  the stubs know no scorer for texts
        distances = cdist(sequences, self.known, scorer=Levenshtein.distance, dtype=np.uint16)
        return softmax(-distances.astype(float), temperature=self.temperature) @ self.values


def decided(shares: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return classes by shares over how common each is in ``labels``, as balanced accuracy asks."""
    common = np.bincount(labels, minlength=shares.shape[1]) / len(labels)
    return (shares / np.maximum(common, 1e-9)).argmax(-1)


def best_of(readers, sequences: Sequence[str], labels: np.ndarray, n_classes: int):
    """Return the reader that is most accurate on a fifth of this data which it was not fitted to.

    Near-copies stay together there too. What is returned has to be fitted again.
    """
    train, held = split_by_similarity(sequences, seed=99)
    fitted, others = [sequences[i] for i in train], [sequences[i] for i in held]

    def right(reader) -> float:
        reader.fit(fitted, labels[train], n_classes)
        return balanced_accuracy(labels[held], decided(reader.shares(others), labels[train]))

    return max(readers, key=right)


def area_under_curve(positive: ArrayLike, scores: ArrayLike) -> float:
    """Return the AUC: how often a positive scores above a negative, ties counting one half.

    Raises ``ValueError`` where one of the two kinds is missing.
    """
    positive, scores = np.asarray(positive, dtype=bool), np.asarray(scores, dtype=float)
    above, below = scores[positive], np.sort(scores[~positive])
    if not len(above) or not len(below):
        raise ValueError("positive: expected positives and negatives, got one kind alone")
    wins = np.searchsorted(below, above, "left") + np.searchsorted(below, above, "right")
    return float(wins.mean() / (2 * len(below)))


def mean_area(labels: np.ndarray, shares: np.ndarray) -> float:
    """Return the mean over the classes in ``labels`` of the AUC of each against the rest."""
    classes = np.unique(labels)
    if len(classes) < 2:
        raise ValueError(f"labels: expected two classes or more, got {classes.tolist()}")
    return float(np.mean([area_under_curve(labels == c, shares[:, c]) for c in classes]))


def random_split(n: int, test_fraction: float = 0.2, seed: int = 0):
    """Return indices to train on and to test on, drawn without a look at the sequences."""
    order = np.random.default_rng(seed).permutation(n)
    held = round(test_fraction * n)
    return np.sort(order[held:]), np.sort(order[:held])


def near_copies(sequences: Sequence[str], others: Sequence[str], max_distance: int = 1) -> float:
    """Return which share of ``sequences`` is at most ``max_distance`` edits from ``others``."""
    # pyrefly: ignore [no-matching-overload]  the stubs know no scorer for texts
    distances = cdist(
        sequences, others, scorer=Levenshtein.distance, score_cutoff=max_distance, dtype=np.uint16
    )
    return float((distances <= max_distance).any(-1).mean())


def ablated(reader, sequences: Sequence[str], labels: ArrayLike, n_others: int = 4):
    """Return by how much log p of the class falls, on average, when a letter changes, ``(b, n)``.

    Every letter is exchanged for ``n_others`` others in turn; −∞ behind a sequence's end.
    """
    labels, length = np.asarray(labels), max(map(len, sequences))
    fall = np.full((len(sequences), length), -np.inf)
    rows, places, changed = [], [], []
    for row, sequence in enumerate(sequences):
        for place, letter in enumerate(sequence):
            at = ALPHABET.index(letter)
            for turn in range(1, n_others + 1):
                other = ALPHABET[(at + turn * 20 // (n_others + 1)) % 20]
                changed.append(sequence[:place] + other + sequence[place + 1 :])
                rows.append(row)
                places.append(place)
    rows, places = np.array(rows), np.array(places)
    before = np.log(reader.shares(sequences)[np.arange(len(sequences)), labels] + 1e-12)
    after = np.log(reader.shares(changed)[np.arange(len(changed)), labels[rows]] + 1e-12)
    for row, sequence in enumerate(sequences):
        fall[row, : len(sequence)] = 0
    np.add.at(fall, (rows, places), (before[rows] - after) / n_others)
    return fall


def precision_of_top(weights: np.ndarray, starts: np.ndarray, size: int = 3) -> np.ndarray:
    """Return the share of each row's ``size`` highest places that lies in its motif, ``(b,)``."""
    top = np.argsort(-weights, axis=-1, kind="stable")[:, :size]
    return ((top >= starts[:, None]) & (top < starts[:, None] + size)).mean(-1)


def is_in_motif(weights: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Return for each row if its highest place lies in its motif of three, ``(b,)``."""
    top = weights.argmax(-1)
    return (top >= starts) & (top < starts + 3)


def telling(reader, sequences: Sequence[str], labels, starts, n: int = 4) -> list[str]:
    """Return n loops with a motif that the reader knows, those that attention misses most first.

    Those come first whose largest weight lies outside the motif, and among them those where the
    letter that the answer depends on most lies inside; then by how much of the motif the three
    largest of each find.
    """
    labels, starts = np.asarray(labels), np.asarray(starts)
    known = (reader.shares(sequences).argmax(-1) == labels) & (starts >= 0)
    loops = [sequence for sequence, is_known in zip(sequences, known, strict=True) if is_known]
    ways = reader.weights(loops), ablated(reader, loops, labels[known])
    looks, falls = (
        precision_of_top(way, starts[known]) + 2 * is_in_motif(way, starts[known]) for way in ways
    )
    order = np.argsort(2 * looks - falls, kind="stable")
    return list(dict.fromkeys(loops[i] for i in order))[:n]


@dataclass
class ReaderScore:
    """The scores of a fitted reader on a test side, their intervals, and its decisions."""

    reader: Any
    truth: np.ndarray
    decisions: np.ndarray
    shares: np.ndarray
    balanced: float
    balanced_interval: tuple[float, float]
    area: float
    area_interval: tuple[float, float]


def scored(
    reader,
    sequences: Sequence[str],
    labels: np.ndarray,
    split: tuple[np.ndarray, np.ndarray],
    n_classes: int,
    n_resamples: int = 300,
) -> ReaderScore:
    """Return a reader fitted to one side of a split, scored on the other, with 95 % intervals."""
    train, test = split
    reader.fit([sequences[i] for i in train], labels[train], n_classes)
    shares, truth = reader.shares([sequences[i] for i in test]), labels[test]
    decisions = decided(shares, labels[train])
    rng = np.random.default_rng(0)
    ways = {"n_resamples": n_resamples, "rng": rng}
    return ReaderScore(
        reader,
        truth,
        decisions,
        shares,
        balanced_accuracy(truth, decisions),
        bootstrap_interval(balanced_accuracy, truth, decisions, **ways),
        mean_area(truth, shares),
        bootstrap_interval(mean_area, truth, shares, **ways),
    )


def measured() -> dict:
    """Return what ``benchmarks/receptors_vdjdb.py`` found on a table of VDJdb.

    With its date and its size.
    """
    return json.loads(Path(__file__).with_name("receptors_vdjdb.json").read_text("utf-8"))
