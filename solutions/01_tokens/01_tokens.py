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
# # Exercises 1 · Tokens
#
# You write the four functions that take a text to vectors and compare them. Fill in the cells
# marked *your code*, run the check below each of them, and read what it says: it tells you which
# part of the answer holds, and where one does not, on which small example and what your function
# did there. Run a check as often as you like; it uses new numbers every time.
#
# A text of n tokens is an array of ids, shape `(n,)`, and then a matrix `X` with one token per row,
# shape `(n, d)`. Where a shape is written `(..., n, d)`, the dots stand for any number of batch
# axes, none included. An array of numbers may also hold integers. Functions leave what they are
# given as it is.

# %%
import re

import numpy as np

from attncourse.checks import check, examine

# %% [markdown]
# ## 1 · `tokenize`
#
# <!-- facts: tokenize -->
#
# Write `tokenize(text)`, which cuts a text into a list of tokens, in the order of the text and in
# lower case, as `text.lower()` makes it. There are two kinds of tokens:
#
# - a *word*: a longest run of word characters, that is, of letters of any alphabet, digits and
#   underscores (`\w` in a regular expression);
# - a *mark*: every other character that is not white space, each by itself.
#
# White space (spaces, tabs, line ends) separates tokens and is dropped. So *don't* becomes
# `don`, `'`, `t`, and *?!* becomes two tokens. An empty text has no tokens: the empty list.
#
# The module `re` is imported above; you may also do without.
#
# <!-- hints: tokenize -->
#
# 1. There are two kinds of tokens: a run of word characters, or one character that is neither a
#    word character nor white space.
# 2. In a regular expression `\w` is a word character, `\s` is white space, and `[^\w\s]` is one
#    character that is neither.
# 3. `re.findall(pattern, text)` returns all matches in order; `a|b` matches a or b.


# %% nbgrader={"grade_id": "tokenize", "solution": true}
def tokenize(text):
    ### BEGIN SOLUTION
    return re.findall(r"\w+|[^\w\s]", text.lower())
    ### END SOLUTION


# %% [markdown]
# Expect `['my', 'cat', 'is', 'small', ',', 'cute', ',', 'and', 'fluffy', '.']`:

# %%
tokenize("My cat is small, cute, and fluffy.")

# %% nbgrader={"grade_id": "check_tokenize", "locked": true}
check("tokens.tokenize", tokenize)

# %% [markdown]
# ## 2 · `one_hot`
#
# <!-- facts: one_hot -->
#
# A one-hot vector turns an id into numbers without saying anything but which id it is: zeros, and
# a single 1 in the column of the id,
#
# $$H_{ik} = 1 \text{ if } k = \text{ids}_i, \text{ else } 0 .$$
#
# Write `one_hot(ids, n_vocab)`.
#
# | | shape | |
# | --- | --- | --- |
# | `ids` | `(..., n)` | an array of whole numbers, counted from 0 |
# | `n_vocab` | one number | the size of the vocabulary |
# | returns | `(..., n, n_vocab)` | float64, one row per id |
#
# The ids that exist are 0 … `n_vocab` − 1. If any other is among them, raise `ValueError`; mind
# that NumPy takes a negative index without complaint.
#
# <!-- hints: one_hot -->
#
# 1. Start from `np.zeros((*ids.shape, n_vocab))`. Which column of row i becomes 1?
# 2. The rows you need are rows of the identity matrix: row k of `np.eye(n_vocab)` has its 1 in
#    column k. An array of ids as an index picks one row for each, batches included.
# 3. The range comes first: raise ValueError if `((ids < 0) | (ids >= n_vocab)).any()`.


# %% nbgrader={"grade_id": "one_hot", "solution": true}
def one_hot(ids, n_vocab):
    ### BEGIN SOLUTION
    if (ids < 0).any() or (ids >= n_vocab).any():
        raise ValueError(f"one_hot: ids go from 0 to {n_vocab - 1}")
    return np.eye(n_vocab)[ids]
    ### END SOLUTION


# %% [markdown]
# Expect `[[0. 0. 1. 0.] [1. 0. 0. 0.] [0. 0. 1. 0.]]`:

# %%
one_hot(np.array([2, 0, 2]), 4)

# %% nbgrader={"grade_id": "check_one_hot", "locked": true}
check("tokens.one_hot", one_hot)

# %% [markdown]
# ## 3 · `embed`
#
# <!-- facts: embed -->
#
# An embedding table holds a vector for each token of the vocabulary, row k for the token with
# id k. Write `embed(ids, table)`, which returns the vectors of the tokens of a text. It equals
# `one_hot(ids, n_vocab) @ table`, and may be written so, but a lookup is shorter.
#
# | | shape | |
# | --- | --- | --- |
# | `ids` | `(..., n)` | an array of whole numbers, counted from 0 |
# | `table` | `(n_vocab, d)` | one row per token of the vocabulary |
# | returns | `(..., n, d)` | one row per token of the text |
#
# An id that is not in 0 … `n_vocab` − 1 raises `ValueError`. The table stays as it is.
#
# *Fine print:* `table` may hold whole numbers.
#
# <!-- hints: embed -->
#
# 1. `one_hot(ids, n_vocab) @ table` is right. Which entries of the table survive the zeros?
# 2. An integer array as an index, `table[ids]`, picks whole rows, and any shape of `ids` will do.
# 3. The range comes first: the ids that exist are 0 … len(table) − 1.


# %% nbgrader={"grade_id": "embed", "solution": true}
def embed(ids, table):
    ### BEGIN SOLUTION
    if (ids < 0).any() or (ids >= len(table)).any():
        raise ValueError(f"embed: ids go from 0 to {len(table) - 1}")
    return table[ids]
    ### END SOLUTION


# %% [markdown]
# Rows 2, 0 and 2 of a table of three tokens. Expect `[[5. 6.] [1. 2.] [5. 6.]]`:

# %%
embed(np.array([2, 0, 2]), np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))

# %% nbgrader={"grade_id": "check_embed", "locked": true}
check("tokens.embed", embed)

# %% [markdown]
# ## 4 · `cosine_similarity`
#
# <!-- facts: cosine_similarity -->
#
# How alike are two vectors, whatever their lengths? The cosine of the angle between them says so,
#
# $$S_{ij} = \frac{X_i \cdot Y_j}{\lVert X_i \rVert \, \lVert Y_j \rVert} ,
# \qquad \lVert x \rVert = \sqrt{x \cdot x} .$$
#
# Write `cosine_similarity(X, Y)`, which compares every row of `X` with every row of `Y`.
#
# | | shape | |
# | --- | --- | --- |
# | `X` | `(..., n, d)` | n vectors |
# | `Y` | `(..., m, d)` | m vectors, behind the same batch axes |
# | returns | `(..., n, m)` | from −1 to 1 |
#
# A vector of zeros has no direction: its similarity with everything is 0. Vectors that are not
# zero are at least 0.001 long. A guard added to a length may be 1e-12 at most, and none may stand
# under the root. The arrays that were passed in stay as they are.
#
# *Fine print:* `X` and `Y` may hold whole numbers.
#
# <!-- hints: cosine_similarity -->
#
# 1. Divide every row by its length first. What is the dot product of two vectors of length 1?
# 2. `np.linalg.norm(X, axis=-1, keepdims=True)` holds the length of every row, (…, n, 1).
# 3. `np.where(lengths == 0, 1, lengths)` replaces the lengths that must not be divided by.


# %% nbgrader={"grade_id": "cosine_similarity", "solution": true}
def cosine_similarity(X, Y):
    ### BEGIN SOLUTION
    def unit_rows(Z):
        lengths = np.linalg.norm(Z, axis=-1, keepdims=True)
        return Z / np.where(lengths == 0, 1, lengths)

    return unit_rows(X) @ np.swapaxes(unit_rows(Y), -1, -2)
    ### END SOLUTION


# %% [markdown]
# The first vector of `X` has the direction of the first and a right angle with the second of `Y`;
# the second is zero. Expect `[[1. 0.] [0. 0.]]`:

# %%
np.round(cosine_similarity(np.array([[3.0, 4.0], [0, 0]]), np.array([[6.0, 8.0], [-4, 3]])), 3)

