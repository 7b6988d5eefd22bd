"""Set-up: whose environment it is, what is fetched, and what is said where it cannot be."""

import os
import shutil
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import environment
import pytest
from environment import CPU_INDEX, PATIENCE, REFUSED_CHARACTERS, UV, Setup, SetupError, uv_options

from helpers.project import ROOT

Disk = namedtuple("Disk", "free")


@pytest.fixture
def checkout(tmp_path) -> Path:
    """A folder with what makes an environment, and one without packages."""
    root = tmp_path / "checkout"
    (root / "tools").mkdir(parents=True)
    for name in ("Makefile", "requirements.txt", "pyproject.toml", "tools/environment.py"):
        shutil.copy(ROOT / name, root / name)
    command = [sys.executable, "-I", "-m", "venv", "--without-pip", str(root / ".venv")]
    subprocess.run(command, check=True)
    (root / ".venv" / "bin" / "pip").write_text(f"#!{root}/.venv/bin/python\n")
    return root


def run_setup(root: Path, *words: str) -> subprocess.CompletedProcess:
    """Run the script with the environment's own Python."""
    command = [root / ".venv/bin/python", "-I", root / "tools/environment.py", *words]
    return subprocess.run(command, capture_output=True, text=True)


def steps(root: Path, target: str = "tidy") -> str:
    """Return what make would do."""
    command = ["make", "-n", target]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout


def test_an_environment_is_made_once(checkout):
    assert "environment.py" in steps(checkout)
    run_setup(checkout, "--stamp")
    assert "environment.py" not in steps(checkout)
    assert Setup(checkout).is_ours()
    with (checkout / "requirements.txt").open("a") as file:
        file.write("another==1\n")
    assert "environment.py" in steps(checkout)
    assert Setup(checkout).is_ours()  # it is completed, not made anew


@pytest.mark.parametrize("how", [os.rename, shutil.copytree])
def test_a_moved_checkout_gets_a_new_environment(checkout, how):
    run_setup(checkout, "--stamp")
    there = checkout.with_name("elsewhere")
    how(checkout, there)
    assert "environment.py" in steps(there)
    assert not Setup(there).is_ours()


def test_an_environment_whose_python_has_become_another_is_none(checkout):
    configured = checkout / ".venv" / "pyvenv.cfg"
    here = ".".join(map(str, sys.version_info[:2]))
    configured.write_text(configured.read_text().replace(f"version = {here}", "version = 3.2"))
    assert not Setup(checkout).is_ours()
    (checkout / ".venv/bin/python").unlink()
    assert not Setup(checkout).is_ours()


@pytest.mark.parametrize("sign", REFUSED_CHARACTERS)
def test_a_path_that_cannot_be_is_named_before_anything_is_made(sign):
    said = environment.refused(Path(f"/home/ada/a{sign}b/course"))
    assert repr(sign) in said
    assert REFUSED_CHARACTERS[sign] in said


@pytest.mark.parametrize(
    "path", ["/home/ada/a b", "/home/ä/kurs", "/a%c[d]e#f", "/o'hara/c", "/" + "x" * 220]
)
def test_other_paths_are_fine(path):
    assert environment.refused(Path(path)) == ""


@pytest.mark.parametrize("closed", [".", ".venv", "_build", "_build/html"])
def test_what_cannot_be_written_to_is_told_with_its_owner(tmp_path, monkeypatch, closed):
    (tmp_path / "_build" / "html").mkdir(parents=True)
    (tmp_path / ".venv").mkdir()
    assert environment.unwritable(tmp_path) == ""
    wrong = tmp_path / closed
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != wrong)
    said = environment.unwritable(tmp_path)
    assert said == f"{wrong} cannot be written to: copy the course to where you may write"
    monkeypatch.setattr(environment, "owner_of", lambda path: "somebody")
    said = environment.unwritable(tmp_path)
    assert said.startswith(f"{wrong} belongs to somebody and cannot be written to")
    assert said.endswith(f"sudo chown -R {os.geteuid()} {wrong}")


@pytest.fixture
def asked(checkout, monkeypatch):
    """What pip would be asked for, by a set-up that says what it says; the disk has room."""
    done, asked = Setup(checkout), []

    def pip(*words):
        asked.append(words)
        return subprocess.CompletedProcess(words, done.status)

    done.status = 0
    monkeypatch.setattr(done, "pip", pip)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Disk(9e9))
    monkeypatch.setattr(sys, "platform", "linux")
    return done, asked


def test_on_linux_torch_is_the_build_for_processors(asked, capsys):
    done, words = asked
    done.fetch_torch()
    assert len(words) == 1
    assert words[0][-3:] == ("--index-url", CPU_INDEX, f"torch=={done.torch()}+cpu")
    assert {"--no-deps", "--retries=0", "--timeout=10"} <= set(words[0])
    assert capsys.readouterr().out == (
        "It fetches about 0.5 GB, less what pip has kept of earlier times, and takes 2.0 GB in "
        ".venv.\n"
    )


def test_the_larger_build_is_told_before_it_comes(asked, capsys):
    done, _ = asked
    done.status = 1
    done.fetch_torch()
    said = capsys.readouterr().out.splitlines()
    assert CPU_INDEX in said[1]
    assert "graphics cards" in said[1]
    assert said[2].startswith("It fetches about 2.8 GB")
    assert "takes 5.7 GB" in said[2]


