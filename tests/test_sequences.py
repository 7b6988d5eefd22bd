"""Chapter 16: receptors as tokens, splits that keep near-copies together, honest scores."""

import gzip
import itertools
import math
import random

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein
from sklearn.metrics import balanced_accuracy_score, recall_score

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
from helpers.refusals import refused


def test_letters_become_ids():
    ids = encode_cdr3("CASsY", 7)
    assert ids.dtype == torch.int64
    assert ids.tolist() == [2, 1, 16, 16, 20, 0, 0]
    assert encode_cdr3(ALPHABET, 20).tolist() == list(range(1, 21))


def edit_distance(a, b):
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
    for cluster_a, cluster_b in itertools.combinations(clusters, 2):
        assert all(
            edit_distance(sequences[i], sequences[j]) > distance
            for i in cluster_a
            for j in cluster_b
        )
    for cluster in clusters:  # each is connected: a walk from its first member reaches all
        reached, fresh = {cluster[0]}, [cluster[0]]
        while fresh:
            sequence = sequences[fresh.pop()]
            new = {
                j for j in cluster if edit_distance(sequence, sequences[j]) <= distance
            } - reached
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
    assert all(edit_distance(sequences[i], sequences[j]) > distance for i in train for j in test)


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


def test_an_80_percent_interval_covers_in_80_percent():
    """Of 200 intervals of 80 % for a mean, 80 % hold it: 160, give or take four deviations."""
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(200):
        low, high = bootstrap_interval(
            np.mean, rng.normal(size=60), level=0.8, n_resamples=300, rng=rng
        )
        inside += low <= 0 <= high
    assert 160 - 23 - 4 <= inside <= 160 + 23  # a percentile interval of 60 is a little short


def test_paired_arrays_are_resampled_together():
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


test_bad_input_is_refused = refused(
    [
        (lambda: encode_cdr3("CAS*F", 9), r"got '\*' at 3"),
        (lambda: encode_cdr3("CASB", 9), "'B' at 3"),
        (lambda: encode_cdr3("CASSF", 4), "at most 4 letters, got 5"),
        (lambda: encode_cdr3("", 4), "got ''"),
        (lambda: encode_cdr3("C" * 300, 20), "got 300"),
        (lambda: split_by_similarity("CASS"), "list of strings"),
        (lambda: split_by_similarity(["CASS"]), "1 in clusters of up to"),
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
    ]
)


# --- other right answers ---------------------------------------------------------------------


def encoded_by_table(sequence, max_length):
    table = {letter: 1 + k for k, letter in enumerate(ALPHABET)}
    table |= {letter.lower(): k for letter, k in table.items()}
    if len(sequence) > max_length or not set(sequence) <= set(table):
        raise ValueError("cannot be read")
    return torch.tensor([table[a] for a in sequence] + [0] * (max_length - len(sequence)))


def encoded_by_padding(sequence, max_length):
    try:
        ids = [ALPHABET.index(letter) + 1 for letter in sequence.upper()]
    except ValueError:
        raise ValueError("another letter") from None
    if len(ids) > max_length:
        raise ValueError("too long")
    return torch.nn.functional.pad(torch.LongTensor(ids), (0, max_length - len(ids)))


def encoded_by_comparing(sequence, max_length):
    if len(sequence) > max_length:
        raise ValueError("too long")
    letters = np.array(list(sequence.upper()), dtype="U1")
    hits = letters[:, None] == np.array(list(ALPHABET))
    if not hits.any(-1).all():
        raise ValueError("no amino acid")
    ids = np.zeros(max_length, dtype=np.int64)
    ids[: len(letters)] = 1 + hits.argmax(-1)
    return torch.from_numpy(ids)


def encoded_in_place(sequence, max_length):
    ids = torch.zeros(max_length).long()
    for place, letter in enumerate(sequence):
        number = ALPHABET.find(letter.upper())
        if number < 0 or place >= max_length:
            raise ValueError(letter)
        ids[place] = number + 1
    return ids


