"""Chapter 1: the package's functions against oracles, and other right answers to its exercises."""

import re
import string

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import pairwise

from attncourse.tokens import Vocabulary, cosine_similarity, embed, one_hot, tokenize
from helpers.refusals import refused

# --- right answers in other styles -----------------------------------------------------------


def tokenize_loop(text):
    found, word = [], ""
    for character in text.lower():
        if character.isalnum() or character == "_":
            word += character
            continue
        if word:
            found.append(word)
        word = ""
        if not character.isspace():
            found.append(character)
    return [*found, word] if word else found


def tokenize_split(text):
    return [piece for piece in re.split(r"(\W)", text.lower()) if piece.strip()]


def tokenize_spaced(text):
    return re.sub(r"([^\w\s])", r" \1 ", text).lower().split()


def tokenize_finditer(text):
    return [match.group().lower() for match in re.finditer(r"(\w+)|(\S)", text)]


def tokenize_groupby(text):
    from itertools import groupby

    tokens = []
    for kind, run in groupby(text.lower(), lambda c: bool(re.match(r"\w", c))):
        run = "".join(run)
        tokens += [run] if kind else "".join(run.split())
    return tokens


def refuse(ids, n_vocab):
    if np.min(ids) < 0 or np.max(ids) >= n_vocab:
        raise ValueError("no such id")


def hot_loops(ids, n_vocab):
    ids = np.asarray(ids)
    if ids.ndim > 1:
        return np.stack([hot_loops(row, n_vocab) for row in ids])
    H = np.zeros((len(ids), n_vocab))
    for i, k in enumerate(ids):
        if not 0 <= k < n_vocab:
            raise ValueError(f"{k} is out of range")
        H[i, k] = 1
    return H


def hot_eye(ids, n_vocab):
    refuse(ids, n_vocab)
    return np.eye(n_vocab)[ids]


def hot_put_along_axis(ids, n_vocab):
    refuse(ids, n_vocab)
    H = np.zeros((*ids.shape, n_vocab))
    np.put_along_axis(H, ids[..., None].astype(np.intp), 1, axis=-1)
    return H


def hot_where(ids, n_vocab):
    if not np.isin(ids, range(n_vocab)).all():
        raise ValueError
    return np.where(np.expand_dims(ids, -1) == range(n_vocab), 1.0, 0.0)


def hot_torch(ids, n_vocab):
    import torch

    refuse(ids, n_vocab)
    ids = torch.from_numpy(np.array(ids)).long()
    return torch.nn.functional.one_hot(ids, n_vocab).double()


def embed_loops(ids, table):
    refuse(ids, table.shape[0])
    if ids.ndim > 1:
        return np.array([embed_loops(row, table) for row in ids])
    return np.array([table[k] for k in ids])


def embed_matmul(ids, table):
    return hot_eye(ids, table.shape[0]) @ table


def embed_take(ids, table):
    refuse(ids, table.shape[0])
    return np.take(table, ids, axis=0)


def embed_einsum(ids, table):
    return np.einsum("...v,vd->...d", hot_where(ids, len(table)), table)


def embed_torch(ids, table):
    import torch

    refuse(ids, len(table))
    ids, table = torch.from_numpy(np.array(ids)).long(), torch.from_numpy(np.array(table))
    return torch.nn.functional.embedding(ids, table)


def cosine_loops(X, Y):
    if X.ndim > 2:
        return np.stack([cosine_loops(x, y) for x, y in zip(X, Y, strict=True)])
    S = np.zeros((len(X), len(Y)))
    for i, x in enumerate(X):
        for j, y in enumerate(Y):
            lengths = np.sqrt((x * x).sum()) * np.sqrt((y * y).sum())
            S[i, j] = 0 if lengths == 0 else x @ y / lengths
    return S


def cosine_einsum(X, Y):
    x, y = np.linalg.norm(X, axis=-1), np.linalg.norm(Y, axis=-1)
    lengths = np.einsum("...n,...m->...nm", x, y)
    S = np.einsum("...nd,...md->...nm", X, Y)
    return np.divide(S, lengths, out=np.zeros(S.shape), where=lengths > 0)


def cosine_guarded(X, Y):
    X = X / (np.linalg.norm(X, axis=-1, keepdims=True) + 1e-12)
    Y = Y / np.maximum(np.linalg.norm(Y, axis=-1, keepdims=True), 1e-12)
    return X @ Y.swapaxes(-1, -2)


