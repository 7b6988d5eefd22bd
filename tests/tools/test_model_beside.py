"""The real model's file lies beside the built pages where it has been fetched, and only there."""

import os

import pytest

import book
from attncourse.pretrained.model import Pinned


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """A folder that holds the file, a short one for this test."""
    monkeypatch.setattr(book, "FILE", Pinned("a.gguf", 5, ""))
    monkeypatch.setenv("ATTNCOURSE_CACHE", str(tmp_path / "kept"))
    monkeypatch.delenv("ATTNCOURSE_MODEL", raising=False)
    (tmp_path / "html").mkdir()
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "a.gguf").write_bytes(b"whole")
    return tmp_path / "kept" / "a.gguf", tmp_path / "html" / "model" / "a.gguf"


def test_it_is_the_same_file_or_a_copy(kept, monkeypatch):
    there, here = kept
    book.copy_model(here.parents[1])
    assert here.samefile(there)

    def refuses(*_):
        raise OSError("another disk")

    monkeypatch.setattr(os, "link", refuses)
    here.unlink()
    here.write_bytes(b"cut")  # as where a copy was interrupted
    book.copy_model(here.parents[1])
    assert not here.samefile(there)
    assert here.read_bytes() == b"whole"


@pytest.mark.parametrize("why", ["not fetched", "cut off", "not wanted"])
def test_otherwise_nothing_is_put_there(kept, monkeypatch, why):
    there, here = kept
    if why == "not fetched":
        there.unlink()
    elif why == "cut off":
        there.write_bytes(b"cut")
    else:
        monkeypatch.setenv("ATTNCOURSE_MODEL", "no")
    book.copy_model(here.parents[1])
    assert not here.exists()
