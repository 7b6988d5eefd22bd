"""Makes the environment in `.venv`, anew where it belongs to another folder or another Python.

    python3 -I tools/environment.py           set up what is missing
    .venv/bin/python tools/environment.py --check    status 0: nothing is missing

Needs nothing but Python. What cannot be is said before anything is fetched, in one sentence.
"""

import argparse
import ast
import fcntl
import hashlib
import os
import pwd
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BOUND_TO = ("requirements.txt", "pyproject.toml")  # what an environment is made from
# What a tool takes for something else than a part of a name; other signs were tried, and are fine.
REFUSED_CHARACTERS = {
    ":": "lists of folders are parted there",
    "*": "Sphinx takes it for a pattern",
    "?": "a database's address ends there",
    "\n": "names of one line are expected",
    **dict.fromkeys('$`"\\', "a shell reads it where pip's programs name their Python"),
}
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
PATIENCE = ("--retries=0", "--timeout=10")  # where what is asked for can be had elsewhere, too
# Megabytes to fetch, and on the disk: everything but torch, and torch by its build.
OTHERS, CPU_BUILD, CUDA_BUILD = (280, 1350), (190, 650), (2500, 4350)
UV = "uv==0.13.9"  # installs what is pinned in a seventh of pip's time
# What pip's settings are called by uv, of those that say where packages come from.
UV_OPTIONS = {
    "index-url": "--default-index",
    "extra-index-url": "--index",
    "find-links": "--find-links",
    "cert": "--cert",
    "trusted-host": "--allow-insecure-host",
    "constraint": "--constraint",
}
WITHOUT_UV = ("no-index", "proxy", "client-cert", "keyring-provider", "require-hashes", "no-binary")
# Large, and imported by no page and no grader: compiled by the first who imports it.
NOT_COMPILED = (
    "tests?|testing|transformers|torch/_inductor|sympy/physics|"
    "site-packages/(pip|dask|distributed|fontTools|huggingface_hub|hypothesis|playwright|pypdf)"
)
NETWORK_ERRORS = (
    r"resolve|NewConnectionError|ConnectTimeout|timed out|unreachable|refused|ProxyError"
)


def uv_options(listed: str) -> list[str] | None:
    """Return what `pip config list` says, as options for uv; None where uv has no such option.

    Pip asks all indexes for the newest version, whatever their order: so is uv told to.
    """
    settings_found = re.findall(r"^(?:global|install|:env:)\.(\S+?)=('.*')$", listed, re.MULTILINE)
    settings = {name: ast.literal_eval(value).split() for name, value in settings_found}
    if any(name in settings for name in WITHOUT_UV):
        return None
    options = ["--index-strategy", "unsafe-best-match"]
    for name, option in UV_OPTIONS.items():
        for value in settings.get(name, ()):
            options += [option, value]
    return options


class SetupError(Exception):
    """An error that the user can put right, in one sentence."""


def refused(path: Path) -> str:
    """Return why a course cannot be set up below this path, or an empty text."""
    named = [f"{sign!r} ({why})" for sign, why in REFUSED_CHARACTERS.items() if sign in str(path)]
    if not named:
        return ""
    return f"The path of this folder has {', '.join(named)}: move it to one without: {path}"


def owner_of(path: Path) -> str:
    """Return the name of the user to whom a file belongs, or the number where it has no name."""
    number = path.lstat().st_uid
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"


def unwritable(root: Path, names: tuple[str, ...] = (".venv", "_build")) -> str:
    """Return whose a folder of the course is that cannot be written to, or an empty text.

    One `sudo make` leaves such folders; so does a medium that can only be read.
    """
    folders = [root / name for name in names]
    folders = [f for f in folders if f.is_dir()]
    inside = [e for f in folders for e in sorted(f.iterdir()) if e.is_dir() and not e.is_symlink()]
    for folder in (root, *folders, *inside):
        if os.access(folder, os.W_OK | os.X_OK):
            continue
        if owner_of(folder) == pwd.getpwuid(os.geteuid()).pw_name:
            return f"{folder} cannot be written to: copy the course to where you may write"
        return (
            f"{folder} belongs to {owner_of(folder)} and cannot be written to (a make by another "
            f"user?): sudo chown -R {os.geteuid()} {folder}"
        )
    return ""


def stamp(root: Path) -> str:
    """Return what an environment here must have been made for: folder, Python, requirements."""
    digest = hashlib.sha256()
    for name in BOUND_TO:
        digest.update((root / name).read_bytes())
    return f"{root}\n{sys.version} {os.path.realpath(sys.executable)}\n{digest.hexdigest()}\n"


