"""The real model's file lies beside the built pages where it has been fetched, and only there."""

import os

import pytest

import book
from attncourse.pretrained.model import Pinned


@pytest.fixture
def model_paths(tmp_path, monkeypatch):
    """Return the path of a short model file in the cache, and its place beside the book."""
    monkeypatch.setattr(book, "FILE", Pinned("a.gguf", 5, ""))
    monkeypatch.setenv("ATTNCOURSE_CACHE", str(tmp_path / "kept"))
    monkeypatch.delenv("ATTNCOURSE_MODEL", raising=False)
    (tmp_path / "html").mkdir()
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "a.gguf").write_bytes(b"whole")
    return tmp_path / "kept" / "a.gguf", tmp_path / "html" / "model" / "a.gguf"


def test_the_model_is_linked_or_copied_beside_the_book(model_paths, monkeypatch):
    cached, beside_book = model_paths
    book.put_model_beside(beside_book.parents[1])
    assert beside_book.samefile(cached)

    def refuses(*_):
        raise OSError("another disk")

    monkeypatch.setattr(os, "link", refuses)
    beside_book.unlink()
    beside_book.write_bytes(b"cut")  # as where a copy was interrupted
    book.put_model_beside(beside_book.parents[1])
    assert not beside_book.samefile(cached)
    assert beside_book.read_bytes() == b"whole"


@pytest.mark.parametrize("why", ["not fetched", "cut off", "not wanted"])
def test_without_a_complete_model_nothing_is_put_there(model_paths, monkeypatch, why):
    cached, beside_book = model_paths
    if why == "not fetched":
        cached.unlink()
    elif why == "cut off":
        cached.write_bytes(b"cut")
    else:
        monkeypatch.setenv("ATTNCOURSE_MODEL", "no")
    book.put_model_beside(beside_book.parents[1])
    assert not beside_book.exists()
