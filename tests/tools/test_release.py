"""Releases: install cells, the tag, the workflows, what Colab has."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import metadata
from pathlib import Path
from threading import Thread

import pytest
import yaml
from install_cell import LIBRARIES, REAL, install_cell

from attncourse import STEMS, __version__
from helpers.project import ROOT, run_tool

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
COURSE_URL = "https://example.org/owner/course"
# Bytes of the wheel: a student on a slow line waits twelve seconds for it
MAX_WHEEL_BYTES = 1_950_000


def wheel_address(version: str) -> str:
    """Return the address at which GitHub offers a version's wheel."""
    return f"{COURSE_URL}/releases/download/v{version}/attncourse-{version}-py3-none-any.whl"


# The cell that installs


def run_install_cell(
    tmp_path, monkeypatch, answer=(0, ""), installed_version: str | None = None, **cell
):
    """Run an install cell; return pip's commands, and True if the package is imported."""
    pip_commands = []

    def pip(command, **_):
        pip_commands.append(command)
        return subprocess.CompletedProcess(command, answer[0], stdout="", stderr=answer[1])

    monkeypatch.setattr(subprocess, "run", pip)
    for name in [name for name in sys.modules if name.partition(".")[0] == "attncourse"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    if installed_version is not None:
        (tmp_path / "attncourse").mkdir()
        (tmp_path / "attncourse" / "__init__.py").write_text(
            f'__version__ = "{installed_version}"\n'
        )
    else:
        monkeypatch.setattr(sys, "meta_path", [])
    missing = cell.get("missing", ())
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: None if name in missing else object()
    )
    source = install_cell(COURSE_URL, "main", cell.get("version", "0.9.0"), cell.get("stem", ""))
    exec(source, {"__name__": "__main__"})
    return pip_commands, "attncourse" in sys.modules


@pytest.mark.parametrize(
    ("installed_version", "version", "installs"),
    [
        ("0.9.0", "0.9.0", False),
        ("0.10.0", "0.9.0", False),  # newer stays, and 10 is more than 9
        ("0.8.9", "0.9.0", True),
        ("0.9.0", "0.10.0", True),
    ],
)
def test_only_an_old_package_is_upgraded(
    tmp_path, monkeypatch, installed_version, version, installs
):
    pip_commands, is_imported = run_install_cell(
        tmp_path, monkeypatch, installed_version=installed_version, version=version
    )
    expected = [*("-m", "pip", "install", "-q", "--upgrade"), *("--timeout=10", "--retries=1")]
    expected.append(f"attncourse @ {wheel_address(version)}")
    assert [command[1:] for command in pip_commands] == ([expected] if installs else [])
    assert is_imported is not installs  # the old one is not in the way of the new


def test_a_missing_package_comes_as_wheel_or_from_the_branch():
    assert f'_install("0.9.0", "{wheel_address("0.9.0")}", [])' in install_cell(
        COURSE_URL, "main", "0.9.0"
    )
    from_branch = f'_install("0.9.1.dev0", "git+{COURSE_URL}@spring", [])'
    assert from_branch in install_cell(COURSE_URL, "spring", "0.9.1.dev0")


@pytest.mark.parametrize(("has_libraries", "installs"), [(True, False), (False, True)])
def test_a_notebook_of_the_real_model_brings_its_libraries(
    tmp_path, monkeypatch, has_libraries, installs
):
    missing = () if has_libraries else ("tokenizers",)
    about = {"installed_version": "0.9.0", "stem": "llama", "missing": missing}
    pip_commands, _ = run_install_cell(tmp_path, monkeypatch, **about)
    assert [command[-1] for command in pip_commands] == (
        [f"attncourse[model] @ {wheel_address('0.9.0')}"] if installs else []
    )


def test_the_real_models_libraries_are_those_of_the_extra():
    named = [
        re.match(r"[\w-]+", requirement)[0]
        for requirement in PROJECT["optional-dependencies"]["model"]
    ]
    assert sorted(named) == sorted(LIBRARIES)


