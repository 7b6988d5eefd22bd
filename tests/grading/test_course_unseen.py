"""Where a course lies and from where it is graded makes no difference: no submission sees it."""

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

# Right where it sees nothing of the assignment in the whole of its file system.
SPY = f"""\
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
SPY = SPY.replace("sys_path", "__import__('sys').path")
MARK = "course-unseen-"  # the beginning of a folder's name
PLACES = ("/usr", "/usr/src", "/usr/share", "/usr/share/fonts", "/usr/lib", f"{sys.prefix}/lib")


@pytest.fixture(autouse=True)
def jailed():
    if jail.missing_required_layers():
        pytest.skip("no jail on this machine")


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """A course whose assignment has been released, from elsewhere: to be copied to any place."""
    place = tmp_path_factory.mktemp("released")
    made = make_course(place / "app", ada=small(twice=SPY))
    done = run("release", NAME, "--course", made, cwd=place)
    assert done.returncode == 0, done.stderr
    return made


@pytest.fixture
def course(request, released):
    """A course in a place that may be part of what Python needs, and none that lies there still."""
    remove_left_behind()
    try:
        with tempfile.TemporaryDirectory(
            dir=request.param, prefix=f"{MARK}{os.getpid()}-"
        ) as folder:
            Path(folder).chmod(0o755)
            yield shutil.copytree(released, Path(folder) / "app")
    except OSError:
        pytest.skip(f"{request.param} is not there, or not ours to write to")


def remove_left_behind() -> None:
    """Removes the courses of runs that were killed: this test would see them, now and for ever."""
    for place in PLACES:
        for folder in Path(place).glob(f"{MARK}*"):
            number = folder.name.removeprefix(MARK).split("-")[0]
            if not (number.isdigit() and Path("/proc", number).exists()):
                shutil.rmtree(folder, ignore_errors=True)


def test_only_the_killed_runs_course_is_removed(monkeypatch, tmp_path):
    monkeypatch.setattr(sys.modules[__name__], "PLACES", (str(tmp_path),))
    ended = subprocess.Popen(["true"])
    ended.wait()
    for name in (f"{MARK}{ended.pid}-a", f"{MARK}old", f"{MARK}{os.getpid()}-b", "other"):
        (tmp_path / name / "app").mkdir(parents=True)
    remove_left_behind()
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{MARK}{os.getpid()}-b", "other"]


def require_unseen(course: Path) -> None:
    report = json.loads((course / "reports" / NAME / "ada.json").read_text())
    assert report["notes"] == []
    assert report["cells"]["points_twice"]["points"] == 4


@pytest.mark.slow
@pytest.mark.parametrize("course", PLACES, indirect=True)
def test_graded_from_elsewhere_it_is_not_there(course, tmp_path):
    done = run("grade", NAME, "--course", course, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    require_unseen(course)


@pytest.mark.slow
@pytest.mark.parametrize("course", ["/usr/lib"], indirect=True)
@pytest.mark.parametrize("dask", [False, True])
def test_a_remote_cluster_does_not_see_the_local_folder(course, tmp_path, dask):
    with cluster(tmp_path, 1) if dask else nullcontext(("", [])) as (address, _):
        options = ("--dask", address) if dask else ()
        done = run("grade", NAME, *options, cwd=course, PYTHONWARNINGS="ignore")
    assert done.returncode == 0, done.stderr
    require_unseen(course)
