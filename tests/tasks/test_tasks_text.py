"""A text that a reader brings: what is refused, and that no more is read than allowed."""

from __future__ import annotations

import pytest
import torch

from attncourse.tasks import text as module
from attncourse.tasks.text import Text

LONG_TEXT = "The quick brown fox jumps over the lazy dog.\n" * 60


def test_ids_decode_to_the_text():
    text = Text(LONG_TEXT)
    assert text.decode(text.encode("lazy dog")) == "lazy dog"
    assert len(text.train) + len(text.test) == len(LONG_TEXT)
    assert text.decode(text.train[:9]) == "The quick"
    pieces = text.batches(3, 5, 7)
    assert pieces.shape == (3, 5, 7)
    assert all(text.decode(piece) in LONG_TEXT for piece in pieces.flatten(0, 1))
    assert torch.equal(pieces, text.batches(3, 5, 7))
    assert text.test_pieces(11).shape == (len(text.test) // 11, 11)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it is empty"),
        (b" \n\n ", "it is empty"),
        (b"too short", "at least 1000 characters, got 9"),
        (b"\x89PNG\r\n\x1a\n\x00\x00" * 500, "binary file"),
        (b"\xff\xfe\xfa" * 900, "UTF-8, got byte 0xff at 0"),
        ("".join(map(chr, range(0x4E00, 0x4E00 + 2000))).encode(), "at most 256 different"),
    ],
)
def test_a_file_that_is_no_text_is_refused(tmp_path, content, message):
    path = tmp_path / "mine.txt"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        Text.from_file(path)


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    for path in (tmp_path / "none.txt", tmp_path):
        with pytest.raises(ValueError, match="found none"):
            Text.from_file(path)


def test_only_the_beginning_of_an_endless_line_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MOST_CHARACTERS", 2000)
    path = tmp_path / "line.txt"
    path.write_bytes("aé".encode() * 50_000)
    text = Text.from_file(path)
    assert len(text.train) + len(text.test) == 2000
    path.write_bytes(b"x" + "€".encode() * 50_000)  # the end cuts a character of three bytes
    assert len(Text.from_file(path).train) == 1800


def test_one_line_of_100_mb_costs_no_more_than_its_beginning(tmp_path):
    path = tmp_path / "huge.txt"
    with path.open("wb") as file:
        file.write(b"abcdefghij" * 1000)
        file.truncate(100_000_000)  # zeros that take no room
    with pytest.raises(ValueError, match="binary"):
        Text.from_file(path)


def test_line_ends_are_normalised_and_a_byte_order_mark_dropped(tmp_path):
    path = tmp_path / "windows.txt"
    path.write_bytes(b"\xef\xbb\xbf" + LONG_TEXT.replace("\n", "\r\n").encode())
    text = Text.from_file(path)
    assert "\r" not in text.characters
    assert "\ufeff" not in text.characters


def test_windows_that_do_not_fit_the_text_are_refused():
    text = Text(LONG_TEXT)
    with pytest.raises(ValueError, match="'é'"):
        text.encode("é")
    with pytest.raises(ValueError, match="length"):
        text.batches(1, 1, len(LONG_TEXT))
    with pytest.raises(ValueError, match="length"):
        text.test_pieces(len(LONG_TEXT))
