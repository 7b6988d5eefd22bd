"""A page's kernel that parts from a process which has imported what pages do.

That takes two seconds of processor time, which some pages do not take themselves. A kernel must
part before its client talks to anybody: so it does first, and waits to be told what it is to be.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import multiprocessing
import os
import pickle
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from jupyter_cache.executors.basic import ExecutionWorkerLocalMProc, ProcessData
from jupyter_cache.executors.utils import single_nb_execution
from jupyter_client.provisioning import local_provisioner
from nbformat import NotebookNode
from output_cache import OutputCache

MALLOPT = {"MALLOC_MMAP_THRESHOLD_": -3, "MALLOC_TRIM_THRESHOLD_": -1}  # numbers of malloc.h
LOST = "Lost kernel: "  # with which its line in the log begins
RAISES_EXCEPTION_TAG = "raises-exception"  # nbclient's tag for a cell that may end in an error
# PyTorch's optimizers and some of its operations load its compiler, which takes 1.5 s: six pages of
# the book would. Where no more than these are to run, each that needs it loads it itself.
FEW_PAGES = 3
BACKEND = "module://matplotlib_inline.backend_inline"  # as a kernel sets it before a page imports


def workers(pages: list[str]) -> multiprocessing.pool.Pool:
    """Return a pool of a process a core; where they can, kernels are forked from them."""
    parting = sys.platform == "linux"
    if parting:
        os.environ["MPLBACKEND"] = BACKEND
        package = any("from attncourse" in Path(page).read_text(encoding="utf-8") for page in pages)
        imported = ["ipykernel.kernelapp"]
        if package:
            imported += ["torch", "matplotlib.pyplot"]
        if package and len(pages) > FEW_PAGES:
            imported.append("torch._dynamo")
        for name in imported:
            importlib.import_module(name)
        gc.freeze()  # no kernel has to go through what is imported
    method = multiprocessing.get_context("fork" if parting else "spawn")
    return method.Pool(maxtasksperchild=1)


class PartedWorker(ExecutionWorkerLocalMProc):
    """Runs a page in a kernel that parts from this process, where it can."""

    def __call__(self, data: ProcessData) -> tuple[int, str, str]:
        """Run a page; return jupyter-cache's status, the page, and what became of it.

        The build does not ask the cache itself while pages run: a process that parts from it in
        the middle of a read takes SQLite's count of readers along, and finds the database locked
        for as long as it lives.
        """
        status, uri = super().__call__(data)
        return status, uri, cast(OutputCache, data.cache).outcome_of(uri)

    @staticmethod
    def execute(project_nb, data):
        """Run a notebook in a kernel that is forked, where that is possible."""
        kernel = None
        if sys.platform == "linux":
            kernel = KernelProcess()
            vars(local_provisioner)["launch_kernel"] = kernel.begin
        try:
            with checks_that_may_fail(project_nb.nb) as page:
                return single_nb_execution(
                    page,
                    cwd=str(Path(project_nb.uri).parent),
                    timeout=data.timeout,
                    allow_errors=data.allow_errors,
                    coalesce_streams=True,  # a line that is sent in two parts stands in one row
                )
        except Exception as error:
            ended = f"; {kernel.ending()}" if kernel else ""
            error_text = " ".join(f"{type(error).__name__}: {error}".split())
            print(f"\n{LOST}{project_nb.uri}: {error_text}{ended}", file=sys.stderr, flush=True)
            raise


@contextmanager
def checks_that_may_fail(page: NotebookNode) -> Iterator[NotebookNode]:
    """Give the page to a block whose run goes on where a sentence does not hold here.

    `prose_numbers.py` reports it. A reader elsewhere still gets the book. Afterwards the page is
    tagged as before, since its outputs are kept, and found again, by its cells and their tags.
    """
    from attncourse.figures.prose_numbers import (
        PROSE_TAG,  # with matplotlib, which asks for BACKEND
    )

    checks = [cell for cell in page.cells if PROSE_TAG in cell.metadata.get("tags", [])]
    for cell in checks:
        cell.metadata["tags"].append(RAISES_EXCEPTION_TAG)
    try:
        yield page
    finally:
        for cell in checks:
            cell.metadata["tags"].remove(RAISES_EXCEPTION_TAG)


class KernelProcess:
    """A process that becomes a kernel, as jupyter_client knows one: like `subprocess.Popen`."""

    stdin = stdout = stderr = None

    def __init__(self):
        reads, self.writes = os.pipe()
        self.pid = os.fork()
        self.returncode: int | None = None
        if not self.pid:
            try:
                os.close(self.writes)
                with open(reads, "rb") as request_file:
                    become_kernel(*pickle.load(request_file))
            except BaseException:
                traceback.print_exc()
            os._exit(1)
        os.close(reads)
        os.setpgid(self.pid, self.pid)  # jupyter_client ends a kernel with all of its group

    def begin(self, command: list[str], cwd: str, env: dict[str, str], **_) -> KernelProcess:
        """Tell the forked process what to run; return it as the kernel's process."""
        request = command[command.index("-f") :], cwd, env
        with open(self.writes, "wb") as place:
            pickle.dump(request, place)
        return self

    def wait(self, options: int = 0) -> int | None:
        """Return the exit status once the process has ended."""
        if self.returncode is None:
            ended, status = os.waitpid(self.pid, options)
            self.returncode = os.waitstatus_to_exitcode(status) if ended else None
        return self.returncode

    def ending(self) -> str:
        """Return how the process ended, in words."""
        status = self.poll()
        if status is None:
            return "its process is still there"
        if status < 0:
            name = signal.Signals(-status).name
            return f"{name} ended its process" + (" (no memory left?)" if name == "SIGKILL" else "")
        return f"its process ended with status {status}"

    def poll(self) -> int | None:
        """Return the exit status; None while the process runs."""
        return self.wait(os.WNOHANG)

    def send_signal(self, number: int) -> None:
        """Send the process a signal while it runs."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask the process to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End the process."""
        self.send_signal(signal.SIGKILL)


def become_kernel(options: list[str], cwd: str, env: dict[str, str]) -> None:
    """Run a kernel until it ends; from this on nothing is as it was but what is imported."""
    from ipykernel.kernelapp import launch_new_instance

    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    keep_memory()
    tools_folder = str(Path(__file__).resolve().parent)
    sys.path = [
        place for place in sys.path if place != tools_folder
    ]  # no tool is a page's to import
    sys.argv = ["ipykernel_launcher", *options, f"--IPKernelApp.parent_handle={os.getppid()}"]
    launch_new_instance()
    os._exit(0)


def keep_memory() -> None:
    """Tell this process how to keep memory: a forked one does not read the setting again."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # not in every C library
    if mallopt:
        for name, number in MALLOPT.items():
            mallopt(number, int(os.environ[name]))
