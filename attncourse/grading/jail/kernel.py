"""Linux calls that Python has no function for. Each raises ``OSError`` with the call's name."""

import ctypes
import os
import platform
import select
import signal

from attncourse.grading.jail.seccomp import syscall_numbers

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_REC_PRIVATE = 0x4000 | 0x40000
READ_ONLY, NO_SUID, NO_DEVICES, NO_EXEC = 1, 2, 4, 8  # the same bits in MS_* and MOUNT_ATTR_*
DETACH = 2
AT_EMPTY_PATH, AT_RECURSIVE, AT_FDCWD = 0x1000, 0x8000, -100
OPEN_TREE_CLONE, OPEN_TREE_CLOEXEC, MOVE_EMPTY_PATH = 1, 0o2000000, 4

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP = 1, 4, 22
PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = 24, 38, 47

CALL_NUMBERS = """
pivot_root:155:41 keyctl:250:219 open_tree:428:428 move_mount:429:429 pidfd_open:434:434
close_range:436:436 mount_setattr:442:442 landlock_create_ruleset:444:444
landlock_add_rule:445:445 landlock_restrict_self:446:446
"""
MACHINE = platform.machine()
_numbers = syscall_numbers(CALL_NUMBERS, MACHINE)
_libc = ctypes.CDLL(None, use_errno=True) if os.name == "posix" else None


def call(name: str, *arguments: int | bytes | object) -> int:
    """Call the C library's function of that name; return its result."""
    return _checked_result(name, getattr(_libc, name)(*map(_as_long, arguments)))


def syscall(name: str, *arguments: int | bytes | object) -> int:
    """Make a system call that the C library has no function for; return its result."""
    return _checked_result(
        name, _libc.syscall(ctypes.c_long(_numbers[name]), *map(_as_long, arguments))
    )


def _as_long(argument: object) -> object:
    """Return a number as C's long, which a variable argument has to be; another value as it is."""
    return ctypes.c_long(argument) if isinstance(argument, int) else argument


def _checked_result(name: str, result: int) -> int:
    """Return a call's result; raise ``OSError`` with the call's name if it is -1."""
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")
    return result


def unshare(flags: int) -> None:
    """Move this process, or its future children, into new namespaces, as ``flags`` say."""
    call("unshare", flags)


def prctl(option: int, *arguments: int | object) -> None:
    """Set a property of this process."""
    call("prctl", option, *arguments, *[0] * (4 - len(arguments)))


def mount_tmpfs(path: str, flags: int, options: str) -> None:
    """Mount an empty file system in memory at ``path``."""
    call("mount", b"tmpfs", os.fsencode(path), b"tmpfs", flags, options.encode())


def clone_tree(path: str, flags: int) -> int:
    """Return a descriptor of a copy of all mounts at ``path``, which have ``flags`` then."""
    how = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE
    tree = syscall("open_tree", AT_FDCWD, os.fsencode(path), how)
    try:
        set_mount_flags(tree, flags, AT_RECURSIVE)
    except OSError:
        os.close(tree)
        raise
    return tree


def set_mount_flags(mount: int, flags: int, how: int = 0) -> None:
    """Set flags on the mount behind a descriptor, with ``AT_RECURSIVE`` on all below as well."""
    attributes = (ctypes.c_uint64 * 4)(flags, 0, 0, 0)
    size = ctypes.sizeof(attributes)
    syscall("mount_setattr", mount, b"", AT_EMPTY_PATH | how, ctypes.byref(attributes), size)


def attach_mount(tree: int, path: str) -> None:
    """Mount a copy that ``clone_tree`` made at ``path``, and close its descriptor."""
    syscall("move_mount", tree, b"", AT_FDCWD, os.fsencode(path), MOVE_EMPTY_PATH)
    os.close(tree)


def pidfd_open(pid: int) -> int:
    """Return a descriptor of a process.

    Not every build of Python has ``os.pidfd_open``.
    """
    return syscall("pidfd_open", pid, 0)


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent, behind a pidfd, ends; end if it has.

    A change of user or of capabilities undoes this: call it after those.
    """
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    poll = select.poll()
    poll.register(parent, select.POLLIN)
    if poll.poll(0):
        os._exit(1)


def drop_capabilities() -> None:
    """Give up all capabilities, and the possibility of getting any."""
    for capability in range(64):
        try:
            prctl(PR_CAPBSET_DROP, capability)
        except OSError:  # beyond the last one that this kernel knows
            break
    prctl(PR_CAP_AMBIENT, 4)  # PR_CAP_AMBIENT_CLEAR_ALL
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # _LINUX_CAPABILITY_VERSION_3, this process
    call("capset", ctypes.byref(header), ctypes.byref((ctypes.c_uint32 * 6)()))
    prctl(PR_SET_NO_NEW_PRIVS, 1)  # without it neither Landlock nor seccomp may be set


def close_all_but(keep: tuple[int, ...]) -> None:
    """Close every descriptor that is not in ``keep``."""
    first = 0
    for descriptor in sorted(set(keep)):
        if first < descriptor:
            syscall("close_range", first, descriptor - 1, 0)
        first = descriptor + 1
    syscall("close_range", first, 2**32 - 1, 0)
