"""A child process that calls a function: changed code may end the process that runs it.

A change of a right answer can read or write past the end of an array in native code. That ends the
child, and the work goes on with the next change in another one.
"""

from __future__ import annotations

import multiprocessing
import resource
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

MAX_CALL_SECONDS = 300.0  # seconds for one call: native code cannot always be interrupted
MAX_EXTRA_BYTES = 2 * 2**30  # bytes of memory that a child may take, beside those it is born with
MEMORY_FILE = Path("/proc/self/statm")  # in pages; where there is none, memory has no limit
FORK_CONTEXT = multiprocessing.get_context("fork")  # what is imported and drawn already comes along


class ChildEnded(Exception):
    """The child process ended, or had to be ended, while it called the function."""


class Child:
    """Calls a function in a child process, which is started anew after it has ended.

    Arguments and results are pickled. ``seconds`` is the processor time of the calls so far.
    """

    def __init__(self, function: Callable):
        self.function = function
        self.seconds = 0.0
        self._process: Any = None
        self._connection: Any = None

    def __enter__(self) -> Child:
        """Return the child; its process starts with the first question."""
        return self

    def __exit__(self, *error: object) -> None:
        """End the process."""
        self._stop()

    def ask(self, *arguments: Any) -> Any:
        """Return what the function returns for these arguments.

        Raises ``ChildEnded`` where the process ends meanwhile, and ``RuntimeError`` with its text
        for an error that the function raises.
        """
        if self._process is None:
            self._start()
        try:
            self._connection.send(arguments)
            if not self._connection.poll(MAX_CALL_SECONDS):
                raise EOFError
            is_result, result, seconds = self._connection.recv()
        except (EOFError, ConnectionError) as error:
            self._stop()
            raise ChildEnded from error
        self.seconds += seconds
        if not is_result:
            raise RuntimeError(result)
        return result

    def _start(self) -> None:
        self._connection, child_end = FORK_CONTEXT.Pipe()
        self._process = FORK_CONTEXT.Process(
            target=answer_calls, args=(self.function, child_end, self._connection), daemon=True
        )
        self._process.start()
        child_end.close()

    def _stop(self) -> None:
        if self._process is None:
            return
        self._connection.close()
        self._process.kill()
        self._process.join()
        self._process = self._connection = None


def answer_calls(function: Callable, connection: Connection, parent_end: Connection) -> None:
    """Call the function with what comes, and send back its result, until the parent is gone."""
    parent_end.close()  # or this end would be kept open by the child itself
    limit_child_memory()
    while True:
        try:
            arguments = connection.recv()
        except EOFError:
            return
        began = time.process_time()
        try:
            answer = True, function(*arguments)
        except Exception as error:
            answer = False, f"{type(error).__name__}: {error}"
        try:
            connection.send((*answer, time.process_time() - began))
        except ConnectionError:
            return


def limit_child_memory() -> None:
    """Let this process run out of memory, not the machine: changed code may make endless lists."""
    if MEMORY_FILE.exists():
        pages = int(MEMORY_FILE.read_text(encoding="utf-8").split()[0])
        max_bytes = pages * resource.getpagesize() + MAX_EXTRA_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (max_bytes, resource.RLIM_INFINITY))
