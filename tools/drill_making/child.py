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

LONGEST = 300.0  # seconds for one call: native code cannot always be interrupted
ROOM = 2 * 2**30  # bytes of memory that a child may take, beside those it is born with
OWN_MEMORY = Path("/proc/self/statm")  # in pages; where there is none, memory has no limit
FORK = multiprocessing.get_context("fork")  # what is imported and drawn already comes along


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
            if not self._connection.poll(LONGEST):
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
        self._connection, theirs = FORK.Pipe()
        self._process = FORK.Process(
            target=answer_calls, args=(self.function, theirs, self._connection), daemon=True
        )
        self._process.start()
        theirs.close()

    def _stop(self) -> None:
        if self._process is None:
            return
        self._connection.close()
        self._process.kill()
        self._process.join()
        self._process = self._connection = None


def answer_calls(function: Callable, connection: Connection, parents: Connection) -> None:
    """Call the function with what comes, and send back its result, until the parent is gone."""
    parents.close()  # or this end would be kept open by the child itself
    limit_memory()
    while True:
        try:
            arguments = connection.recv()
        except EOFError:
            return
        began = time.process_time()
        try:
            said = True, function(*arguments)
        except Exception as error:
            said = False, f"{type(error).__name__}: {error}"
        try:
            connection.send((*said, time.process_time() - began))
        except ConnectionError:
            return


def limit_memory() -> None:
    """Let this process run out of memory, not the machine: changed code may make endless lists."""
    if OWN_MEMORY.exists():
        pages = int(OWN_MEMORY.read_text(encoding="utf-8").split()[0])
        most = pages * resource.getpagesize() + ROOM
        resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