def test_every_notebook_that_reads_the_real_model_is_listed():
    pages = (ROOT / "book").glob("[0-9]*.md")
    asks = {p.stem[3:] for p in pages if "attncourse.pretrained.model import" in p.read_text()}
    assert asks <= set(REAL)


UNRESOLVED_HOST_ERROR = """\
  fatal: unable to access 'https://github.com/x/y/': Could not resolve host: github.com
error: subprocess-exited-with-error"""
NO_NETWORK = (
    "there is no network, or what the package comes from does not answer. Connect, and run this "
    "cell again."
)
READ_TIMEOUT_ERROR = """\
WARNING: Retrying (Retry(total=0)) after connection broken by 'ReadTimeoutError("Read timed out.")'
ERROR: Could not find a version that satisfies the requirement torch (from versions: none)
ERROR: No matching distribution found for torch"""
NO_TORCH_ERROR = """\
ERROR: Could not find a version that satisfies the requirement torch>=2.4 (from attncourse) (from \
versions: 2.2.0, 2.2.1, 2.2.2)
ERROR: No matching distribution found for torch>=2.4"""
MACHINE_NAME = (
    f"{platform.system()} on {platform.machine()} with Python {platform.python_version()}"
)
COLAB_ADVICE = "open this notebook in Colab, or use another Python"
NO_BRANCH_ERROR = """\
  error: pathspec 'spring' did not match any file(s) known to git
error: subprocess-exited-with-error"""
NO_CONNECTION_ERROR = """\
WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError': /owner/course
ERROR: Could not install packages due to an OSError: HTTPSConnectionPool(host='example.org', \
port=443): Max retries exceeded (Caused by NewConnectionError('Failed to establish a new \
connection: [Errno 101] Network is unreachable'))"""


@pytest.mark.parametrize(
    ("stderr", "why"),
    [
        (UNRESOLVED_HOST_ERROR, NO_NETWORK),
        (NO_CONNECTION_ERROR, NO_NETWORK),
        (READ_TIMEOUT_ERROR, NO_NETWORK),
        (
            "/venv/bin/python3: No module named pip",
            f"this Python has no pip. In a terminal, uv pip install --python '{sys.executable}' "
            f"'attncourse @ {wheel_address('0.9.0')}' does it; then run this cell again.",
        ),
        (
            "error: externally-managed-environment\n\n× This environment is externally managed",
            "this Python is the system's own, and nobody may install into it. Make a virtual "
            "environment, install jupyter there, and open this notebook with it.",
        ),
        (NO_TORCH_ERROR, f"there is no PyTorch for {MACHINE_NAME}: {COLAB_ADVICE}."),
        ("error: subprocess-exited-with-error", "subprocess-exited-with-error."),
        (
            NO_BRANCH_ERROR,
            f"{wheel_address('0.9.0')} does not exist. Open the course's newest notebook.",
        ),
        ("ERROR: Cannot find command 'git'", "Cannot find command 'git'."),
        ("Killed", "pip ended with status 9."),
    ],
)
def test_a_failed_installation_is_one_plain_sentence(tmp_path, monkeypatch, stderr, why):
    with pytest.raises(Exception, match="was not installed") as caught:
        run_install_cell(tmp_path, monkeypatch, answer=(9, stderr), installed_version="0.1.0")
    sentence = f"attncourse 0.9.0 was not installed: {why}"
    assert caught.value._render_traceback_() == [str(caught.value)] == [sentence]


