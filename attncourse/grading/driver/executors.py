"""Where submissions run: in lanes of this machine, or on a Dask cluster.

A cluster's workers hold the lanes, and this process only sends and collects.
"""

from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

from attncourse.grading.errors import UserError
from attncourse.grading.machine import choose_lanes

SCHEDULER_SECONDS = 10  # seconds for a scheduler to answer


@contextmanager
def open_executor(lanes: int = 0, dask: str | None = None) -> Iterator[tuple[Executor, int]]:
    """Yield an executor and how many submissions it grades at a time.

    ``lanes`` says how many, 0 as many as the machine has room for. Leaving the block by an
    exception ends what is still running.
    """
    if dask is not None:
        with open_cluster(dask) as opened:
            yield opened
        return
    from attncourse.grading.judge.lanes import LANES

    lanes = lanes or choose_lanes(0)
    pool = ThreadPoolExecutor(lanes, thread_name_prefix="lane")
    try:
        yield pool, lanes
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        LANES.end_all()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def open_cluster(address: str) -> Iterator[tuple[Executor, int]]:
    """Yield an executor on the cluster, and how many submissions it grades at a time.

    A submission whose worker dies is run again on another; the cluster itself gives up on one
    that has taken several workers with it, which then counts as a failure.
    """
    try:
        from distributed import Client
    except ImportError:
        raise UserError("--dask needs dask.distributed: pip install 'attncourse[dask]'") from None
    try:
        client = Client(address, timeout=SCHEDULER_SECONDS, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as problem:
        raise UserError(
            f"no Dask scheduler answers at {address} ({problem_line(problem)}): "
            "start one with `dask scheduler`, and workers with `dask worker`"
        ) from None
    try:
        lanes = require_workers(client, address)
        client.register_plugin(lane_plugin(), name="attncourse-lanes")
        yield client.get_executor(pure=False, retries=1), lanes
    finally:
        with suppress(Exception):  # a scheduler that is gone has nothing to be told
            client.close(timeout=2)


def require_workers(client: Any, address: str) -> int:
    """Return the cluster's number of threads; raise ``UserError`` if none of them can grade."""
    threads = sum(client.nthreads().values())
    if not threads:
        raise UserError(f"the scheduler at {address} has no workers: start some with `dask worker`")
    versions = client.run(package_version, on_error="return")
    for worker, answer in versions.items():
        if answer != package_version():
            raise UserError(
                f"the Dask worker {worker} cannot grade: expected attncourse {package_version()}, "
                f"got {problem_line(answer)}; install the same package on every worker"
            )
    return threads


def package_version() -> str:
    """Return the installed package's version; a worker without it raises an error that says so."""
    import attncourse.grading.judge.judge  # noqa: F401
    from attncourse import __version__

    return __version__


def lane_plugin() -> Any:
    """Return a plugin for Dask's workers: one that is closed ends its lanes first."""
    from distributed import WorkerPlugin

    class LanesPlugin(WorkerPlugin):
        """Ends the lanes of a Dask worker with the worker."""

        def teardown(self, worker: Any) -> None:
            """End all lanes of this process."""
            from attncourse.grading.judge.lanes import LANES

            LANES.end_all()

    return LanesPlugin()


def problem_line(problem: Any) -> str:
    """Return the first line of a problem's message, or its class if it has none."""
    lines = str(problem).splitlines()
    return lines[0] if lines else type(problem).__name__