def is_set_up(root: Path) -> bool:
    """True if the environment is this folder's and whole; asked with its own Python."""
    file = root / ".venv" / ".stamp"
    return file.is_file() and file.read_text(encoding="utf-8", errors="replace") == stamp(root)


class Setup:
    """One run that makes an environment, or completes it."""

    def __init__(self, root: Path):
        self.root, self.folder = root, root / ".venv"
        self.python, self.log = self.folder / "bin" / "python", self.folder / "setup.log"

    def run(self) -> None:
        """Make the environment whole, unless it is."""
        began = time.monotonic()
        for problem in (refused(self.root), unwritable(self.root)):
            if problem:
                raise SetupError(problem)
        self.make()
        if self.call(str(Path(__file__).resolve()), "--check").returncode == 0:
            return  # another make was quicker
        for leftover in (self.log, self.folder / ".stamp"):
            leftover.unlink(missing_ok=True)
        self.call("--version")
        version = self.log.read_text(encoding="utf-8").strip()
        print(f"Setting up .venv with {version} (about a minute the first time) …", flush=True)
        if not self.has_torch():
            self.fetch_torch()
        if not self.installed_by_uv():
            self.install_by_pip()
        self.require_packages()
        compiled = ("-m", "compileall", "-q", "-j", "0", "-x", f"/({NOT_COMPILED})/")
        self.call(*compiled, str(self.folder / "lib"))
        self.call(str(Path(__file__).resolve()), "--stamp")
        print(f"Set up ({time.monotonic() - began:.0f} s).", flush=True)

    def make(self) -> None:
        """Make an environment of this Python for this folder, where there is another or none."""
        if self.is_ours():
            return
        if (self.folder / "pyvenv.cfg").is_file():
            print("The environment in .venv is of another folder or Python: it is made anew.")
        process = subprocess.run(
            [sys.executable, "-I", "-m", "venv", "--clear", str(self.folder)],
            capture_output=True, text=True,
        )  # fmt: skip
        if process.returncode:
            lines = (process.stderr or process.stdout).strip().splitlines() or ["nothing"]
            raise SetupError(
                f"{sys.executable} cannot make a virtual environment (it says: {lines[-1]}); on "
                "Debian: apt install python3-venv"
            )

    def is_ours(self) -> bool:
        """True if the environment has the Python that it was made with, and is for this folder."""
        code = "import sys; print('%d.%d' % sys.version_info[:2])"
        try:
            configured = (self.folder / "pyvenv.cfg").read_text(encoding="utf-8", errors="replace")
            # A script names its Python by the whole path: another one in a copy or after a move.
            script = (self.folder / "bin" / "pip").read_text(encoding="utf-8", errors="replace")
            process = subprocess.run(
                [self.python, "-I", "-c", code], capture_output=True, text=True
            )
        except OSError:
            return False
        version = re.search(r"^version = (\d+\.\d+)", configured, re.M)
        same = version is not None and version[1] == process.stdout.strip()
        return same and f"{self.folder}/bin/python" in script

    def call(self, *words: str) -> subprocess.CompletedProcess:
        """Run the environment's Python; what it says comes into the log."""
        command = [str(self.python), "-I", *words]
        with self.log.open("ab") as log:
            return subprocess.run(command, cwd=self.root, stdout=log, stderr=log)

    def pip(self, *words: str) -> subprocess.CompletedProcess:
        """Install something; whatever the user's settings say, it is into this environment."""
        return self.call("-m", "pip", "install", "--no-user", "--disable-pip-version-check", *words)

    def installed_by_uv(self) -> bool:
        """True if uv has installed the requirements; where it cannot, pip does, and says why.

        What it fetches stays in `.venv` as long as it runs: uv unpacks it there, and links it.
        """
        listed = subprocess.run(
            [self.python, "-I", "-m", "pip", "config", "list"], capture_output=True, text=True
        )
        options = uv_options(listed.stdout)
        fetch = ("--no-compile", "--no-deps", *PATIENCE, UV)
        if options is None or self.pip(*fetch).returncode:
            return False
        fetched = self.folder / ".fetched"
        command = [self.folder / "bin" / "uv", "--no-config", "pip", "install"]
        command += ["--python", self.python, "--cache-dir", fetched, *options]
        others = {name: value for name, value in os.environ.items() if not name.startswith("UV_")}
        try:
            with self.log.open("ab") as log:
                process = subprocess.run(
                    [*command, "-r", "requirements.txt"], cwd=self.root, env=others,
                    stdout=log, stderr=log,
                )  # fmt: skip
        except OSError:
            return False
        finally:
            shutil.rmtree(fetched, ignore_errors=True)
        return process.returncode == 0

    def install_by_pip(self) -> None:
        """Install the requirements with pip. Raises ``SetupError`` where it fails, with why."""
        # A new pip takes half as long as the one that comes with Python; it compiles on one core.
        self.pip("--upgrade", "pip")
        if self.pip("--no-compile", "-r", "requirements.txt").returncode:
            raise SetupError(self.reason())

    def has_torch(self) -> bool:
        """True if the environment has the torch that is pinned, of whatever build."""
        return any(self.folder.glob(f"lib/python3*/site-packages/torch-{self.torch()}*.dist-info"))

    def torch(self) -> str:
        """Return the version of torch that is pinned."""
        pins = (self.root / "requirements.txt").read_text(encoding="utf-8")
        pinned = re.search(r"^torch==(\S+)", pins, re.M)
        if pinned is None:
            raise SetupError("requirements.txt does not pin torch: add a line torch==…")
        return pinned[1]

    def fetch_torch(self) -> None:
        """Install torch's build for processors where Linux has it, and say how much is fetched.

        On Linux PyPI's own build is the one for graphics cards.
        """
        self.announce(CPU_BUILD)
        if sys.platform != "linux":
            return
        build = f"torch=={self.torch()}+cpu"
        process = self.pip("--no-compile", "--no-deps", *PATIENCE, "--index-url", CPU_INDEX, build)
        if process.returncode:
            print(
                f"PyTorch's build for processors is not within reach ({CPU_INDEX}): the one of "
                "PyPI brings everything for graphics cards, too.",
                flush=True,
            )
            self.announce(CUDA_BUILD)

    def announce(self, torch: tuple[int, int]) -> None:
        """Say how much is fetched and kept. Raises ``SetupError`` where the disk has no room."""
        fetched, installed = (a + b for a, b in zip(OTHERS, torch, strict=True))
        print(
            f"It fetches about {fetched / 1000:.1f} GB, less what pip has kept of earlier times, "
            f"and takes {installed / 1000:.1f} GB in .venv.",
            flush=True,
        )
        free = shutil.disk_usage(self.root).free / 1e6
        if free < installed:
            raise SetupError(
                f"The disk has no room: {free / 1000:.1f} GB are free at {self.root}, and "
                f"{installed / 1000:.1f} GB are needed"
            )

    def reason(self) -> str:
        """Return why pip failed, in one sentence, and where the rest is to be read."""
        log_text = self.log.read_text(encoding="utf-8", errors="replace")
        errors = re.findall(r"^ERROR: (.*)", log_text, re.M) or log_text.strip().splitlines()[-1:]
        if re.search(r"No space left|Disk quota", log_text):
            why = "the disk is full: make room, and run the same command again"
        elif re.search(NETWORK_ERRORS, log_text):
            why = (
                "the package index is not within reach: connect to a network (or name an index: "
                "PIP_INDEX_URL), and run the same command again"
            )
        else:
            why = f"pip says: {errors[0] if errors else 'nothing'}"
        return f"The packages could not be installed: {why}. All that pip said is in {self.log}"

    def require_packages(self) -> None:
        """Raise ``SetupError`` where pip has put the packages elsewhere than into `.venv`."""
        code = "import attncourse, numpy, torch.version; print(attncourse.__file__, numpy.__file__)"
        process = subprocess.run(
            [self.python, "-I", "-c", code], capture_output=True, text=True, cwd=self.root
        )
        expected_paths = str(self.root / "attncourse" / "__init__.py"), str(self.folder)
        if process.returncode or not all(place in process.stdout for place in expected_paths):
            line = (process.stderr.strip().splitlines() or [process.stdout.strip()])[-1]
            raise SetupError(
                f"The packages are not in {self.folder} ({line}): does pip's configuration name a "
                "target or a prefix? pip config list shows it"
            )


def main() -> int:
    """Set the environment up; return 1 where that fails, or with ``--check`` where it lacks."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="only ask whether it is whole")
    parser.add_argument("--stamp", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.check:
        return 0 if is_set_up(ROOT) else 1
    if arguments.stamp:
        (ROOT / ".venv" / ".stamp").write_text(stamp(ROOT), encoding="utf-8")
        return 0
    try:
        with (ROOT / "requirements.txt").open() as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # a second make waits for the first
            Setup(ROOT).run()
    except SetupError as problem:
        print(problem, file=sys.stderr)
        return 2
    except OSError as problem:
        print(f"The environment could not be made: {problem}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("Stopped; the same command goes on.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
