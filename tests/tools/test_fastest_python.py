"""The environment is made with the fastest Python of the usual one's version."""

import sys
from importlib.metadata import distributions

import pytest
from fastest_python import fastest, measured
from packaging.specifiers import SpecifierSet

OLD, SAME, NEW = (3, 10), (3, 11), (3, 12)


@pytest.mark.parametrize(
    ("timings", "best"),
    [
        ({"usual": (SAME, 1.0), "a": (SAME, 0.7), "b": (SAME, 0.5)}, "b"),
        ({"usual": (SAME, 1.0), "a": (SAME, 0.5), "b": (SAME, 0.7)}, "a"),
        ({"usual": (SAME, 1.0), "a": (SAME, 0.95), "b": (SAME, 1.2)}, "usual"),  # no gain
        ({"usual": (SAME, 1.0), "a": (NEW, 0.5), "b": (OLD, 0.5)}, "usual"),  # another version
        ({"usual": (SAME, 1.0), "a": None, "b": (SAME, 0.5)}, "b"),  # not there, or without venv
        ({"usual": None, "a": (SAME, 0.5), "b": (SAME, 0.5)}, "usual"),  # what is wrong is told
    ],
)
def test_the_fastest_of_the_same_version_is_taken(timings, best):
    assert fastest("usual", ("a", "b"), timings.get) == best


def test_a_python_that_cannot_do_the_work_is_not_fit(tmp_path):
    version, seconds = measured(sys.executable)
    assert version == sys.version_info[:2]
    assert seconds > 0
    (broken := tmp_path / "python3").write_text("#!/bin/sh\necho 3.11\n")
    broken.chmod(0o755)
    assert measured(str(broken)) is None
    assert measured(str(tmp_path / "nothing")) is None


def test_pins_run_with_the_readmes_first_python():
    versions_required = {d.name: d.metadata.get("Requires-Python", ">=3") for d in distributions()}
    assert len(versions_required) > 100
    assert {
        name: versions
        for name, versions in versions_required.items()
        if "3.11.0" not in SpecifierSet(versions)
    } == {}
