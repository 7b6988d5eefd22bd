"""Runs a small program in a real jail: ``python jailed_program.py ORDER``, for test_jail.py.

ORDER is JSON: ``program``, ``limits``, ``without`` (layers whose kernel calls are made to fail),
``view``, ``hidden``, ``secret`` (a file that stays open). What the program leaves in ``result``,
or what it raised, is one line of JSON on standard output; then how it ended. Without ``view`` the
program runs in no jail at all. As in grading there are a lane, its zygote and a worker.
"""

import errno
import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from attncourse.grading.jail import jail as jails
from attncourse.grading.jail import kernel, landlock
from attncourse.grading.limits import Limits


def outcome(program: str, given: dict) -> dict:
    names = dict(given)
    try:
        exec(program, names)
        return {"result": names.get("result")}
    except BaseException as error:
        code = errno.errorcode.get(getattr(error, "errno", None) or 0, "")
        return {"raised": type(error).__name__, "code": code, "text": str(error)}


def refuse(*anything: object) -> None:
    raise OSError(errno.ENOSYS, "no such thing")


def leave_out(layer: str) -> None:
    """Makes the kernel look as if it had no such layer."""
    if layer == "Landlock":
        landlock.restrict_thread = refuse
    elif layer == "seccomp":
        original = kernel.prctl
        kernel.prctl = lambda option, *rest: refuse() if option == 22 else original(option, *rest)
    else:
        kernel.unshare = refuse


def environment_block() -> list[int]:
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    return [int(field) for field in fields[45:49]]


def say(where: int, what: object) -> None:
    os.write(where, json.dumps(what).encode() + b"\n")


def main() -> None:
    order = json.loads(sys.argv[1])
    out = os.dup(1)
    given = {"out": out, "block": environment_block(), "outside": os.getpid()}
    if not order["view"]:
        say(out, outcome(order["program"], given))
        return
    forked = os.fork()
    if forked:  # this is the lane
        os.close(out)
        os.close(1)
        os._exit(os.waitstatus_to_exitcode(os.waitpid(forked, 0)[1]))
    for layer in order["without"]:
        leave_out(layer)
    given["secret"] = os.open(order["secret"], os.O_RDONLY) if order["secret"] else -1
    hidden = tuple(map(Path, order["hidden"]))
    jail = jails.Jail(Path(order["view"]), Limits(**order["limits"]), hidden)
    try:
        jail.enter()
    except jails.JailError as error:
        say(out, {"raised": "JailError", "text": str(error), "code": ""})
        os._exit(3)
    given["zygote"] = os.getpid()
    child = jail.fork()
    if child == 0:
        jail.enter_worker((out,))
        given["layers"] = {layer.name: layer.in_force for layer in jail.layers}
        say(out, outcome(order["program"], given))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    say(out, os.waitstatus_to_exitcode(status))
    os._exit(0)


if __name__ == "__main__":
    main()
