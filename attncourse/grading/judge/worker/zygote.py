"""The process that the workers are forked from: libraries loaded, jailed, without a secret.

It is forked from a lane before that has read anything of the course. Over its control socket it
is told where the package's view and the lane's folder lie and what the limits are; from then on
each "start", with a socket to the checker, makes one worker, and each "stop" ends it and tells what
it used.
"""

import ctypes
import importlib
import json
import os
import shutil
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from attncourse.checks.watch import prepare
from attncourse.grading.judge.worker import loop as worker
from attncourse.grading.limits import Limits

PACKAGE = str(Path(__file__).resolve().parents[4])  # where ``attncourse`` was imported from


def run(control: socket.socket) -> None:
    """Serves a lane until it hangs up; never returns."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: it goes with its lane
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    prepare()  # before there is anybody who could answer in torch's name
    try:
        Zygote(control).serve()
    finally:
        os._exit(0)


class Zygote:
    def __init__(self, control: socket.socket):
        self.control = control
        order, _ = self.receive()
        self.folder, view = Path(order["folder"]), order["view"]
        self.jail = self.settle(Path(view), Limits(**order["limits"])) if order["sandbox"] else None
        self.send({"ready": True})
        see_only("/course" if self.jail else view)

    def settle(self, view: Path, limits: Limits) -> Any:
        """The jail, entered."""
        from attncourse.grading.jail.jail import Jail, JailError

        here = Path.cwd()  # under /usr, where some containers have it, it would be seen
        courses = [here] if any((here / n).is_dir() for n in ("solutions", "submitted")) else []
        jail = Jail(view, limits, tuple(courses))
        try:
            jail.enter()
        except (JailError, OSError) as problem:
            self.send({"error": str(problem)})
            os._exit(1)
        return jail

    def serve(self) -> None:
        while True:
            order, fds = self.receive()
            if order["do"] == "start":
                self.told(self.start(fds[0], Limits(**order["limits"])))
                os.close(fds[0])
            else:
                self.send(self.stop(order["pid"]))

    def start(self, fd: int, limits: Limits) -> int:
        """Forks a worker with these limits that talks over ``fd``; its process id."""
        if self.jail:
            self.jail.limits = limits
        pid = self.jail.fork() if self.jail else os.fork()
        if pid:
            return pid
        try:
            self.control.close()
            if self.jail:
                self.jail.enter_worker(keep=(fd,))
            else:
                settle_without_jail(self.folder / str(os.getpid()))
            worker.start(socket.socket(fileno=fd), limits.output)
        finally:
            os._exit(1)

    def stop(self, pid: int) -> dict[str, Any]:
        """Ends a worker and everything in its jail; what it used."""
        with suppress(ProcessLookupError):
            if not self.jail:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(pid, signal.SIGKILL)
            os.kill(pid, signal.SIGKILL)
        _, status, used = os.wait4(pid, 0)
        if not self.jail:
            shutil.rmtree(self.folder / str(pid), ignore_errors=True)
        return {
            "status": status,
            "cpu": used.ru_utime + used.ru_stime,
            "memory": used.ru_maxrss / 1000,
        }

    def told(self, pid: int) -> None:
        """Tells of a worker, with a descriptor: its number is another one outside of the jail."""
        fds = []
        with suppress(AttributeError, OSError):
            fds.append(os.pidfd_open(pid))
        socket.send_fds(self.control, [json.dumps({"pid": pid}).encode()], fds)
        for fd in fds:
            os.close(fd)

    def receive(self) -> tuple[dict[str, Any], list[int]]:
        data, fds, _, _ = socket.recv_fds(self.control, 1 << 16, 1)
        if not data:
            os._exit(0)
        return json.loads(data), fds

    def send(self, message: dict[str, Any]) -> None:
        self.control.send(json.dumps(message).encode())


def see_only(view: str) -> None:
    """Makes ``import attncourse`` find the view, and nothing else of this package."""
    installed = PACKAGE.endswith(("site-packages", "dist-packages"))
    others = [p for p in sys.path if p and (installed or os.path.abspath(p) != PACKAGE)]
    sys.path[:] = [view, *others]
    sys.meta_path[:] = [f for f in sys.meta_path if "editable" not in type(f).__name__.lower()]
    sys.path_importer_cache.clear()
    for name in [n for n in sys.modules if n.split(".")[0] == "attncourse"]:
        del sys.modules[name]
    importlib.import_module("attncourse.checks")  # as the first cell of every notebook does


def settle_without_jail(folder: Path) -> None:
    """A session and a folder of its own: all there is without a sandbox."""
    os.setsid()
    folder.mkdir()
    os.chdir(folder)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nowhere, fd)
