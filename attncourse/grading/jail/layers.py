"""The layers of the jail: what each is for, and what to do if one is missing."""

import errno
import platform
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from attncourse.grading.errors import UserError
from attncourse.grading.jail import apparmor

USER, FILES, NETWORK = "user namespaces", "private file system", "no network"
PROCESSES, LIMITS, CAPABILITIES = "own processes", "limits", "no capabilities"
LANDLOCK, SECCOMP = "Landlock", "seccomp"

SYSTEM = Path("/proc/sys")
SWITCHES = (  # settings that turn user namespaces off, and the value that does
    ("kernel/unprivileged_userns_clone", "0", "1"),
    (apparmor.SETTING, "1", "0"),
    ("user/max_user_namespaces", "0", "16384"),
)
CONTAINER = (
    "in Docker or Podman, start the container with --security-opt seccomp=unconfined "
    "--security-opt apparmor=unconfined (or, wider, --privileged)"
)
DOES_NOT_HOLD = "built, but it does not hold"
CONTAINER_MARKS = (Path("/.dockerenv"), Path("/run/.containerenv"))
OLDEST_KERNEL = (5, 14)  # what mounts the private file system is older by two versions
NEWER_KERNEL = "needs Linux 5.14 (Debian 12, Ubuntu 22.04, Fedora 35); this kernel is {}"
OTHER_PYTHON = "this Python was built without it: use another one (make PYTHON=…)"
NOT_STARTED = "this Python did not start as grading starts it: see what it said, or use another one"


class JailError(UserError):
    """A required layer cannot be had on this machine. The message says what to do."""


@dataclass(frozen=True)
class Layer:
    """A layer of the jail: whether it holds here, whether grading needs it, and why it does not."""

    name: str
    in_force: bool
    required: bool
    detail: str = ""
    remedy: str = ""


def held_layer(name: str, detail: str = "") -> Layer:
    """Return this layer as one that holds."""
    return Layer(name, True, name in REQUIRED_LAYERS, detail)


def missing_layer(name: str, detail: str, remedy: str = "") -> Layer:
    """Return this layer as one that does not hold, with what to do about it."""
    return Layer(name, False, name in REQUIRED_LAYERS, detail, remedy or usual_remedy(name))


REQUIRED_LAYERS = (USER, PROCESSES, NETWORK, FILES, LIMITS)
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
    FILES: f"{NEWER_KERNEL.format(platform.release())}; {CONTAINER}",
    LANDLOCK: "needs Linux 5.13 with landlock in the kernel's lsm= list (Debian 12, Ubuntu 22.04)",
    SECCOMP: "needs a kernel with CONFIG_SECCOMP_FILTER, on x86_64 or aarch64",
}


def usual_remedy(name: str) -> str:
    """Return one line on what to install or switch on for a layer."""
    switched_off = {setting: on for setting, off, on in SWITCHES if read_setting(setting) == off}
    # AppArmor lets the namespace be made and refuses what is done in it: any layer may fail.
    if name in REQUIRED_LAYERS and switched_off and (name == USER or is_apparmor_restricting()):
        return how_to_switch_on(switched_off)
    return REMEDIES.get(name, CONTAINER)


def how_to_switch_on(switched_off: dict[str, str]) -> str:
    """Return one line on how to change kernel settings, now and after each start.

    ``switched_off`` has, by setting, the value that switches it on. In a container that is done on
    the machine outside.
    """
    settings = [f"{name.replace('/', '.')}={value}" for name, value in switched_off.items()]
    if is_in_container():
        return f"not in the container: on the machine that runs it, sysctl -w {' '.join(settings)}"
    lines = "\\n".join(settings)
    everywhere = (
        f"as root: sysctl -w {' '.join(settings)}; "
        f"and for later starts: printf '{lines}\\n' > /etc/sysctl.d/60-attncourse.conf"
    )
    if apparmor.SETTING not in switched_off:
        return everywhere
    return (
        "attncourse doctor writes an AppArmor profile that allows this Python alone, and says how "
        f"to install it; what weakens the whole machine is, {everywhere}"
    )


def is_apparmor_restricting() -> bool:
    """True if AppArmor keeps programs without a profile from making user namespaces."""
    return read_setting(apparmor.SETTING) == "1"


def is_in_container() -> bool:
    """True inside a container of Docker's or Podman's."""
    return any(mark.exists() for mark in CONTAINER_MARKS)


def remedy_for_error(name: str, error: Exception) -> str:
    """Return what to do about a layer that failed with this error; "" for the usual remedy."""
    if not isinstance(error, OSError):
        return OTHER_PYTHON
    kernel_version = re.match(r"(\d+)\.(\d+)", platform.release())
    old = kernel_version is not None and tuple(map(int, kernel_version.groups())) < OLDEST_KERNEL
    if old and error.errno == errno.ENOSYS and name in REQUIRED_LAYERS:
        return NEWER_KERNEL.format(platform.release())
    return ""


def read_setting(setting: str) -> str:
    """Return the value of a kernel setting; "" if it cannot be read."""
    with suppress(OSError):
        return (SYSTEM / setting).read_text().strip()
    return ""
