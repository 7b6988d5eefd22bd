"""The file system that a submission sees: Python, the course's view, and next to nothing else.

It is made of what Python needs, so a folder that nobody has thought of is not there. What must not
be seen in a folder that Python needs is covered besides.
"""

import os
import site
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from attncourse.grading.jail import kernel
from attncourse.grading.jail.kernel import NO_DEVICES, NO_EXEC, NO_SUID, READ_ONLY


def free_name(path: str) -> str:
    """Return ``path``, with as many "_" behind it as it takes for a path that does not exist."""
    while os.path.lexists(path):
        path += "_"
    return path


COURSE, WORK = map(free_name, ("/course", "/submission"))
PACKAGE_NAME = "attncourse"
ROOTS = tuple(f"/{lib}" for lib in ("lib", "lib32", "lib64", "libx32"))
LIBRARIES = (*ROOTS, *(f"/usr{root}" for root in ROOTS))  # that the loader looks into
# Data that Python's packages read: zones, fonts, and where Debian keeps matplotlib's.
SHARED_FOLDERS = tuple(
    f"/usr/share/{name}" for name in ("zoneinfo", "fonts", "fontconfig", "matplotlib")
)
PROGRAMS = ("/bin", "/usr/bin")  # where a submission may start another process
DEVICES = ("null", "zero", "full", "random", "urandom")
STUBS = {
    "passwd": f"student:x:1000:1000::{WORK}:/bin/false\n",
    "group": "student:x:1000:\n",
    "nsswitch.conf": "passwd: files\ngroup: files\n",
}
COPIES = ("ld.so.cache", "localtime", "os-release")
FONTS = "/etc/fonts"
MAPS = "/proc/self/maps"
DATA_MOUNT_FLAGS = READ_ONLY | NO_SUID | NO_DEVICES


def is_within(path: str, folder: str) -> bool:
    """True if a path is the folder or below it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def python_folders() -> list[str]:
    """Return the folders that hold Python's libraries and installed packages.

    Of a prefix they are only the libraries, since a virtual environment may have been made in the
    course's own folder.
    """
    prefixes = {sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix}
    candidates = [os.path.join(prefix, lib) for prefix in prefixes for lib in ("lib", "lib64")]
    installed = {*site.getsitepackages(), site.getusersitepackages()}
    candidates += [folder for folder in installed if folder in sys.path]
    return sorted({os.path.normpath(folder) for folder in candidates if os.path.isdir(folder)})


def mount_places(folders: Iterable[str]) -> dict[str, str]:
    """Return the place of each folder in the new root; folders inside another are left out."""
    places: dict[str, str] = {}
    for folder in sorted(map(os.path.realpath, filter(os.path.isdir, folders))):
        if not any(is_within(folder, mounted) for mounted in places):
            places[folder] = folder
    return places


def course_traces(folders: list[str]) -> list[str]:
    """Return all paths that hold the course's package or say where it is, its repository too."""
    roots = [Path(folder) for folder in (*folders, "/usr/lib", "/usr/local/lib")]
    installed = {place for root in roots for place in root.glob("python3*/*-packages")}
    installed |= {Path(entry) for entry in sys.path if entry.endswith("-packages")}
    paths = [p for place in installed for p in place.glob(f"*{PACKAGE_NAME}*")]
    paths += [p for place in installed for p in place.glob(f"__pycache__/*{PACKAGE_NAME}*")]
    package = Path(__file__).resolve().parents[2]
    around = package.parent
    paths.append(package if around.name.endswith("-packages") else around)
    return sorted(map(str, paths))


def paths_without(path: str, excluded: list[str]) -> list[str]:
    """Return paths that together hold all of ``path`` except the ``excluded`` ones."""
    if path in excluded:
        return []
    if not any(is_within(excluded_path, path) for excluded_path in excluded):
        return [path]
    return [p for entry in os.scandir(path) for p in paths_without(entry.path, excluded)]


def library_bytes(folders: Iterable[str]) -> int:
    """Return the size of shared libraries in these folders that this process has not mapped.

    An import maps each as a whole, which takes addresses and hardly any memory: torch's for
    graphics cards are several GB. A submission could write into such addresses, a piece at a time:
    so there are no more than are needed.
    """
    mapped = {line.split(maxsplit=5)[-1] for line in Path(MAPS).read_text().splitlines()}
    patterns = ("lib/*.so*", "*/lib/*.so*", "*.libs/*.so*", "nvidia/*/lib/*.so*")
    packages = {p for folder in folders for p in Path(folder).glob("python3*/*-packages")}
    packages |= {Path(folder) for folder in folders if folder.endswith("-packages")}
    files = {f.resolve() for place in packages for pattern in patterns for f in place.glob(pattern)}
    return sum(f.stat().st_size for f in files if f.is_file() and str(f) not in mapped)


