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
    new_place = checkout.with_name("elsewhere")
    how(checkout, new_place)
    assert "environment.py" in steps(new_place)
    assert not Setup(new_place).is_ours()


def test_an_environment_of_another_python_is_not_used(checkout):
    configured = checkout / ".venv" / "pyvenv.cfg"
    version = ".".join(map(str, sys.version_info[:2]))
    configured.write_text(configured.read_text().replace(f"version = {version}", "version = 3.2"))
    assert not Setup(checkout).is_ours()
    (checkout / ".venv/bin/python").unlink()
    assert not Setup(checkout).is_ours()


@pytest.mark.parametrize("sign", REFUSED_CHARACTERS)
def test_an_unusable_path_is_named_before_anything_is_made(sign):
    message = environment.refused(Path(f"/home/ada/a{sign}b/course"))
    assert repr(sign) in message
    assert REFUSED_CHARACTERS[sign] in message


@pytest.mark.parametrize(
    "path", ["/home/ada/a b", "/home/ä/kurs", "/a%c[d]e#f", "/o'hara/c", "/" + "x" * 220]
)
def test_ordinary_paths_are_accepted(path):
    assert environment.refused(Path(path)) == ""


@pytest.mark.parametrize("closed", [".", ".venv", "_build", "_build/html"])
def test_an_unwritable_folder_is_named_with_its_owner(tmp_path, monkeypatch, closed):
    (tmp_path / "_build" / "html").mkdir(parents=True)
    (tmp_path / ".venv").mkdir()
    assert environment.unwritable(tmp_path) == ""
    wrong = tmp_path / closed
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != wrong)
    message = environment.unwritable(tmp_path)
    assert message == f"{wrong} cannot be written to: copy the course to where you may write"
    monkeypatch.setattr(environment, "owner_of", lambda path: "somebody")
    message = environment.unwritable(tmp_path)
    assert message.startswith(f"{wrong} belongs to somebody and cannot be written to")
    assert message.endswith(f"sudo chown -R {os.geteuid()} {wrong}")


@pytest.fixture
def recorded_setup(checkout, monkeypatch):
    """A set-up whose calls of pip are recorded and end with its ``status``; the disk has room."""
    setup, pip_calls = Setup(checkout), []

    def pip(*words):
        pip_calls.append(words)
        return subprocess.CompletedProcess(words, setup.status)

    setup.status = 0
    monkeypatch.setattr(setup, "pip", pip)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Disk(9e9))
    monkeypatch.setattr(sys, "platform", "linux")
    return setup, pip_calls


def test_on_linux_torch_is_the_cpu_build(recorded_setup, capsys):
    setup, pip_calls = recorded_setup
    setup.fetch_torch()
    assert len(pip_calls) == 1
    assert pip_calls[0][-3:] == ("--index-url", CPU_INDEX, f"torch=={setup.torch()}+cpu")
    assert {"--no-deps", "--retries=0", "--timeout=10"} <= set(pip_calls[0])
    assert capsys.readouterr().out == (
        "It fetches about 0.5 GB, less what pip has kept of earlier times, and takes 2.0 GB in "
        ".venv.\n"
    )


def test_the_larger_build_is_announced_before_the_download(recorded_setup, capsys):
    setup, _ = recorded_setup
    setup.status = 1
    setup.fetch_torch()
    lines = capsys.readouterr().out.splitlines()
    assert CPU_INDEX in lines[1]
    assert "graphics cards" in lines[1]
    assert lines[2].startswith("It fetches about 2.8 GB")
    assert "takes 5.7 GB" in lines[2]


def test_on_other_systems_torch_is_not_fetched_separately(recorded_setup, monkeypatch):
    setup, pip_calls = recorded_setup
    monkeypatch.setattr(sys, "platform", "darwin")
    setup.fetch_torch()
    assert pip_calls == []


def test_a_full_disk_is_reported_before_anything_is_fetched(recorded_setup, monkeypatch):
    setup, pip_calls = recorded_setup
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Disk(1.2e9))
    with pytest.raises(SetupError, match=r"1\.2 GB are free at .*2\.0 GB are needed"):
        setup.fetch_torch()
    assert pip_calls == []


def test_pips_index_settings_are_passed_to_uv():
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
def test_pip_installs_where_uv_lacks_a_setting(recorded_setup, monkeypatch, setting):
    setup, pip_calls = recorded_setup
    listed = subprocess.CompletedProcess([], 0, stdout=f"{setting}\n")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: listed)
    assert not setup.installed_by_uv()
    setup.install_by_pip()
    assert pip_calls[-1] == ("--no-compile", "-r", "requirements.txt")


def test_pip_installs_where_uv_cannot_be_had_or_fails(recorded_setup):
    setup, pip_calls = recorded_setup
    setup.status = 1
    setup.log.touch()
    assert not setup.installed_by_uv()
    assert pip_calls == [("--no-compile", "--no-deps", *PATIENCE, UV)]
    with pytest.raises(SetupError, match="could not be installed"):
        setup.install_by_pip()
    setup.status = 0
    for program in ("exit 1", "touch $0.asked; exit 0"):
        (setup.folder / "bin" / "uv").write_text(f"#!/bin/sh\n{program}\n")
        (setup.folder / "bin" / "uv").chmod(0o755)
        assert setup.installed_by_uv() == (setup.folder / "bin" / "uv.asked").exists()
    assert (setup.folder / "bin" / "uv.asked").exists()


@pytest.mark.parametrize(
    ("log", "why"),
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
def test_why_pip_failed_is_one_sentence(checkout, log, why):
    setup = Setup(checkout)
    setup.log.write_text(log)
    assert why in setup.reason()
    assert len(setup.reason().splitlines()) == 1
    assert setup.reason().endswith(str(setup.log))


def test_packages_installed_elsewhere_are_reported_missing(checkout):
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
    process = subprocess.run(
        command, cwd=ROOT, env=os.environ | settings, capture_output=True, text=True, check=True
    )
    names = {line.partition("=")[0] for line in process.stdout.splitlines()}
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