def parts_by_spreading(sequences, max_distance, distance=edit_distance):
    """Labels that spread to all that are near, until nothing changes."""
    n = len(sequences)
    label = list(range(n))
    near = [
        (i, j)
        for i in range(n)
        for j in range(i)
        if distance(sequences[i], sequences[j]) <= max_distance
    ]
    changed = True
    while changed:
        changed = False
        for i, j in near:
            low = min(label[i], label[j])
            changed |= label[i] != low or label[j] != low
            label[i] = label[j] = low
    return [[i for i in range(n) if label[i] == c] for c in sorted(set(label))]


def split_until_full(sequences, max_distance=1, test_fraction=0.2, seed=0):
    """The test side is filled until it has its share; it goes over by less than a cluster."""
    parts = parts_by_spreading(sequences, max_distance)
    np.random.default_rng(seed).shuffle(parts)
    test = []
    for part in parts:
        if len(test) < test_fraction * len(sequences):
            test.extend(part)
    return np.setdiff1d(range(len(sequences)), test), np.sort(test)


def split_below(sequences, max_distance=1, test_fraction=0.2, seed=0):
    """Never over the share; Python's own random numbers, lists returned."""
    parts = parts_by_spreading(list(sequences), max_distance, Levenshtein.distance)
    random.Random(seed).shuffle(parts)
    room = test_fraction * len(sequences)
    test = []
    for part in parts:
        if len(test) + len(part) <= room:
            test += part
    return [i for i in range(len(sequences)) if i not in set(test)], sorted(test)


def split_by_train(sequences, max_distance=1, test_fraction=0.2, seed=0):
    """The train side is filled; clusters from networkx; the legacy generator."""
    graph = nx.Graph()
    graph.add_nodes_from(range(len(sequences)))
    for i, j in itertools.combinations(range(len(sequences)), 2):
        if Levenshtein.distance(sequences[i], sequences[j]) <= max_distance:
            graph.add_edge(i, j)
    parts = list(nx.connected_components(graph))
    train = set()
    for k in np.random.RandomState(seed % 2**32).permutation(len(parts)):
        if len(train) < (1 - test_fraction) * len(sequences):
            train |= parts[k]
    everything = np.arange(len(sequences))
    held = np.isin(everything, sorted(train))
    return everything[held], everything[~held]


def split_by_walking(sequences, max_distance=1, test_fraction=0.2, seed=0):
    """Clusters by a walk from each sequence, tensors of indices returned."""
    unvisited, parts = set(range(len(sequences))), []
    while unvisited:
        fresh = [unvisited.pop()]
        part = set(fresh)
        while fresh:
            current = fresh.pop()
            new = {
                j
                for j in unvisited
                if edit_distance(sequences[current], sequences[j]) <= max_distance
            }
            unvisited -= new
            part |= new
            fresh += new
        parts.append(sorted(part))
    parts.sort()
    order = torch.randperm(len(parts), generator=torch.Generator().manual_seed(seed))
    chosen, target_size = [], test_fraction * len(sequences)
    for k in order.tolist():
        if abs(len(chosen) + len(parts[k]) - target_size) <= abs(len(chosen) - target_size):
            chosen += parts[k]
    test = torch.tensor(sorted(chosen), dtype=torch.long)
    keep = torch.ones(len(sequences), dtype=torch.bool)
    keep[test] = False
    return keep.nonzero()[:, 0], test


def balanced_by_sklearn(labels, predictions):
    return recall_score(
        np.asarray(labels).astype(str),
        np.asarray(predictions).astype(str),
        labels=np.unique(np.asarray(labels).astype(str)),
        average="macro",
        zero_division=0,
    )


def balanced_by_counting(labels, predictions):
    hits, of = {}, {}
    for label, guess in zip(labels, predictions, strict=True):
        of[label] = of.get(label, 0) + 1
        hits[label] = hits.get(label, 0) + bool(label == guess)
    return sum(hits[c] / of[c] for c in of) / len(of)


def balanced_by_weights(labels, predictions):
    """Every answer counts by one over how often its label occurs."""
    labels, predictions = np.asarray(labels), np.asarray(predictions)
    _, places, counts = np.unique(labels, return_inverse=True, return_counts=True)
    return np.average(labels == predictions, weights=1 / counts[places])