@pytest.mark.parametrize("stem", STEMS)
def test_only_chapters_that_need_torch_say_it_is_missing(tmp_path, monkeypatch, stem):
    """As on an Intel Mac: the package comes without it, which pip is content with."""
    notebook = next((ROOT / "solutions").glob(f"[0-9]*_{stem}/*.py")).read_text("utf-8")
    about = {"installed_version": "0.8.0", "stem": stem, "missing": ("torch",)}
    if re.search(r"^(import|from) torch\b", notebook, re.M):
        with pytest.raises(Exception, match=f"there is no PyTorch for .*: {COLAB_ADVICE}"):
            run_install_cell(tmp_path, monkeypatch, **about)
    else:
        assert stem in STEMS[:4]
        run_install_cell(tmp_path, monkeypatch, **about)


@pytest.mark.slow
@pytest.mark.parametrize("version", ["99.0.0", "99.0.0.dev0"])
def test_pip_and_git_errors_without_a_network_are_explained(version):
    """The real ones, asked for a host that cannot exist."""
    cell = install_cell("https://no-such-host.invalid/owner/course", "main", version)
    assert last_line_of_install(cell).endswith(
        f"NotInstalled: attncourse {version} was not installed: {NO_NETWORK}"
    )


@pytest.mark.slow
def test_pips_error_for_an_unpublished_wheel_is_explained():
    with ThreadingHTTPServer(("127.0.0.1", 0), EmptyServer) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/owner/course"
        message = last_line_of_install(install_cell(url, "main", "99.0.0"))
        server.shutdown()
    assert message.endswith("-py3-none-any.whl does not exist. Open the course's newest notebook.")


class EmptyServer(BaseHTTPRequestHandler):
    """A server that has nothing, and says so to nobody but who asks."""

    def do_GET(self):
        self.send_error(404)

    def log_message(self, *_):
        pass


def last_line_of_install(cell: str) -> str:
    """Run an install cell in a process of its own; return its last line."""
    process = subprocess.run(
        [sys.executable, "-c", cell], capture_output=True, text=True, check=False
    )
    assert process.returncode == 1
    return process.stderr.splitlines()[-1]


# The wheel


@pytest.mark.slow
def test_the_wheel_holds_only_what_is_needed(tmp_path):
    from hatchling.builders.wheel import WheelBuilder

    (built,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path))
    files = {name: size for name, size in wheel_contents(Path(built)) if ".dist-info/" not in name}
    assert Path(built).stat().st_size < MAX_WHEEL_BYTES
    assert {name.partition("/")[0] for name in files} == {"attncourse"}
    kinds = {Path(name).suffix for name in files}
    assert kinds == {".py", ".json", ".js", ".css", ".j2", ".sh", ""}
    for stem in STEMS:
        assert {f"attncourse/{stem}.py", f"attncourse/bank/{stem}/__init__.py"} <= files.keys()
    assert {"attncourse/checks/index.json", "attncourse/grading/cli.py"} <= files.keys()
    assert not any(
        name.startswith(("test", "conftest")) for path in files for name in Path(path).parts
    )
    assert "attncourse/checks/grid.py" not in files  # contributors have tools/grid.py


def wheel_contents(wheel: Path) -> list[tuple[str, int]]:
    with zipfile.ZipFile(wheel) as archive:
        return [(item.filename, item.compress_size) for item in archive.infolist()]


# The version, in one place and everywhere


def test_the_version_has_one_place_and_heads_the_changelog():
    """The wheel's version is read from the package, whose metadata is that of the installation."""
    assert "version" in PROJECT["dynamic"]
    assert metadata.version("attncourse") == __version__
    released = re.findall(r"(?m)^## (\S+)", (ROOT / "CHANGELOG.md").read_text())
    assert released[0] == __version__.partition(".dev")[0]


