# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Exercises 16 · T-cell receptors
#
# Four small functions stand between a table of receptors and an honest number: letters become ids,
# near-copies are kept on one side of a split, a score ignores how common a class is, and an
# interval says how sure the score is. Fill in the cells marked *your code* and run the check below
# each.
#
# The second and the last one draw random numbers. They are judged by what every right answer does,
# never by the numbers that come out. Functions leave what they are given as it is.

# %%
from itertools import combinations

import networkx as nx
import numpy as np
import torch
from rapidfuzz.distance import Levenshtein

from attncourse.checks import check, examine

ALPHABET = "ACDEFGHIKLMNPQRSTVWY"  # the twenty amino acids

# %% [markdown]
# ## 1 · `encode_cdr3`
#
# <!-- facts: encode_cdr3 -->
#
# Write `encode_cdr3(sequence, max_length)`: the ids of a sequence of amino acids. The letter
# `ALPHABET[k]` has id k + 1, so ids are 1 to 20, and 0 fills up the end.
#
# | | shape | |
# | --- | --- | --- |
# | `sequence` | a `str` | at least one letter |
# | `max_length` | a whole number | |
# | returns | `(max_length,)` | a torch tensor of dtype `int64` |
#
# - Lower case is read as upper case.
# - Any other character (a star, a gap, a space, *B*, *X*) raises `ValueError`.
# - So does a sequence of more than `max_length` letters.
#
# <!-- hints: encode_cdr3 -->
#
# 1. `ALPHABET.index(letter)` counts from 0, and raises ValueError for a letter that is not there.
# 2. Start from `torch.zeros(max_length, dtype=torch.int64)` and fill its beginning.
# 3. Ask for the length first: a sequence that does not fit is refused, not cut.


# %% nbgrader={"grade_id": "encode_cdr3", "solution": true}
def encode_cdr3(sequence, max_length):
    ### BEGIN SOLUTION
    if len(sequence) > max_length:
        raise ValueError(f"expected at most {max_length} letters, got {len(sequence)}")
    if not set(sequence) <= set(ALPHABET + ALPHABET.lower()):
        raise ValueError(f"expected letters of {ALPHABET}, got {sequence!r}")
    text = sequence.upper()
    ids = torch.zeros(max_length, dtype=torch.int64)
    ids[: len(text)] = torch.tensor([1 + ALPHABET.index(letter) for letter in text])
    return ids
    ### END SOLUTION


# %% [markdown]
# C is 2, A is 1, S is 16, F is 5. Expect `[2, 1, 16, 16, 5, 0, 0]`:

# %%
encode_cdr3("CASsF", 7)

# %% nbgrader={"grade_id": "check_encode_cdr3", "locked": true}
check("sequences.encode_cdr3", encode_cdr3)

# %% [markdown]
# ## 2 · `split_by_similarity`
#
# <!-- facts: split_by_similarity -->
#
# Write `split_by_similarity(sequences, max_distance=1, test_fraction=0.2, seed=0)`, which returns
# `(train, test)`: two arrays of indices into `sequences`, each sorted.
#
# - Two sequences belong together where their edit distance (Levenshtein: letters inserted, deleted
#   or exchanged) is at most `max_distance`. So does whoever belongs together with one of them:
#   a near-copy of a near-copy is in the same **cluster**.
# - A whole cluster goes to one side. Sequences of different clusters may be parted.
# - Every index is in train or in test, once; equal sequences have an index each.
# - The test side has `test_fraction · n` sequences, give or take the size of the largest cluster.
# - The order in which clusters are taken is drawn from `seed`: equal seeds give equal splits,
#   other seeds other ones.
#
# `sequences` is a list of strings or an array of them, at most 60, and can be split so. You may use
# `rapidfuzz` for distances and `networkx` for clusters, as imported above, or write both yourself:
# for so few sequences plain Python is quick enough.
#
# <!-- hints: split_by_similarity -->
#
# 1. Begin with every sequence in a cluster of its own, and join the clusters of two sequences
#    whenever they are near.
# 2. `rapidfuzz.distance.Levenshtein.distance(a, b)` counts edits. For the joining,
#    `networkx.connected_components` or `networkx.utils.UnionFind` will do.
# 3. Shuffle the clusters with `np.random.default_rng(seed)`, and give one to the test side while
#    that brings its size closer to `test_fraction * len(sequences)`.


# %% nbgrader={"grade_id": "split_by_similarity", "solution": true}
def split_by_similarity(sequences, max_distance=1, test_fraction=0.2, seed=0):
    ### BEGIN SOLUTION
    n = len(sequences)
    graph = nx.Graph()
    graph.add_nodes_from(range(n))
    for i, j in combinations(range(n), 2):
        if Levenshtein.distance(sequences[i], sequences[j]) <= max_distance:
            graph.add_edge(i, j)
    clusters = [sorted(cluster) for cluster in nx.connected_components(graph)]
    test = []
    for k in np.random.default_rng(seed).permutation(len(clusters)):
        missing = test_fraction * n - len(test)
        if abs(missing - len(clusters[k])) < missing:
            test += clusters[k]
    return np.setdiff1d(np.arange(n), test), np.sort(np.array(test, dtype=int))
    ### END SOLUTION


