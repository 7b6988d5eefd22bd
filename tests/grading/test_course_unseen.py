"""No submission sees the course, wherever it lies and from wherever it is graded."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path

import pytest

from attncourse.grading.jail import jail
from helpers.dask_clusters import cluster
from helpers.driver_runs import run
from helpers.small_course import NAME, RIGHT, make_course, small

# Right only if it sees nothing of the assignment in its whole file system.
SEARCHING_ANSWER = f"""\
import os
seen = [
    os.path.join(folder, name)
    for folder, _, files in os.walk("/")
    for name in files
    if "{NAME}" in folder or name.startswith("{NAME}")
]
seen += [path for path in sys_path if os.path.exists(path + "/solutions")]
assert not seen, seen
{RIGHT[1]}
"""
SEARCHING_ANSWER = SEARCHING_ANSWER.replace("sys_path", "__import__('sys').path")
FOLDER_PREFIX = "course-unseen-"  # beginning of a folder's name
PARENT_FOLDERS = (
    "/usr",
    "/usr/src",
    "/usr/share",
    "/usr/share/fonts",
    "/usr/lib",
    f"{sys.prefix}/lib",
)


@pytest.fixture(autouse=True)
def skip_without_jail():
    if jail.missing_required_layers():
        pytest.skip("no jail on this machine")


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """Make a course whose assignment was released from another folder, to be copied anywhere."""
    folder = tmp_path_factory.mktemp("released")
    course_folder = make_course(folder / "app", ada=small(twice=SEARCHING_ANSWER))
    process = run("release", NAME, "--course", course_folder, cwd=folder)
    assert process.returncode == 0, process.stderr
    return course_folder


@pytest.fixture
def course(request, released):
    """Copy the course to a folder that may be part of Python's, where no older one lies."""
    remove_left_behind()
    try:
        with tempfile.TemporaryDirectory(
            dir=request.param, prefix=f"{FOLDER_PREFIX}{os.getpid()}-"
        ) as folder:
            Path(folder).chmod(0o755)
            yield shutil.copytree(released, Path(folder) / "app")
    except OSError:
        pytest.skip(f"{request.param} is not there, or not ours to write to")


def remove_left_behind() -> None:
    """Remove the courses of killed runs, which these tests would see as well."""
    for place in PARENT_FOLDERS:
        for folder in Path(place).glob(f"{FOLDER_PREFIX}*"):
            number = folder.name.removeprefix(FOLDER_PREFIX).split("-")[0]
            if not (number.isdigit() and Path("/proc", number).exists()):
                shutil.rmtree(folder, ignore_errors=True)


def test_only_a_killed_runs_course_is_removed(monkeypatch, tmp_path):
    monkeypatch.setattr(sys.modules[__name__], "PARENT_FOLDERS", (str(tmp_path),))
    ended = subprocess.Popen(["true"])
    ended.wait()
    for name in (
        f"{FOLDER_PREFIX}{ended.pid}-a",
        f"{FOLDER_PREFIX}old",
        f"{FOLDER_PREFIX}{os.getpid()}-b",
        "other",
    ):
        (tmp_path / name / "app").mkdir(parents=True)
    remove_left_behind()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"{FOLDER_PREFIX}{os.getpid()}-b",
        "other",
    ]


def assert_course_unseen(course: Path) -> None:
    report = json.loads((course / "reports" / NAME / "ada.json").read_text())
    assert report["notes"] == []
    assert report["cells"]["points_twice"]["points"] == 4


@pytest.mark.slow
@pytest.mark.parametrize("course", PARENT_FOLDERS, indirect=True)
def test_a_course_graded_from_elsewhere_is_not_seen(course, tmp_path):
    process = run("grade", NAME, "--course", course, cwd=tmp_path)
    assert process.returncode == 0, process.stderr
    assert_course_unseen(course)


@pytest.mark.slow
@pytest.mark.parametrize("course", ["/usr/lib"], indirect=True)
@pytest.mark.parametrize("dask", [False, True])
def test_a_remote_cluster_does_not_see_the_local_folder(course, tmp_path, dask):
    with cluster(tmp_path, 1) if dask else nullcontext(("", [])) as (address, _):
        options = ("--dask", address) if dask else ()
        process = run("grade", NAME, *options, cwd=course, PYTHONWARNINGS="ignore")
    assert process.returncode == 0, process.stderr
    assert_course_unseen(course)
