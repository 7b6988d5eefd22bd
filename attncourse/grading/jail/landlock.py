"""Landlock: where a process may write and whom it may reach, for good, by the kernel.

All that the private file system holds can be read; writing is for the folders named.
"""

import ctypes
import os
import struct

from attncourse.grading.jail import kernel

EXECUTE, WRITE_FILE, TRUNCATE = 1 << 0, 1 << 1, 1 << 14
REMOVE_DIR, REMOVE_FILE, MAKE_DIR, MAKE_REG, MAKE_SYM, REFER = (
    1 << bit for bit in (4, 5, 7, 8, 12, 13)
)
MAKE_SPECIAL = 1 << 6 | 1 << 9 | 1 << 10 | 1 << 11  # devices, sockets and pipes: nowhere
IOCTL_DEV = 1 << 15
IN_FOLDERS = (
    WRITE_FILE | TRUNCATE | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | MAKE_SYM | REFER
)
HANDLED_RIGHTS = EXECUTE | IN_FOLDERS | MAKE_SPECIAL | IOCTL_DEV
TCP, SCOPES = 0b11, 0b11  # bind and connect; abstract sockets and signals
# The first version of the interface that knows each, where that is not 1.
RIGHT_SINCE_VERSION = {REFER: 2, TRUNCATE: 3, IOCTL_DEV: 5}
VERSION, PATH_BENEATH = 1, 1


def landlock_version() -> int:
    """Return the version of the kernel's Landlock; raise ``OSError`` if it has none."""
    return kernel.syscall("landlock_create_ruleset", None, 0, VERSION)


def restrict_thread(folders: list[str], files: list[str], programs: list[str]) -> int:
    """Restrict this thread for good; return the kernel's version of Landlock.

    Afterwards it writes below ``folders`` and to ``files`` only, and starts only programs that are
    below ``programs``.
    """
    version = landlock_version()
    handled = HANDLED_RIGHTS & ~sum(
        right for right, since in RIGHT_SINCE_VERSION.items() if version < since
    )
    net, scopes = TCP if version >= 4 else 0, SCOPES if version >= 6 else 0
    # The size of the kernel's structure in that version.
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = kernel.syscall(
        "landlock_create_ruleset", struct.pack("QQQ", handled, net, scopes), size, 0
    )
    rights = [(folders, IN_FOLDERS), (files, WRITE_FILE | TRUNCATE), (programs, EXECUTE)]
    for paths, right in rights:
        for path in paths:
            allow_below(ruleset, path, right & handled)
    kernel.syscall("landlock_restrict_self", ruleset, 0)
    os.close(ruleset)
    return version


def allow_below(ruleset: int, path: str, rights: int) -> None:
    """Add to a ruleset that ``rights`` hold at and below ``path``."""
    place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    rule = ctypes.create_string_buffer(struct.pack("=Qi", rights, place), 12)
    kernel.syscall("landlock_add_rule", ruleset, PATH_BENEATH, ctypes.byref(rule), 0)
    os.close(place)