# %% [markdown]
# Sequences 0, 2 and 3 are a chain of near-copies, so they are always on the same side:

# %%
split_by_similarity(["CASSLGF", "CATTQYF", "CASSLAF", "CASSLAYF", "CGGNWF"], 1, 0.5)

# %% nbgrader={"grade_id": "check_split_by_similarity", "locked": true}
check("sequences.split_by_similarity", split_by_similarity)

# %% [markdown]
# ## 3 · `balanced_accuracy`
#
# <!-- facts: balanced_accuracy -->
#
# Write `balanced_accuracy(labels, predictions)`, a number from 0 to 1: for each class, the share of
# the sequences *with this label* that were predicted right (its **recall**); and of these the plain
# mean.
#
# The classes are those that occur in `labels`. A class that is only predicted has no recall and is
# not one of them; its predictions are simply wrong. Both arguments have the same length, at least
# 1, and are arrays or lists, of numbers, strings or truth values.
#
# *Fine print:* a guard in a denominator may be 1e-12 at most.
#
# <!-- hints: balanced_accuracy -->
#
# 1. `predictions[labels == c] == c` says, for one class, which were recognised.
# 2. The mean of truth values is a share. `np.unique(labels)` lists the classes.
# 3. `np.asarray` first: lists have no `==` letter by letter.


# %% nbgrader={"grade_id": "balanced_accuracy", "solution": true}
def balanced_accuracy(labels, predictions):
    ### BEGIN SOLUTION
    labels, predictions = np.asarray(labels), np.asarray(predictions)
    recalls = [np.mean(predictions[labels == c] == c) for c in np.unique(labels)]
    return float(np.mean(recalls))
    ### END SOLUTION


# %% [markdown]
# Of four zeros three are found, of two ones one: (3/4 + 1/2)/2, so expect 0.625:

# %%
balanced_accuracy([0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 0])

# %% nbgrader={"grade_id": "check_balanced_accuracy", "locked": true}
check("sequences.balanced_accuracy", balanced_accuracy)

# %% [markdown]
# ## 4 · `bootstrap_interval`
#
# <!-- facts: bootstrap_interval -->
#
# Write `bootstrap_interval(statistic, *arrays, level=0.95, n_resamples=1000, rng=None)`, which
# returns `(low, high)`.
#
# - A resample draws n row numbers from 0 … n − 1, with replacement, n being the number of rows; it
#   takes these rows from *every* array. Arrays may be lists, and may have several axes: rows are
#   along the first one. The statistic gets NumPy arrays.
# - `statistic(*resampled)` is asked for each of `n_resamples` resamples. It returns a number.
# - `low` and `high` are the quantiles (1 − level)/2 and (1 + level)/2 of these numbers. Which of
#   the usual definitions of a quantile you take does not matter.
# - Random numbers come from `rng`, a `np.random.Generator`: generators in the same state give the
#   same interval, and a generator that was used goes on. Without one, take a fresh
#   `np.random.default_rng()`, so that two calls differ.
#
# <!-- hints: bootstrap_interval -->
#
# 1. One resample: draw n row numbers with `rng.integers(n, size=n)`, pick them from every array,
#    ask the statistic.
# 2. Collect what the statistic says of all resamples in a list.
# 3. `np.quantile(found, [(1 - level) / 2, (1 + level) / 2])` holds both ends.


# %% nbgrader={"grade_id": "bootstrap_interval", "solution": true}
def bootstrap_interval(statistic, *arrays, level=0.95, n_resamples=1000, rng=None):
    ### BEGIN SOLUTION
    rng = np.random.default_rng() if rng is None else rng
    arrays = [np.asarray(array) for array in arrays]
    n, found = len(arrays[0]), []
    for _ in range(n_resamples):
        rows = rng.integers(n, size=n)
        found.append(statistic(*(array[rows] for array in arrays)))
    low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
    ### END SOLUTION


# %% [markdown]
# The mean of 0 … 99 is 49.5, with a standard error of about 2.9. Expect about (44, 55):

# %%
bootstrap_interval(np.mean, np.arange(100))

# %% nbgrader={"grade_id": "check_bootstrap_interval", "locked": true}
check("sequences.bootstrap_interval", bootstrap_interval)

