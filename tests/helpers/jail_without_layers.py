"""Tries the jail with one thing at a time taken away, for test_without.py.

Each case is a process of its own, forked off this one: what it takes away is gone for it alone. On
standard output comes a line of JSON for each: the case, and the layers as the probe tells them.
"""

import ast
import ctypes
import errno
import json
import os
import struct
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from attncourse.grading.jail import kernel, probe
from attncourse.grading.jail.seccomp import syscall_numbers

JAIL = Path(probe.__file__).parent
# What the C library and Python's own functions call; name:x86_64:aarch64, as in seccomp.py.
OTHERS = """
unshare:272:97 mount:165:40 umount2:166:39 setns:308:268 sethostname:170:161 capset:126:91
prctl:157:167 prlimit64:302:261 setsid:112:157 setgroups:116:159 setresuid:117:147
setresgid:119:149 wait4:61:260 clone:56:220 poll:7:- ppoll:271:73 umask:95:166 chdir:80:49
symlink:88:- symlinkat:266:36 mkdir:83:- mkdirat:258:34 pipe2:293:59
"""
TOGETHER = 8  # a case mostly waits for the kernel to take a namespace down
ERRORS = (errno.ENOSYS, errno.EPERM)


def calls() -> dict[str, int]:
    return syscall_numbers(kernel.CALL_NUMBERS, kernel.MACHINE) | syscall_numbers(
        OTHERS, kernel.MACHINE
    )


def functions() -> list[str]:
    """Return what the jail's modules use of ``os``."""
    nodes = [n for path in JAIL.glob("*.py") for n in ast.walk(ast.parse(path.read_text()))]
    pairs = [
        (node.value.id, node.attr)
        for node in nodes
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    ]
    names = {name for module, name in pairs if module == "os" and callable(getattr(os, name, 0))}
    return sorted(names - {"_exit", "write", "fspath"})  # without which nobody could tell anything


def refuse(number: int, error: int) -> None:
    """Have the kernel refuse a system call to this process and all that come of it."""
    lines = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (6, 0, 0, 0x50000 | error)]
    lines.append((6, 0, 0, 0x7FFF0000))
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in lines))
    header = ctypes.create_string_buffer(struct.pack("H6xP", len(lines), ctypes.addressof(code)))
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    kernel.prctl(kernel.PR_SET_SECCOMP, 2, ctypes.addressof(header))


def start(case: str, take_away: Callable[[], None]) -> tuple[str, int, int]:
    """Start a case and return it with where it will answer and its process."""
    listen, tell = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(tell, 1)
        os.closerange(3, 256)
        try:
            take_away()
            probe.main()
            sys.stdout.flush()
        except BaseException as problem:
            os.write(1, f"{type(problem).__name__}: {problem}".encode())
        finally:
            os._exit(0)
    os.close(tell)
    return case, listen, child


def main() -> None:
    cases = [
        (f"{name} {errno.errorcode[error]}", partial(refuse, number, error))
        for name, number in calls().items()
        for error in ERRORS
    ]
    cases += [(f"os.{name}", partial(delattr, os, name)) for name in functions()]
    for first in range(0, len(cases), TOGETHER):
        for case, listen, child in [start(*case) for case in cases[first : first + TOGETHER]]:
            with open(listen) as answer:
                print(json.dumps([case, answer.read()]), flush=True)
            os.waitpid(child, 0)


if __name__ == "__main__":
    main()
