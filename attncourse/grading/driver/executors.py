"""Where submissions run: in lanes of this machine, or on a cluster."""

from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager

from attncourse.grading.machine import choose_lanes


@contextmanager
def open_executor(jobs: int = 0, dask: str | None = None) -> Iterator[tuple[Executor, int]]:
    """An executor, and how many submissions it grades at a time.

    Leaving the block by an exception ends what is still running.
    """
    if dask is not None:
        from attncourse.grading.driver.cluster import open_cluster

        with open_cluster(dask) as opened:
            yield opened
        return
    from attncourse.grading.judge.lanes import cancel

    lanes = choose_lanes(jobs)
    pool = ThreadPoolExecutor(lanes, thread_name_prefix="lane")
    try:
        yield pool, lanes
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        cancel()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