def test_elsewhere_the_index_has_that_build_alone(asked, monkeypatch):
    done, words = asked
    monkeypatch.setattr(sys, "platform", "darwin")
    done.fetch_torch()
    assert words == []


def test_a_disk_without_room_is_told_before_anything_is_fetched(asked, monkeypatch):
    done, words = asked
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Disk(1.2e9))
    with pytest.raises(SetupError, match=r"1\.2 GB are free at .*2\.0 GB are needed"):
        done.fetch_torch()
    assert words == []


def test_what_pip_is_told_of_indexes_is_told_to_uv():
    options = uv_options(
        "global.cert='/etc/certs.pem'\n"
        "global.extra-index-url='https://a.example/simple https://b.example/simple'\n"
        "global.index-url='https://old.example/simple'\n"
        "install.no-compile='true'\n"
        "freeze.find-links='/elsewhere'\n"
        ":env:.default-timeout='180'\n"
        ":env:.index-url='https://new.example/simple'\n"
    )
    assert dict(zip(options[::2], options[1::2], strict=True)) == {
        "--index-strategy": "unsafe-best-match",
        "--default-index": "https://new.example/simple",
        "--index": "https://b.example/simple",
        "--cert": "/etc/certs.pem",
    }
    assert options.count("--index") == 2


@pytest.mark.parametrize("setting", [":env:.proxy='http://p:8080'", "global.no-index='true'"])
def test_pip_installs_what_uv_cannot_be_told(asked, monkeypatch, setting):
    done, words = asked
    listed = subprocess.CompletedProcess([], 0, stdout=f"{setting}\n")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: listed)
    assert not done.installed_by_uv()
    done.install_by_pip()
    assert words[-1] == ("--no-compile", "-r", "requirements.txt")


def test_pip_installs_where_uv_cannot_be_had_or_fails(asked):
    done, words = asked
    done.status = 1
    done.log.touch()
    assert not done.installed_by_uv()
    assert words == [("--no-compile", "--no-deps", *PATIENCE, UV)]
    with pytest.raises(SetupError, match="could not be installed"):
        done.install_by_pip()
    done.status = 0
    for program in ("exit 1", "touch $0.asked; exit 0"):
        (done.folder / "bin" / "uv").write_text(f"#!/bin/sh\n{program}\n")
        (done.folder / "bin" / "uv").chmod(0o755)
        assert done.installed_by_uv() == (done.folder / "bin" / "uv.asked").exists()
    assert (done.folder / "bin" / "uv.asked").exists()


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (
            "WARNING: Retrying … NameResolutionError: Failed to resolve 'pypi.org'\n"
            "ERROR: No matching distribution found for Babel==2.18.0\n",
            "the package index is not within reach",
        ),
        ("WARNING: Retrying … Connection refused\nERROR: No matching\n", "connect to a network"),
        ("ERROR: Could not install: [Errno 28] No space left on device\n", "the disk is full"),
        ("ERROR: Package x requires a different Python\n", "pip says: Package x requires"),
        ("", "pip says: nothing"),
    ],
)
def test_why_pip_failed_is_one_sentence(checkout, said, why):
    done = Setup(checkout)
    done.log.write_text(said)
    assert why in done.reason()
    assert len(done.reason().splitlines()) == 1
    assert done.reason().endswith(str(done.log))


def test_packages_that_went_elsewhere_are_missed(checkout):
    with pytest.raises(SetupError, match=r"not in .*No module named .*pip config list"):
        Setup(checkout).require_packages()


def test_only_package_settings_of_the_shell_reach_a_target(tmp_path):
    shown = tmp_path / "shown.mk"
    shown.write_text(f"include {ROOT}/Makefile\nshown:\n\t@env\n")
    python = ("PATH", "OPTIMIZE", "WARNINGS", "HOME", "STARTUP", "SAFEPATH", "DONTWRITEBYTECODE")
    pip = ("USER", "TARGET", "PREFIX", "REQUIRE_HASHES", "REQUIRE_VIRTUALENV")
    foreign = {*(f"PYTHON{name}" for name in python), *(f"PIP_{name}" for name in pip)}
    foreign |= {"PYTEST_ADDOPTS", "CDPATH", "BASH_ENV"}
    settings = dict.fromkeys(foreign, "/nowhere") | {
        "PIP_INDEX_URL": "x",
        "PIP_CERT": "y",
        "PYTHON": "python3",
        "LANG": "C",
    }
    command = ["make", "--no-print-directory", "-f", str(shown), "shown", "PYTEST_DEBUG=1"]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | settings, capture_output=True, text=True, check=True
    )
    names = {line.partition("=")[0] for line in done.stdout.splitlines()}
    assert not names & foreign
    assert names >= {"PIP_INDEX_URL", "PIP_CERT", "PYTHON", "LANG", "PYTEST_DEBUG", "PATH"}


def test_ctrl_c_is_one_sentence(monkeypatch, capsys):
    """What was fetched is kept by pip, and the environment has no stamp yet."""

    def interrupted(self: Setup) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Setup, "run", interrupted)
    monkeypatch.setattr(sys, "argv", ["environment.py"])
    assert environment.main() == 130
    assert capsys.readouterr().err == "Stopped; the same command goes on.\n"
