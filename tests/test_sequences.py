"""Chapter 16: receptors as tokens, splits that keep near-copies together, honest scores."""

import gzip
import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import balanced_accuracy_score

from attncourse.sequences import (
    ALPHABET,
    ReceptorClassifier,
    balanced_accuracy,
    bootstrap_interval,
    encode_cdr3,
    similarity_clusters,
    split_by_similarity,
)
from attncourse.tasks.receptors import MOTIFS, load_vdjdb, simulate_repertoire


def test_letters_become_ids():
    ids = encode_cdr3("CASsY", 7)
    assert ids.dtype == torch.int64
    assert ids.tolist() == [2, 1, 16, 16, 20, 0, 0]
    assert encode_cdr3(ALPHABET, 20).tolist() == list(range(1, 21))


def edits(a, b):
    """Levenshtein's distance by its table."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row = row, [i]
        for j, y in enumerate(b, 1):
            row.append(min(before[j] + 1, row[-1] + 1, before[j - 1] + (x != y)))
    return row[-1]


words = st.lists(st.text("ACD", min_size=1, max_size=5), min_size=3, max_size=14)


@settings(deadline=None)
@given(words, st.integers(0, 3))
def test_clusters_are_the_connected_parts(sequences, distance):
    clusters = similarity_clusters(sequences, distance)
    assert sorted(itertools.chain(*clusters)) == list(range(len(sequences)))
    for one, other in itertools.combinations(clusters, 2):
        assert all(edits(sequences[i], sequences[j]) > distance for i in one for j in other)
    for cluster in clusters:  # each is connected: a walk from its first member reaches all
        reached, fresh = {cluster[0]}, [cluster[0]]
        while fresh:
            here = sequences[fresh.pop()]
            new = {j for j in cluster if edits(here, sequences[j]) <= distance} - reached
            reached |= new
            fresh += new
        assert reached == set(cluster)


@settings(deadline=None)
@given(words, st.integers(0, 2), st.floats(0.1, 0.9), st.integers(0, 5))
def test_no_near_copy_straddles_the_split(sequences, distance, fraction, seed):
    largest = max(map(len, similarity_clusters(sequences, distance)))
    try:
        train, test = split_by_similarity(sequences, distance, fraction, seed)
    except ValueError:
        assert largest > min(fraction, 1 - fraction) * len(sequences)  # one side would be empty
        return
    again = split_by_similarity(sequences, distance, fraction, seed)
    assert np.array_equal(train, again[0])
    assert np.array_equal(test, again[1])
    assert sorted([*train, *test]) == list(range(len(sequences)))
    assert np.all(np.diff(train) > 0)
    assert np.all(np.diff(test) > 0)
    assert abs(len(test) - fraction * len(sequences)) <= largest
    assert all(edits(sequences[i], sequences[j]) > distance for i in train for j in test)


def test_another_seed_makes_another_split():
    sequences = simulate_repertoire(200).sequences
    splits = {tuple(split_by_similarity(sequences, seed=seed)[1]) for seed in range(5)}
    assert len(splits) == 5


def test_balanced_accuracy_is_the_mean_recall():
    rng = np.random.default_rng(0)
    labels, guesses = rng.integers(4, size=50), rng.integers(5, size=50)
    expected = balanced_accuracy_score(labels, np.where(guesses == 4, 0, guesses))
    assert balanced_accuracy(labels, np.where(guesses == 4, 0, guesses)) == pytest.approx(expected)
    assert balanced_accuracy(["a"] * 9 + ["b"], ["a"] * 10) == 0.5


def test_intervals_cover_what_they_say():
    """Of 200 intervals of 80 % for a mean, 80 % hold it: 160, give or take four deviations."""
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(200):
        low, high = bootstrap_interval(
            np.mean, rng.normal(size=60), level=0.8, n_resamples=300, rng=rng
        )
        inside += low <= 0 <= high
    assert 160 - 23 - 4 <= inside <= 160 + 23  # a percentile interval of 60 is a little short


def test_arrays_are_resampled_together():
    x = np.arange(30.0)
    low, high = bootstrap_interval(lambda a, b: np.abs(a - b).max(), x, x, n_resamples=50)
    assert (low, high) == (0, 0)
    assert bootstrap_interval(np.mean, x, rng=np.random.default_rng(1)) == bootstrap_interval(
        np.mean, x, rng=np.random.default_rng(1)
    )


def test_padding_changes_nothing():
    torch.manual_seed(0)
    model = ReceptorClassifier(3, 20)
    short, long = encode_cdr3("CASSLGQF", 9)[None], encode_cdr3("CASSLGQF", 20)[None]
    torch.testing.assert_close(model(short), model(long))
    weights = model.weights(long)
    assert weights.shape == (1, 20)
    assert torch.all(weights[0, 8:] == 0)
    torch.testing.assert_close(weights.sum(), torch.tensor(1.0))


def test_motifs_are_where_the_repertoire_says():
    made = simulate_repertoire(3000, seed=1)
    shares = np.bincount(made.labels) / 3000
    np.testing.assert_allclose(shares, [1 / 2, 1 / 3, 1 / 6], atol=0.04)
    assert 0.77 < np.mean(made.starts >= 0) < 0.83
    for sequence, label, start in zip(made.sequences, made.labels, made.starts, strict=True):
        assert sequence[:3] == "CAS"
        assert sequence[-1] == "F"
        assert 9 <= len(sequence) <= 15
        if start >= 0:
            assert sequence[start : start + 3] in MOTIFS[made.classes[label]]
            assert start >= 3
            assert start + 3 < len(sequence)
    assert made.sequences == simulate_repertoire(3000, seed=1).sequences


TABLE = (
    "cdr3.beta\tv.beta\tantigen.epitope\n"
    "CASSF\tTRBV1\tAAA\n"
    "cassf\tTRBV2\tAAA\n"  # the same receptor again
    "CASSF\tTRBV1\tBBB\n"  # and with another epitope
    "CAS*F\tTRBV1\tAAA\n"
    "CA_F\tTRBV1\tAAA\n"
    "\tTRBV1\tAAA\n"
    "CASSLF\tTRBV1\t\n"
    "CASSLF\n"  # cut off
    f"{'A' * 41}\tTRBV1\tAAA\n"
    "CASSQF\tTRBV3\tAAA\textra\n"
)


@pytest.mark.parametrize("kind", ["plain", "windows", "gzip", "bom"])
def test_a_table_with_faults_is_read_and_they_are_counted(tmp_path, kind):
    data = TABLE.replace("\n", "\r\n" if kind == "windows" else "\n").encode()
    data = b"\xef\xbb\xbf" + data if kind == "bom" else data
    path = tmp_path / "table.tsv"
    path.write_bytes(gzip.compress(data) if kind == "gzip" else data)
    table = load_vdjdb(path)
    assert table.sequences == ["CASSF", "CASSF", "CASSQF"]
    assert table.epitopes == ["AAA", "BBB", "AAA"]
    assert table.duplicates == 1
    assert table.cross_reactive == {"CASSF": ["AAA", "BBB"]}
    assert table.dropped == {
        "letters that are no amino acids": 2,
        "no loop": 1,
        "no epitope": 2,
        "longer than 40 letters": 1,
    }


@pytest.mark.parametrize("text", ["", "a\tb\nC\tD\n", "cdr3.beta\tantigen.epitope\n"])
def test_a_table_without_receptors_is_refused(tmp_path, text):
    path = tmp_path / "table.tsv"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"table.tsv: expected (columns|receptors)"):
        load_vdjdb(path)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: encode_cdr3("CAS*F", 9), r"got '\*' at 3"),
        (lambda: encode_cdr3("CASB", 9), "'B' at 3"),
        (lambda: encode_cdr3("CASSF", 4), "at most 4 letters, got 5"),
        (lambda: encode_cdr3("", 4), "got ''"),
        (lambda: encode_cdr3("C" * 300, 20), "got 300"),
        (lambda: split_by_similarity("CASS"), "list of strings"),
        (lambda: split_by_similarity(["CASS"]), "1 in 1 clusters"),
        (lambda: split_by_similarity(["AAAA", "CCCC"], 9), "smaller max_distance than 9"),
        (lambda: split_by_similarity(["AAAA", "CCCC"], 1, 1.0), "test_fraction"),
        (lambda: split_by_similarity(["AAAA", "CCCC"], -1), "max_distance"),
        (lambda: balanced_accuracy([], []), "one prediction for each label"),
        (lambda: balanced_accuracy([1, 2], [1]), "one prediction for each label"),
        (lambda: bootstrap_interval(np.mean, [1.0], level=1), "level"),
        (lambda: bootstrap_interval(np.mean, [1.0], [1.0, 2.0]), r"lengths \[1, 2\]"),
        (lambda: bootstrap_interval(np.mean, [1.0], n_resamples=0), "n_resamples"),
        (lambda: simulate_repertoire(5, planted=1.5), "planted"),
        (lambda: ReceptorClassifier(2, 4)(torch.tensor([[21]])), "0 to 20, got 21"),
    ],
)
def test_bad_input_is_refused(call, said):
    with pytest.raises(ValueError, match=said):
        call()
