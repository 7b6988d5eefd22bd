"""Chapter 16's readers, how they are scored, and the data that they read."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from attncourse.sequences import ALPHABET, similarity_clusters, split_by_similarity
from attncourse.tasks.receptor_readers import (
    AttentionReader,
    KmerReader,
    NeighbourReader,
    ablated,
    area_under_curve,
    best_of,
    decided,
    encoded,
    mean_area,
    measured,
    near_copies,
    precision_of_top,
    random_split,
    scored,
)
from attncourse.tasks.receptors import MOTIFS, simulate_repertoire
from helpers.refusals import refused

READERS = [AttentionReader(epochs=1), KmerReader(), NeighbourReader()]


@pytest.fixture(scope="module")
def data():
    return simulate_repertoire(240, seed=3, copies=0.5)


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_every_readers_probabilities_sum_to_1(reader, data):
    reader.fit(data.sequences[:200], data.labels[:200], 4)  # a class that never occurs
    shares = reader.shares(data.sequences[200:])
    assert shares.shape == (40, 4)
    assert np.all(shares >= 0)
    np.testing.assert_allclose(shares.sum(-1), 1, atol=1e-5)


def test_near_copies_keep_their_motif_and_their_label():
    plain = simulate_repertoire(300, seed=1)
    family = simulate_repertoire(300, seed=1, copies=0.6)
    assert len(similarity_clusters(family.sequences)) < 0.7 * len(
        similarity_clusters(plain.sequences)
    )
    for sequence, label, start in zip(family.sequences, family.labels, family.starts, strict=True):
        assert sequence[:3] == "CAS"
        assert sequence[-1] == "F"
        assert set(sequence) <= set(ALPHABET)
        if start >= 0:
            assert sequence[start : start + 3] in MOTIFS[family.classes[label]]
    again = simulate_repertoire(300, seed=1, copies=0.6)
    assert again.sequences == family.sequences
    with pytest.raises(ValueError, match="copies: expected a share"):
        simulate_repertoire(3, copies=-0.1)


def test_attention_finds_the_motif_that_decides():
    made = simulate_repertoire(1000, seed=2, planted=1.0)
    reader = AttentionReader(0.01, epochs=8).fit(made.sequences[:800], made.labels[:800], 3)
    answers = decided(reader.shares(made.sequences[800:]), made.labels)
    assert np.mean(answers == made.labels[800:]) > 0.75
    test = made.sequences[800:860]
    fall = ablated(reader, test, made.labels[800:860])
    precision = precision_of_top(fall, made.starts[800:860]).mean()
    assert precision > 0.5  # chance is 3 of 12
    weights = reader.weights(test)
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)


def test_the_kmer_reader_points_at_the_kmers_it_learned(data):
    reader = KmerReader().fit(data.sequences, data.labels, 3)
    bearing = np.flatnonzero(data.starts >= 0)[:50]
    loops = [data.sequences[i] for i in bearing]
    weights = reader.weights(loops, data.labels[bearing])
    assert precision_of_top(weights, data.starts[bearing]).mean() > 0.8


def test_the_nearest_neighbour_decides_at_low_temperature():
    reader = NeighbourReader(0.01).fit(["CASSF", "CTTTF"], np.array([0, 1]), 2)
    np.testing.assert_allclose(reader.shares(["CASQF", "CTTF"]), np.eye(2), atol=1e-9)
    far = NeighbourReader(100.0).fit(["CASSF", "CTTTF"], np.array([0, 1]), 2)
    np.testing.assert_allclose(far.shares(["CASSF"]), 0.5, atol=0.02)


def test_rare_classes_are_weighted_up():
    shares = np.array([[0.6, 0.4], [0.9, 0.1]])
    assert decided(shares, np.array([0, 0, 0, 1])).tolist() == [1, 0]


def test_auc_is_that_of_sklearn():
    rng = np.random.default_rng(0)
    positive, scores = rng.random(60) < 0.3, rng.integers(9, size=60)  # with ties
    expected = roc_auc_score(positive, scores)
    assert area_under_curve(positive, scores) == pytest.approx(expected)
    labels = rng.integers(3, size=60)
    shares = rng.dirichlet(np.ones(3), 60)
    expected = roc_auc_score(labels, shares, multi_class="ovr")
    assert mean_area(labels, shares) == pytest.approx(expected)


test_bad_input_is_refused = refused(
    [
        (lambda: area_under_curve([True, True], [0.1, 0.2]), "one kind alone"),
        (lambda: mean_area(np.zeros(3, int), np.ones((3, 2))), "two classes or more"),
        (lambda: encoded(["CAS*F"], 15), "'\\*' at 3"),
        (lambda: encoded(["CASSF" * 9], 15), "at most 15"),
    ]
)


def test_only_splits_by_similarity_have_no_near_copies(data):
    train, test = random_split(240, seed=1)
    assert sorted([*train, *test]) == list(range(240))
    assert len(test) == 48
    test_sequences = [data.sequences[i] for i in test]
    train_sequences = [data.sequences[i] for i in train]
    assert near_copies(test_sequences, train_sequences) > 0.3
    train, test = split_by_similarity(data.sequences, seed=1)
    test_sequences = [data.sequences[i] for i in test]
    train_sequences = [data.sequences[i] for i in train]
    assert near_copies(test_sequences, train_sequences) == 0


def test_the_best_reader_is_chosen_and_scored(data):
    readers = [NeighbourReader(0.3), NeighbourReader(1000.0)]
    best = best_of(readers, data.sequences, data.labels, 3)
    assert best is readers[0]
    split = split_by_similarity(data.sequences, seed=2)
    score = scored(best, data.sequences, data.labels, split, 3, n_resamples=50)
    assert score.balanced_interval[0] <= score.balanced <= score.balanced_interval[1]
    assert score.area_interval[0] <= score.area <= score.area_interval[1]


def test_numbers_of_the_real_table_say_where_they_come_from():
    stored = measured()
    assert stored["command"] == "python benchmarks/receptors_vdjdb.py PATH"
    assert len(stored["date"]) == 10
    assert sum(stored["classes"].values()) == stored["receptors"]
    counted = stored["receptors"] + stored["duplicates"] + stored["dropped"]
    assert counted < stored["rows"]  # cross-reactive ones are listed twice and left out
    assert len(stored["scores"]) == 18
    for score in stored["scores"]:
        low, high = score["balanced_interval"]
        assert low <= score["balanced"] <= high
    assert not any(stored["near_copies"]["similarity"])
