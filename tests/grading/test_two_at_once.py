"""Two commands at the same time: each file is complete, and nothing is lost."""

from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from attncourse.grading.collect.collect import collect_downloads
from attncourse.grading.course.extensions import ExtensionDays, read_extensions
from attncourse.grading.driver.journal import open_journal
from attncourse.grading.errors import UserError
from attncourse.grading.files import replace_bytes
from attncourse.grading.gradebook.connection import find_gradebook
from attncourse.grading.gradebook.submissions import grant_extension
from helpers.small_course import NAME, hand_in, make_course, small

STUDENTS = [f"s{n:02}" for n in range(12)]


def test_a_file_always_has_one_of_the_written_contents(tmp_path):
    path, contents_seen = tmp_path / "table.csv", set()
    contents = {b"a" * 300_000, b"b" * 200_000}
    replace_bytes(path, min(contents))

    def write(content: bytes) -> None:
        for _ in range(150):
            replace_bytes(path, content)

    with ThreadPoolExecutor(2) as pool:
        writers = [pool.submit(write, content) for content in contents]
        while not all(writer.done() for writer in writers):
            contents_seen.add(path.read_bytes())
        for writer in writers:
            writer.result()
    assert contents_seen <= contents
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def give_more(course: Path, student: str) -> None:
    grant_extension(find_gradebook(course), student, NAME, 2)


def test_extensions_granted_at_once_are_all_kept(tmp_path):
    make_course(tmp_path)
    for student in STUDENTS:
        hand_in(tmp_path, student, small())
    with get_context("fork").Pool(4) as pool:
        pool.starmap(give_more, [(tmp_path, student) for student in STUDENTS])
    assert sorted(p.name for p in tmp_path.glob("*gradebook.db*")) == ["gradebook.db"]
    assert read_extensions(tmp_path) == {(s, NAME): ExtensionDays(2) for s in STUDENTS}


def test_nothing_is_collected_while_the_assignment_is_graded(tmp_path):
    make_course(tmp_path)
    path = tmp_path / "ada.ipynb"
    path.write_bytes(small())
    (tmp_path / "submitted" / "ada").mkdir(parents=True)
    with open_journal(tmp_path / "reports" / NAME, NAME):
        with pytest.raises(UserError, match=r"is being graded already.*try again"):
            collect_downloads(tmp_path, NAME, [path])
        assert not (tmp_path / "submitted" / "ada" / NAME).exists()
    assert [row.student for row in collect_downloads(tmp_path, NAME, [path]).rows] == ["ada"]