def balanced_by_bincount(labels, predictions):
    kinds, places = np.unique(np.asarray(labels), return_inverse=True)
    right = np.asarray(labels) == np.asarray(predictions)
    return (np.bincount(places, right) / np.bincount(places)).sum() / len(kinds)


def interval_by_choice(statistic, *arrays, level=0.95, n_resamples=1000, rng=None):
    rng = rng or np.random.default_rng()
    n = len(arrays[0])
    values = []
    for _ in range(n_resamples):
        rows = rng.choice(n, n, replace=True)
        values.append(float(statistic(*[np.asarray(a)[rows] for a in arrays])))
    tail = 100 * (1 - level) / 2
    return tuple(np.percentile(values, [tail, 100 - tail]))


def interval_by_sorting(statistic, *arrays, level=0.95, n_resamples=1000, rng=None):
    """The k-th of the sorted values, and lists picked row by row."""
    rng = np.random.default_rng() if rng is None else rng
    n, values = len(arrays[0]), []
    for _ in range(n_resamples):
        rows = [math.floor(u * n) for u in rng.random(n)]
        values.append(statistic(*(np.array([a[i] for i in rows]) for a in arrays)))
    values.sort()
    cut = round((1 - level) / 2 * n_resamples)
    return values[cut], values[max(cut, n_resamples - cut - 1)]


def interval_all_at_once(statistic, *arrays, level=0.95, n_resamples=1000, rng=None):
    """All rows drawn before the loop, a row of numbers for each resample; an array comes back."""
    rng = np.random.default_rng() if rng is None else rng
    n = len(arrays[0])
    rows = rng.integers(0, n, (n_resamples, n))
    arrays = tuple(map(np.asarray, arrays))
    values = np.array([statistic(*(a[indices] for a in arrays)) for indices in rows])
    return np.quantile(values, [0.5 - level / 2, 0.5 + level / 2])


def interval_with_the_sample_first(statistic, *arrays, level=0.95, n_resamples=1000, rng=None):
    """Asks for the sample's own value too; another definition of a quantile."""
    if rng is None:
        rng = np.random.default_rng()
    arrays = [np.asarray(a) for a in arrays]
    statistic(*arrays)
    n = len(arrays[0])
    weights = (rng.multinomial(n, [1 / n] * n) for _ in range(n_resamples))
    values = [statistic(*(np.repeat(a, w, axis=0) for a in arrays)) for w in weights]
    ends = [(1 - level) / 2, (1 + level) / 2]
    return tuple(float(np.quantile(values, q, method="median_unbiased")) for q in ends)


def split_by_closure(sequences, max_distance=1, test_fraction=0.2, seed=0):
    """Who can be reached, by products of the matrix of who is near."""
    n = len(sequences)
    near = np.array(
        [[Levenshtein.distance(a, b) <= max_distance for b in sequences] for a in sequences]
    )
    reached = np.linalg.matrix_power(near.astype(float), n) > 0
    first = reached.argmax(axis=1)
    roots = np.random.default_rng(seed).permutation(np.unique(first))
    sizes = np.cumsum([np.sum(first == root) for root in roots])
    in_test = np.isin(first, roots[sizes <= test_fraction * n])
    return np.flatnonzero(~in_test), np.flatnonzero(in_test)


RIGHT = {
    "sequences.encode_cdr3": [
        encoded_by_table,
        encoded_by_padding,
        encoded_by_comparing,
        encoded_in_place,
    ],
    "sequences.split_by_similarity": [
        split_until_full,
        split_below,
        split_by_train,
        split_by_walking,
        split_by_closure,
    ],
    "sequences.balanced_accuracy": [
        balanced_by_sklearn,
        balanced_by_counting,
        balanced_by_weights,
        balanced_by_bincount,
    ],
    "sequences.bootstrap_interval": [
        interval_by_choice,
        interval_by_sorting,
        interval_all_at_once,
        interval_with_the_sample_first,
    ],
}
