"""The process that the workers are forked from: libraries loaded, jailed, without a secret.

It is forked from a lane before that has read anything of the course. The lane's order says which
chapters a submission finds, and where the lane's and the course's folders lie. Over its control
socket each "start", with limits and a socket to the checker, makes one worker, and each "stop" ends
it and tells what it used.
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

import attncourse
from attncourse import STEMS
from attncourse.checks.trying.unavailable import CHAPTER_ABSENT
from attncourse.checks.trying.watch import look_up_forbidden
from attncourse.grading.jail import kernel
from attncourse.grading.judge.wire.encoding import Encoder
from attncourse.grading.judge.wire.frames import receive_packet, send_packet
from attncourse.grading.judge.worker import loop as worker
from attncourse.grading.judge.worker.loop import Worker
from attncourse.grading.limits import Limits

PR_SET_PDEATHSIG = 1  # prctl's option: the signal that this process gets when its parent ends
IMPORT_PATH = str(Path(__file__).resolve().parents[4])  # where ``attncourse`` was imported from


def run_zygote(control: socket.socket, order: dict[str, Any]) -> None:
    """Fork workers for a lane until it hangs up; never return."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # it ends with its lane
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    look_up_forbidden()  # before there is anybody who could answer in torch's name
    try:
        Zygote(control, order).serve()
    finally:
        os._exit(0)


class Zygote:
    """The process that forks workers; it is jailed when made, if there is a sandbox.

    ``order`` is the lane's: chapters, folders, how many processes a worker may be.
    """

    def __init__(self, control: socket.socket, order: dict[str, Any]):
        self.control = control
        self.folder = Path(order["folder"])
        view = self.folder / "view"
        try:
            make_view(view, order["chapters"])
        except OSError as problem:
            why = f"{problem.strerror or 'files are missing'}: make room there, or set TMPDIR"
            self.end_refusing(f"no lane can start on this machine in {self.folder.parent} ({why})")
        hidden = tuple(map(Path, order["hidden"]))
        limits = Limits(processes=order["processes"])
        self.jail = self.enter_jail(view, limits, hidden) if order["sandbox"] else None
        send_packet(control, {"ready": True})
        import_only_view("/course" if self.jail else str(view))

    def enter_jail(self, view: Path, limits: Limits, hidden: tuple[Path, ...]) -> Any:
        """Enter the jail and return it; where that fails, tell the lane why and end."""
        from attncourse.grading.jail.jail import Jail, JailError

        jail = Jail(view, limits, hidden)
        try:
            jail.enter()
        except (JailError, OSError) as problem:
            self.end_refusing(f"{problem} (--unsafe-no-sandbox grades without a jail)")
        return jail

    def end_refusing(self, why: str) -> None:
        """Tell the lane why there can be no worker here, and end this process."""
        send_packet(self.control, {"error": why})
        os._exit(1)

    def serve(self) -> None:
        """Fork and end workers as the lane asks; raise ``EOFError`` when it hangs up."""
        while True:
            order, fds = receive_packet(self.control)
            if order["do"] == "stop":
                send_packet(self.control, self.end_worker(order["pid"]))
                continue
            pid = self.fork_worker(fds[0], Limits(**order["limits"]))
            with suppress(OSError):  # its number is another one outside of the jail
                fds.append(kernel.pidfd_open(pid))
            outside = 0 if self.jail else pid  # what others know it by, where that is known here
            send_packet(self.control, {"pid": pid, "outside": outside}, fds[1:])
            for fd in fds:
                os.close(fd)

    def fork_worker(self, fd: int, limits: Limits) -> int:
        """Fork a worker with these limits, which talks over ``fd``; return its process id."""
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
            worker.run_worker(socket.socket(fileno=fd), limits.output)
        finally:
            os._exit(1)

    def end_worker(self, pid: int) -> dict[str, Any]:
        """End a worker and all processes that it started; return its status and what it used."""
        with suppress(ProcessLookupError):
            # A jailed worker is the first process of its namespace: what it started ends with it.
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


def import_only_view(view: str) -> None:
    """Have ``import attncourse`` find the view in this folder, and nothing else of the package."""
    installed = IMPORT_PATH.endswith(("site-packages", "dist-packages"))
    others = [p for p in sys.path if p and (installed or os.path.abspath(p) != IMPORT_PATH)]
    sys.path[:] = [view, *others]
    sys.meta_path[:] = [f for f in sys.meta_path if "editable" not in type(f).__name__.lower()]
    # What Python has found and imported elsewhere is forgotten, so that the view's is found.
    sys.path_importer_cache.clear()
    for name in [n for n in sys.modules if n.split(".")[0] == "attncourse"]:
        del sys.modules[name]
    importlib.import_module("attncourse.checks")  # as the first cell of every notebook does