# %% [markdown] nbgrader={"grade_id": "explain_split", "grade": true, "solution": true, "points": 4}
# ## 5 · Two scores for one model
#
# <!-- facts: explain_split -->
#
# A model has a balanced accuracy of 0.80 on a random split and of 0.55 on a split that keeps
# near-copies on one side. Explain in three sentences what the first number rewards, which of the
# two you would report for receptors that nobody has seen, and why plain accuracy says little
# where one class has 90 % of the sequences.
#
# | points | for |
# | --: | --- |
# | 1 | what the random split rewards |
# | 1 | which of the two, and why |
# | 1 | what plain accuracy gives to a guess |
# | 1 | what balanced accuracy does about it |
#
# Write your answer in place of the line below: double-click this cell.
#
# ### BEGIN SOLUTION
# On a random split the model meets near-copies of what it was trained on, so the 0.80 rewards
# memory as well as knowledge. For receptors that nobody has seen I report 0.55, from the split
# without near-copies. Plain accuracy gives 0.9 to whoever always names the large class, while
# balanced accuracy averages the recall of all classes and gives that guess one over their number.
#
# For the points, in this order: (1) on a random split near-copies of test sequences are in the
# training set, so memory is rewarded; (1) the split without near-copies is the one that speaks of
# new receptors; (1) who always names the large class is right in 90 % and knows nothing; (1)
# balanced accuracy averages over the classes, where that guess has one over their number.
# ### END SOLUTION

# %% [markdown]
# ## Graded cells
#
# Nothing to do here. These cells are run when your notebook is graded. The first of each pair
# counts the points that the check shows; the second holds one more point, for a test on inputs that
# you have not seen.

# %% nbgrader={"grade_id": "points_encode_cdr3", "grade": true, "locked": true}
examine("sequences.encode_cdr3", encode_cdr3).earned

# %% nbgrader={"grade_id": "hidden_encode_cdr3", "grade": true, "locked": true, "points": 1}
# One more test of encode_cdr3.
### BEGIN HIDDEN TESTS
ids = encode_cdr3("cassirssyeqyf", 20)
assert tuple(ids.shape) == (20,), "max_length = 20 should give 20 ids"
assert [int(i) for i in ids[13:]] == [0] * 7, "behind the end of the sequence there should be zeros"
assert "".join(ALPHABET[int(i) - 1] for i in ids[:13]) == "CASSIRSSYEQYF", (
    "ids should be 1 + the letter's place in ALPHABET, small letters read as large ones"
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_split_by_similarity", "grade": true, "locked": true}
examine("sequences.split_by_similarity", split_by_similarity).earned

# %% nbgrader={"grade_id": "hidden_split_by_similarity", "grade": true, "locked": true, "points": 1}
# One more test of split_by_similarity.
### BEGIN HIDDEN TESTS
far = ["AAAAAAAA", "CCCCCCCC", "DDDDDDDD", "EEEEEEEE", "FFFFFFFF", "GGGGGGGG"]
listed = far + [one + "W" for one in far]
train, test = split_by_similarity(listed, 1, 0.5, np.random.randint(1000))
train, test = [int(i) for i in train], [int(i) for i in test]
assert sorted(train + test) == list(range(12)), (
    "every index should be in train or in test, and in one of them alone"
)
assert all((i in test) == (i + 6 in test) for i in range(6)), (
    "sequences that differ by one letter should be on the same side"
)
assert 4 <= len(test) <= 8, (
    "with test_fraction=0.5 the test side should have half, give or take the largest cluster"
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_balanced_accuracy", "grade": true, "locked": true}
examine("sequences.balanced_accuracy", balanced_accuracy).earned

# %% nbgrader={"grade_id": "hidden_balanced_accuracy", "grade": true, "locked": true, "points": 1}
# One more test of balanced_accuracy.
### BEGIN HIDDEN TESTS
labels = np.repeat([0, 1, 2], [90, 9, 1])
guess = np.zeros(100, dtype=int)
assert np.isclose(float(balanced_accuracy(labels, guess)), 1 / 3), (
    "guessing one of three classes should earn 1/3, however common that class is"
)
assert np.isclose(float(balanced_accuracy(labels, labels)), 1.0), (
    "predictions that are all right should earn 1"
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_bootstrap_interval", "grade": true, "locked": true}
examine("sequences.bootstrap_interval", bootstrap_interval).earned


# %% nbgrader={"grade_id": "hidden_bootstrap_interval", "grade": true, "locked": true, "points": 1}
# One more test of bootstrap_interval.
### BEGIN HIDDEN TESTS
def share(array):
    """The share of ones."""
    return float(np.mean(np.asarray(array)))


ones = np.repeat([0.0, 1.0], [200, 200])
low, high = bootstrap_interval(share, ones, n_resamples=400)
half = 1.96 * 0.5 / 20  # 400 coins
assert abs(float(low) - (0.5 - half)) < 0.03, (
    "the low end for the share of ones in 400 tosses should be near 0.45"
)
assert abs(float(high) - (0.5 + half)) < 0.03, (
    "the high end for the share of ones in 400 tosses should be near 0.55"
)
### END HIDDEN TESTS