def cosine_nan_to_num(X, Y):
    X, Y = X.astype(np.float64), Y.astype(np.float64)
    lengths = np.sqrt((X**2).sum(-1))[..., :, None] * np.sqrt((Y**2).sum(-1))[..., None, :]
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(np.matmul(X, np.moveaxis(Y, -1, -2)) / lengths)


def cosine_sklearn(X, Y):
    if X.ndim > 2:
        return np.stack([cosine_sklearn(x, y) for x, y in zip(X, Y, strict=True)])
    return pairwise.cosine_similarity(X, Y)


def cosine_torch(X, Y):
    import torch

    X, Y = (torch.from_numpy(Z * 1.0) for Z in (X, Y))
    return torch.cosine_similarity(X[..., :, None, :], Y[..., None, :, :], dim=-1)


RIGHT = {
    "tokens.tokenize": [
        tokenize_loop,
        tokenize_split,
        tokenize_spaced,
        tokenize_finditer,
        tokenize_groupby,
    ],
    "tokens.one_hot": [hot_loops, hot_eye, hot_put_along_axis, hot_where, hot_torch],
    "tokens.embed": [embed_loops, embed_matmul, embed_take, embed_einsum, embed_torch],
    "tokens.cosine_similarity": [
        cosine_loops,
        cosine_einsum,
        cosine_guarded,
        cosine_nan_to_num,
        cosine_sklearn,
        cosine_torch,
    ],
}

# --- the package -----------------------------------------------------------------------------

TEXTS = (
    "The man walked the dog",
    "I am hungry",
    "My cat is small, cute, and fluffy. She likes belly rubs.",
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TEXTS[0], "the man walked the dog"),
        (TEXTS[2], "my cat is small , cute , and fluffy . she likes belly rubs ."),
        ("don't?!", "don ' t ? !"),
        ("  A\tb\n\nC ", "a b c"),
        ("3.14 is π, isn’t it…", "3 . 14 is π , isn ’ t it …"),
        ("snake_case2", "snake_case2"),
        ("", ""),
        (" \n", ""),
    ],
)
def test_tokenize_hand_worked(text, expected):
    assert tokenize(text) == expected.split()


@given(st.text(alphabet=string.printable + "éßπ—“”", max_size=30))
def test_tokenize_against_a_loop(text):
    assert tokenize(text) == tokenize_loop(text)


@given(st.text(max_size=30))
def test_tokens_are_the_text_without_white_space(text):
    assert "".join(tokenize(text)) == re.sub(r"\s", "", text.lower())


@given(st.lists(st.text(alphabet="ab c.,", max_size=12), max_size=4))
def test_decode_undoes_encode_for_texts_of_the_vocabulary(texts):
    vocabulary = Vocabulary.from_texts(texts)
    for text in texts:
        ids = vocabulary.encode(text)
        assert ids.dtype == np.int64
        assert ids.shape == (len(tokenize(text)),)
        assert vocabulary.decode(ids) == tokenize(text)


def test_vocabulary_counts_by_first_appearance():
    vocabulary = Vocabulary.from_texts(TEXTS)
    assert vocabulary.tokens[:6] == ("<unk>", "the", "man", "walked", "dog", "i")
    assert (
        vocabulary.size
        == len(vocabulary.tokens)
        == len({t for x in TEXTS for t in tokenize(x)}) + 1
    )
    np.testing.assert_array_equal(vocabulary.encode(TEXTS[0]), [1, 2, 3, 1, 4])
    np.testing.assert_array_equal(vocabulary.encode("The ferret <unk>"), [1, 0, 0, 0, 0])
    assert vocabulary.decode([0, 1]) == ["<unk>", "the"]
    assert Vocabulary.from_texts([]).size == 1
    assert Vocabulary.from_texts(TEXTS) == vocabulary
    assert Vocabulary.from_texts(iter(TEXTS)) == vocabulary


def test_one_hot_hand_worked():
    H = one_hot([2, 0, 2], 4)
    np.testing.assert_array_equal(H, [[0, 0, 1, 0], [1, 0, 0, 0], [0, 0, 1, 0]])
    assert H.dtype == np.float64


@given(
    shape=st.lists(st.integers(1, 5), min_size=1, max_size=3),
    n_vocab=st.integers(1, 13),
    d=st.integers(1, 7),
    seed=st.integers(0, 99),
)
def test_one_hot_times_table_is_a_lookup(shape, n_vocab, d, seed):
    rng = np.random.default_rng(seed)
    ids, table = rng.integers(0, n_vocab, shape), rng.normal(size=(n_vocab, d))
    H, X = one_hot(ids, n_vocab), embed(ids, table)
    assert H.shape == (*shape, n_vocab)
    assert X.shape == (*shape, d)
    np.testing.assert_array_equal(H.sum(-1), 1)
    np.testing.assert_array_equal(H.argmax(-1), ids)
    np.testing.assert_array_equal(H @ table, X)
    np.testing.assert_array_equal(X, embed_loops(ids, table))