def settle_without_jail(folder: Path) -> None:
    """Give this process a session and a folder of its own, and no terminal.

    That is all there is without a sandbox.
    """
    os.setsid()
    folder.mkdir()
    os.chdir(folder)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nowhere, fd)


# --- the part of this package that a submission finds: the chapters before its own ----------------

ALWAYS_VISIBLE = ("__init__.py", "support", "tasks", "figures")

# Cells that call check() run on; what they would have shown is found by the judge.
CHECKS_STUB = '''\
"""The checks are not here: they run outside, where the grade is made."""


class Verdict:
    passed = False
    earned = possible = 0


def check(target, implementation, variant=""):
    """Nothing happens here."""


def examine(target, implementation, seed=None, variant=""):
    return Verdict()


def progress(stem):
    """Nothing happens here."""


def exercises():
    return {}


def in_place(function):
    return function
'''
LATER_CHAPTER_STUB = f"raise ImportError({CHAPTER_ABSENT!r})\n"


def make_view(folder: Path, stems: tuple[str, ...]) -> None:
    """Write the package as a submission may import it: these chapters, and no checks.

    The other chapters say, when they are imported, that they come later.
    """
    source, place = Path(attncourse.__file__).parent, folder / "attncourse"
    folder.mkdir(mode=0o755)
    place.mkdir(mode=0o755)
    for name in (*ALWAYS_VISIBLE, *(f"{stem}.py" for stem in stems)):
        if (source / name).is_dir():
            shutil.copytree(
                source / name, place / name, ignore=shutil.ignore_patterns("__pycache__")
            )
        else:
            shutil.copyfile(source / name, place / name)
    for name in STEMS:
        if name not in stems:
            (place / f"{name}.py").write_text(LATER_CHAPTER_STUB.format(name), encoding="utf-8")
    (place / "checks").mkdir(mode=0o755)
    (place / "checks" / "__init__.py").write_text(CHECKS_STUB, encoding="utf-8")


# --- what every worker will do, done a few times before there is one ------------------------------

# With some calls each: Python specialises a function once it has been called often.
N_REHEARSALS = 4
REHEARSAL_CELL = """
def mix(a, b):
    return (a @ b.T)[..., :1] + a.sum()
"""
REHEARSAL_TORCH_CELL = """
import torch
from torch import nn

class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.W = nn.Linear(3, 3, bias=False)

    def forward(self, x, mask=None):
        nn.functional.conv2d(torch.ones(1, 1, 3, 3), torch.ones(1, 1, 2, 2))
        weights = torch.einsum("...md,...nd->...mn", self.W(x), x) * x.shape[-1] ** -0.5
        return torch.softmax(weights.masked_fill(weights > 9, -float("inf")), dim=-1) @ x
"""


class Nobody:
    """A connection on which nobody listens."""

    def sendall(self, data: bytes) -> None:
        """Send nothing."""
        pass


def rehearse_worker() -> None:
    """Have a worker in this process do what every worker will be asked for.

    Python and torch set up much when something is done for the first times. Workers inherit what is
    there by then; what they set up themselves goes with each of them.
    """
    import numpy as np

    torch = sys.modules.get("torch")
    forbids = ["scaled_dot_product_attention"] if torch else []
    x = np.ones((2, 3)) if torch is None else torch.ones(2, 3)
    built = {"make": ((), {}), "method": "", "inputs": ["x"], "x": x, "W.weight": x.T @ x}
    cases: list[tuple] = [("mix", ["call_it", [], [x, x], {}])]
    if torch is not None:
        cases += [
            ("mix", ["call_with_gradients", [("a",)], [x, x], {}]),
            ("Layer", ["call_module", [], [], built]),
            ("Layer", ["call_module_with_gradients", [], [], built]),
        ]
    worker = Worker(Nobody(), sys.maxsize, {})
    ask_worker(
        worker, "cell", name="cell", source=REHEARSAL_CELL + (REHEARSAL_TORCH_CELL if torch else "")
    )
    for _ in range(N_REHEARSALS):
        for name, case in cases:
            ask_worker(worker, "names", names=[name], forbids={})
            encoder = Encoder(repr)
            encoder.buffers.append(b"")
            encoder.buffers[0] = json.dumps([encoder.encode(case)]).encode()
            target = worker.handle_of(worker.namespace[name])
            about = {"target": target, "names": ["a", "b"], "forbids": forbids, "seeds": None}
            ask_worker(worker, "cases", encoder.buffers, careful=False, **about)


def ask_worker(worker: Worker, op: str, buffers: tuple | list = (), **request: Any) -> None:
    """Have a worker answer one request; its reply is dropped."""
    request |= {"op": op, "id": "", "limit": 60.0, "drop": []}
    worker.answer_request(request, [memoryview(buffer) for buffer in buffers])
