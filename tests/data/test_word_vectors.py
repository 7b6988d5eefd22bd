"""The real word vectors of chapters 1, 3 and 4: what is kept, and the command that makes it."""

import sys

import numpy as np
import pytest

from attncourse.data import kept
from attncourse.data.words import word_vectors
from attncourse.tokens import Vocabulary, cosine_similarity
from helpers.project import ROOT

TEXTS = [
    "The man walked the dog",
    "I am hungry",
    "She likes belly",
    "I like sushi because it makes",
]


def test_what_is_kept_is_small_and_says_where_it_comes_from():
    file = ROOT / "attncourse" / "data" / "word_vectors.json"
    assert file.stat().st_size < 60_000
    about = kept("word_vectors")["about"]
    assert set(about) == {"date", "model", "licence", "versions", "command"}
    assert "Apache 2.0" in about["licence"]
    assert (ROOT / about["command"].split()[1]).is_file()
    found = word_vectors()
    assert found.vectors.shape == (len(found.words), 48)
    assert len(set(found.words)) == len(found.words) > 300
    assert len(set(found.ids)) == len(found.words)
    assert 0.6 < found.variance < 0.8
    assert np.isfinite(found.vectors).all()


def test_the_words_of_the_course_are_among_them():
    found = word_vectors()
    for text in TEXTS:
        for word in Vocabulary.from_texts([text]).tokens[1:]:
            assert word in found.words or word.upper() in found.words, word


def test_vectors_are_those_of_the_words_in_order():
    found = word_vectors()
    assert found("cat", "dog").shape == (2, 48)
    np.testing.assert_array_equal(found("my cat"), found("my", "cat"))
    np.testing.assert_array_equal(found("cat")[0], found.vectors[found.words.index("cat")])
    with pytest.raises(ValueError, match="no vector is kept for 'ferret'"):
        found("ferret")


def test_nearest_are_those_of_the_largest_cosine():
    found = word_vectors()
    cosines = cosine_similarity(found("three"), found.vectors)[0]
    order = np.argsort(-cosines)
    assert found.words[order[0]] == "three"
    expected = [(found.words[i], pytest.approx(cosines[i])) for i in order[1:5]]
    assert found.nearest("three", 4) == expected
    assert [word for word, _ in found.nearest("cat", 1, ["dog", "cat", "the"])] == ["dog"]
    assert len(found.nearest("cat", 3, ["dog"])) == 1


def test_the_command_makes_it_anew(real_model, monkeypatch):
    """Up to the rounding to half precision; the model is the pinned one."""
    monkeypatch.setattr(sys, "path", [str(ROOT / "benchmarks"), *sys.path])
    import word_vectors as command

    from attncourse.pretrained.byte_pairs import BytePairs
    from attncourse.pretrained.model import model_file
    from attncourse.support.gguf_file import read_gguf

    file = read_gguf(model_file())
    words, ids, vectors, variance, whole = command.vectors(file, BytePairs.from_gguf(file))
    found = word_vectors()
    assert (words, ids) == (found.words, found.ids.tolist())
    assert {word: list(one) for word, one in whole.items()} == {
        word: [other, pytest.approx(cosine, abs=2e-3)]
        for word, (other, cosine) in found.whole.items()
    }
    assert variance == pytest.approx(found.variance, abs=1e-4)
    np.testing.assert_allclose(vectors[:20] @ vectors.T, found.vectors[:20] @ found.vectors.T,
                               atol=0.05)  # fmt: skip