def test_the_tag_must_be_the_version_and_stand_in_the_changelog(tmp_path):
    for name in ("CHANGELOG.md", "attncourse/__init__.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)

    def release(tag: str) -> tuple[int, str, str]:
        process = run_tool("release", tag, "--root", tmp_path)
        return process.returncode, process.stdout, process.stderr

    status, notes, _ = release(f"v{__version__}")
    assert status == 0
    assert notes.strip() in (ROOT / "CHANGELOG.md").read_text()
    assert len(notes) > 100
    assert release("v9.9.9") == (
        1,
        "",
        f"the tag is v9.9.9, attncourse/__init__.py has version {__version__}: "
        f"tag v{__version__}, or change it\n",
    )
    package = tmp_path / "attncourse" / "__init__.py"
    package.write_text('__version__ = "9.9.9"\n')
    assert "CHANGELOG.md says nothing of 9.9.9" in release("v9.9.9")[2]


# The workflows


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_is_sound(path):
    workflow = yaml.safe_load(path.read_text())
    assert {"name", "jobs", True} <= workflow.keys()  # YAML reads `on` as true
    assert workflow["name"] == path.stem
    for job in workflow["jobs"].values():
        steps = job["steps"]
        assert job["runs-on"] in ("ubuntu-latest", "${{ matrix.os }}")
        for step in steps:
            assert ("run" in step) != ("uses" in step)
            if "uses" in step:
                assert re.fullmatch(r"actions/[\w-]+@v\d+", step["uses"])
        for file in re.findall(r"(?:tools|\.github)/[\w./-]+\w", str(steps)):
            assert (ROOT / file).is_file(), file
        targets = [t for s in steps for t in re.findall(r"^make (.+)$", s.get("run", ""))]
        for target in " ".join(targets).split():
            assert re.search(rf"(?m)^{target}:", (ROOT / "Makefile").read_text()), target


def test_a_release_checks_its_tag_before_it_builds():
    steps = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())["jobs"]["release"]
    lines = [step.get("run", "") for step in steps["steps"]]
    order = ["tools/release.py", "make book", "tools/pdf.py --most 300", "-m build", "gh release"]
    at = [next(i for i, line in enumerate(lines) if part in line) for part in order]
    assert at == sorted(at)


def test_what_colab_has_is_pinned_and_the_package_allows_it():
    """The workflow installs the package under these versions: none may be too old for it."""
    from packaging.requirements import Requirement

    lines = (ROOT / ".github" / "colab.txt").read_text().splitlines()
    pinned = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert {"numpy", "torch", "matplotlib", "networkx", "rich", "typer", "ipython"} == set(pinned)
    needs = {r.name: r for r in map(Requirement, PROJECT["dependencies"])}
    for name in pinned.keys() & needs.keys():
        assert pinned[name] in needs[name].specifier
    assert str(needs["torch"].specifier) == ">=2.4"


@pytest.mark.parametrize(
    ("system", "machine", "comes"),
    [
        ("linux", "x86_64", True),
        ("linux", "aarch64", True),
        ("darwin", "arm64", True),
        ("win32", "AMD64", True),
        ("darwin", "x86_64", False),
        ("win32", "ARM64", False),
    ],
)
def test_torch_is_asked_for_where_the_index_has_it(system, machine, comes):
    """The other machines take the package without it, for chapters 1 to 4."""
    from packaging.requirements import Requirement

    torch = next(r for r in map(Requirement, PROJECT["dependencies"]) if r.name == "torch")
    assert torch.marker.evaluate({"sys_platform": system, "platform_machine": machine}) is comes


def test_the_lowest_allowed_libraries_are_tried():
    lines = (ROOT / ".github" / "lowest.txt").read_text().splitlines()
    pinned = dict(line.split("==") for line in lines if not line.startswith("#"))
    allowed = [re.match(r"([\w-]+)>=([\d.]+)", line) for line in PROJECT["dependencies"]]
    lowest = {
        requirement[1]: requirement[2]
        for requirement in allowed
        if requirement and requirement[1] in pinned
    }
    assert lowest.keys() == pinned.keys()
    for name, version in pinned.items():
        assert f"{version}.0.0".startswith(f"{lowest[name]}."), (name, version, lowest[name])