def test_embed_keeps_the_dtype_and_shares_no_memory():
    table = np.arange(6, dtype=np.float32).reshape(3, 2)
    X = embed(np.array([1, 1]), table)
    assert X.dtype == np.float32
    X[:] = -1
    np.testing.assert_array_equal(table, [[0, 1], [2, 3], [4, 5]])


def test_cosine_similarity_hand_worked():
    S = cosine_similarity([[3, 4], [0, 0]], [[6, 8], [-4, 3], [-3, -4]])
    np.testing.assert_allclose(S, [[1, 0, -1], [0, 0, 0]], rtol=0, atol=1e-15)


@given(n=st.integers(1, 7), m=st.integers(1, 5), d=st.integers(1, 11), seed=st.integers(0, 99))
def test_cosine_similarity_against_sklearn_and_its_properties(n, m, d, seed):
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(3, n, d)), rng.normal(size=(2, 1, m, d))
    X[1, 0] = 0
    S = cosine_similarity(X, Y)
    assert S.shape == (2, 3, n, m)
    np.testing.assert_allclose(S[1, 2], cosine_sklearn(X[2], Y[1, 0]), rtol=0, atol=1e-12)
    np.testing.assert_array_equal(S[:, 1, 0], 0)
    assert np.abs(S).max() <= 1 + 1e-12
    stretched = cosine_similarity(X * rng.uniform(1e-9, 1e9, (n, 1)), Y)
    np.testing.assert_allclose(stretched, S, rtol=0, atol=1e-12)


def test_cosine_similarity_keeps_float32():
    X = np.ones((2, 3), dtype=np.float32)
    assert cosine_similarity(X, X).dtype == np.float32


test_bad_input_is_refused = refused(
    [
        (lambda: tokenize(["the", "man"]), "expected a str", "got list"),
        (lambda: tokenize(b"the man"), "expected a str", "got bytes"),
        (lambda: Vocabulary.from_texts("the man"), "list of texts", "one str"),
        (lambda: Vocabulary.from_texts([1]), "expected a str", "got int"),
        (lambda: Vocabulary(("the", "man")), "<unk>.* as the first token", "got 'the'"),
        (lambda: Vocabulary(()), "<unk>.* as the first token", "got no token"),
        (lambda: Vocabulary(("<unk>", "a", "a")), "every token once", "'a' twice"),
        (lambda: Vocabulary.from_texts(TEXTS).decode([99]), "ids from 0 to 20", "got 99"),
        (lambda: Vocabulary.from_texts(TEXTS).decode([[1]]), r"shape \(n\)", r"\(1, 1\)"),
        (lambda: one_hot([1, 4], 4), "ids from 0 to 3", "got 4"),
        (lambda: one_hot([1, -1], 4), "ids from 0 to 3", "got -1"),
        (lambda: one_hot([1.0], 4), "whole numbers", "float64"),
        (lambda: one_hot([True], 4), "whole numbers", "bool"),
        (lambda: one_hot(["dog"], 4), "whole numbers", "<U3"),
        (lambda: one_hot(2, 4), r"\(\.\.\., n\)", r"got \(\)"),
        (lambda: one_hot([[1, 2], [1]], 4), "array of ids", "inhomogeneous"),
        (lambda: one_hot([1], 0), "at least 1", "got 0"),
        (lambda: embed([4], np.ones((4, 2))), "ids from 0 to 3", "got 4"),
        (lambda: embed([-1], np.ones((4, 2))), "ids from 0 to 3", "got -1"),
        (lambda: embed([0], np.ones(4)), r"\(n_vocab, d\)", r"got \(4,\)"),
        (lambda: embed(np.array([], dtype=int), np.eye(2)), "at least one entry", r"\(0,\)"),
        (lambda: cosine_similarity(np.ones((2, 3)), np.ones((2, 4))), "length d", r"\(2, 4\)"),
        (lambda: cosine_similarity(np.ones(3), np.ones((2, 3))), r"n, d\)", r"got \(3,\)"),
        (lambda: cosine_similarity([[np.nan, 1]], [[1, 1]]), "expected numbers", "NaN"),
        (lambda: cosine_similarity([[np.inf, 1]], [[1, 1]]), "finite length", "infinite"),
        (lambda: cosine_similarity([[1e200, 1]], [[1, 1]]), "finite length", "infinite"),
    ]
)
