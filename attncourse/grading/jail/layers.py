"""The layers of the jail: what each is for, and what to do where one is missing."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from attncourse.grading.errors import UserError

USER, FILES, NETWORK = "user namespaces", "private file system", "no network"
PROCESSES, LIMITS, CAPABILITIES = "own processes", "limits", "no capabilities"
LANDLOCK, SECCOMP = "Landlock", "seccomp"

SYSTEM = Path("/proc/sys")
SWITCHES = (  # settings that turn user namespaces off, and the value that does
    ("kernel/unprivileged_userns_clone", "0", "1"),
    ("kernel/apparmor_restrict_unprivileged_userns", "1", "0"),
    ("user/max_user_namespaces", "0", "16384"),
)
CONTAINER = (
    "in Docker or Podman, start the container with --security-opt seccomp=unconfined "
    "--security-opt apparmor=unconfined (or, wider, --privileged)"
)
BROKEN = "built, but it does not hold"


class JailError(UserError):
    """A layer of the floor cannot be had on this machine. The message says what to do."""


@dataclass(frozen=True)
class Layer:
    """One layer: whether it holds here, whether grading refuses without it, and why not."""

    name: str
    in_force: bool
    floor: bool
    detail: str = ""
    remedy: str = ""


def held(name: str, detail: str = "") -> Layer:
    return Layer(name, True, name in FLOOR, detail)


def missing(name: str, detail: str, remedy: str = "") -> Layer:
    return Layer(name, False, name in FLOOR, detail, remedy or remedy_of(name))


FLOOR = (USER, PROCESSES, NETWORK, FILES, LIMITS)
PROTECTS = {
    USER: "a submission has no rights outside its own world",
    PROCESSES: "it sees and signals only itself, and leaves nothing running",
    NETWORK: "it reaches no other machine, and no server on this one",
    FILES: "it sees neither your files nor the tests, and writes only to a folder of its own",
    LIMITS: "it cannot use up memory, processor, disk or threads",
    CAPABILITIES: "setuid programs give it nothing, and what it lacks it never gets",
    LANDLOCK: "a second lock on writing, starting programs and reaching others",
    SECCOMP: "most of the kernel's calls are refused, new namespaces and processes among them",
}


REMEDIES = {  # CONTAINER for the others
    FILES: f"needs Linux 5.14 (Debian 12, Ubuntu 22.04, Fedora 35); {CONTAINER}",
    LANDLOCK: "needs Linux 5.13 with landlock in the kernel's lsm= list (Debian 12, Ubuntu 22.04)",
    SECCOMP: "needs a kernel with CONFIG_SECCOMP_FILTER, on x86_64 or aarch64",
}


def remedy_of(name: str) -> str:
    """What to install or switch on for that layer, in a line."""
    switched_off = [(setting, on) for setting, off, on in SWITCHES if reads(setting) == off]
    if name == USER and switched_off:
        commands = [f"sysctl -w {setting.replace('/', '.')}={on}" for setting, on in switched_off]
        return f"as root: {'; '.join(commands)}"
    return REMEDIES.get(name, CONTAINER)


def reads(setting: str) -> str:
    with suppress(OSError):
        return (SYSTEM / setting).read_text().strip()
    return ""