def names_with_target(path: Path | str) -> set[str]:
    """Return a path with its folder's links followed, not its own, and the path it leads to."""
    folder, name = os.path.split(os.path.abspath(path))
    return {os.path.join(os.path.realpath(folder), name), os.path.realpath(path)}


class Root:
    """The private root of a jail: planned when it is made, and built by ``enter``."""

    def __init__(self, view: Path, hidden: tuple[Path, ...] = (), *, programs: bool = False):
        folders = python_folders()
        system = (*LIBRARIES, *SHARED_FOLDERS, *(PROGRAMS if programs else ()))
        real_folders = [os.path.realpath(folder) for folder in folders]
        self.view = os.path.realpath(view)
        self.places = mount_places((*system, *folders))
        self.links = {name: os.readlink(name) for name in system if os.path.islink(name)}
        for name, real in zip(folders, real_folders, strict=True):
            if not any(is_within(name, place) for place in (*self.places.values(), *self.links)):
                self.links[name] = self.place(real)
        self.covered = {
            self.place(part)
            for path in (*hidden, *course_traces(folders))
            for name in names_with_target(path)
            if self.place(name)
            for part in paths_without(name, real_folders)
        }

    def place(self, path: str) -> str:
        """Return the path in the new root of a real path of the machine; "" if it is not there."""
        for folder, place in {**self.places, self.view: COURSE}.items():
            if is_within(path, folder):
                return place + path.removeprefix(folder)
        return ""

    def enter(self) -> None:
        """Build the root and make it this process's; a mount namespace of its own comes before."""
        os.umask(0o022)
        # Nothing that is mounted from here on reaches the machine's own mounts.
        kernel.call("mount", None, b"/", None, kernel.MS_REC_PRIVATE, None)
        copies, files = self.clone_mounts(), etc_files()
        # The copies are made, so the new root can be put upon /usr, which is everywhere.
        kernel.mount_tmpfs("/usr", NO_SUID, "size=8m,nr_inodes=4096,mode=755")
        os.chdir("/usr")
        for place, copy in copies.items():
            point, is_file = Path(place[1:]), place.startswith("/dev/")
            os.makedirs(point.parent if is_file else point, exist_ok=True)
            if is_file:
                point.touch()
            kernel.attach_mount(copy, place[1:])
        self.make_files(files)
        self.cover_hidden()
        # The new root comes to lie under the old one, in the same place, and that one is taken off.
        kernel.syscall("pivot_root", b".", b".")
        kernel.call("umount2", b".", kernel.DETACH)
        os.chdir("/")
        root = os.open("/", os.O_PATH | os.O_CLOEXEC)
        # Read-only only now: up to here the root was written to.
        kernel.set_mount_flags(root, DATA_MOUNT_FLAGS | NO_EXEC)
        os.close(root)

    def clone_mounts(self) -> dict[str, int]:
        """Return a descriptor of a copy of each mount to be seen, by its place in the new root."""
        copies = {
            place: kernel.clone_tree(path, DATA_MOUNT_FLAGS) for path, place in self.places.items()
        }
        copies[COURSE] = kernel.clone_tree(self.view, DATA_MOUNT_FLAGS | NO_EXEC)
        if os.path.isdir(FONTS):
            copies[FONTS] = kernel.clone_tree(FONTS, DATA_MOUNT_FLAGS | NO_EXEC)
        for device in DEVICES:
            path = f"/dev/{device}"
            copies[path] = kernel.clone_tree(path, READ_ONLY | NO_SUID | NO_EXEC)
        return copies

    def make_files(self, files: dict[str, bytes]) -> None:
        """Make what the root itself holds, in the present folder, which becomes the root.

        That is ``files`` for /etc, folders, and links where the machine has links.
        """
        os.makedirs("etc", exist_ok=True)
        for name, content in files.items():
            Path("etc", name).write_bytes(content)
        os.makedirs(WORK[1:])
        for name, place in self.links.items():
            os.makedirs(f"./{os.path.dirname(name[1:])}", exist_ok=True)
            os.symlink(place, name[1:])
        os.symlink(WORK, "dev/shm")
        if not os.path.exists("tmp"):  # else Python itself is there
            os.symlink(WORK, "tmp")

    def cover_hidden(self) -> None:
        """Mount something empty, in the present folder (the new root), on all that stays hidden."""
        os.mkdir("empty")
        Path("nothing").touch()
        for place in (place[1:] for place in self.covered):
            if os.path.lexists(place) and not os.path.islink(place):
                empty = "empty" if os.path.isdir(place) else "nothing"
                kernel.attach_mount(kernel.clone_tree(empty, DATA_MOUNT_FLAGS | NO_EXEC), place)


def etc_files() -> dict[str, bytes]:
    """Return the contents of /etc in the jail by name: stubs, and copies of the machine's."""
    files = {name: text.encode() for name, text in STUBS.items()}
    for name in COPIES:
        with suppress(OSError):
            files[name] = Path("/etc", name).read_bytes()
    return files