# %% nbgrader={"grade_id": "check_cosine_similarity", "locked": true}
check("tokens.cosine_similarity", cosine_similarity)

# %% [markdown]
# ## Graded cells
#
# Nothing to do here. These cells are run when your notebook is graded. The first of each pair
# counts the points that the check shows; the second holds one more point, for a test on inputs that
# you have not seen.

# %% nbgrader={"grade_id": "points_tokenize", "grade": true, "locked": true}
examine("tokens.tokenize", tokenize).earned

# %% nbgrader={"grade_id": "hidden_tokenize", "grade": true, "locked": true, "points": 1}
# One more test of tokenize.
### BEGIN HIDDEN TESTS
text = "She said: “Hungry?!” — he\tdidn't (2 of 3 well-fed cats did).\nShe said no more."
found = list(tokenize(text))
assert "".join(found) == "".join(text.lower().split()), (
    "the tokens in a row should be the text in lower case without its white space, tabs included"
)
assert all(token.isalnum() or len(token) == 1 for token in found), (
    "a token should be a word or a single mark: quotation marks and dashes are marks of their own"
)
assert [found.count(token) for token in ("she", "-", "did", "2")] == [2, 1, 1, 1], (
    "“she” should come twice, “-”, “did” and “2” once: the apostrophe of “didn't” and the hyphen cut"
)
assert len(found) == 29, "a text of two lines with 29 words and marks should give 29 tokens"
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_one_hot", "grade": true, "locked": true}
examine("tokens.one_hot", one_hot).earned

# %% nbgrader={"grade_id": "hidden_one_hot", "grade": true, "locked": true, "points": 1}
# One more test of one_hot.
### BEGIN HIDDEN TESTS
some = np.random.randint(0, 9, size=(3, 7))
expected = np.array([[[float(k == i) for k in range(11)] for i in row] for row in some])
rows = np.asarray(one_hot(some, 11))
assert rows.shape == (3, 7, 11), (
    "ids of shape (3, 7) and 11 words should give shape (3, 7, 11): a row for each id of a batch"
)
assert np.array_equal(rows, expected), (
    "a row should be 0 but for a single 1, in the column of its id"
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_embed", "grade": true, "locked": true}
examine("tokens.embed", embed).earned

# %% nbgrader={"grade_id": "hidden_embed", "grade": true, "locked": true, "points": 1}
# One more test of embed.
### BEGIN HIDDEN TESTS
some, table = np.random.randint(0, 7, size=(2, 5)), np.random.normal(size=(7, 3))
expected = np.array([[table[i].tolist() for i in row] for row in some])
looked_up = np.asarray(embed(some, table))
assert looked_up.shape == (2, 5, 3), (
    "ids of shape (2, 5) and rows of 3 numbers should give shape (2, 5, 3)"
)
assert np.allclose(looked_up, expected), (
    "each id should give its row of the table, its numbers in their order"
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_cosine_similarity", "grade": true, "locked": true}
examine("tokens.cosine_similarity", cosine_similarity).earned

# %% nbgrader={"grade_id": "hidden_cosine_similarity", "grade": true, "locked": true, "points": 1}
# One more test of cosine_similarity.
### BEGIN HIDDEN TESTS
a, b = np.random.uniform(-np.pi, np.pi, size=5), np.random.uniform(-np.pi, np.pi, size=7)
X = np.random.uniform(10, 99, size=(5, 1)) * np.stack([np.cos(a), np.sin(a)], axis=-1)
Y = np.random.uniform(10, 99, size=(7, 1)) * np.stack([np.cos(b), np.sin(b)], axis=-1)
expected = np.cos(a[:, None] - b)
X[3] = expected[3] = 0
S = np.asarray(cosine_similarity(X, Y))
assert S.shape == (5, 7), (
    "5 vectors in X and 7 in Y should give shape (5, 7): every row of X with every row of Y"
)
assert np.allclose(S[3], 0), "the similarity of a row of zeros with anything should be 0"
assert np.allclose(S, expected), (
    "vectors of any length should have the cosine of the angle between them"
)
### END HIDDEN TESTS
