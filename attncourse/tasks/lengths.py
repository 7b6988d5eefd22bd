"""Time and memory of attention on this machine, each measurement in its own process.

A process that has once held a large tensor cannot tell how much a smaller one takes: its peak
memory never falls. So ``measure`` starts one Python, which imports torch once and forks a child for
each measurement; a child has its inputs, measures one method at one length, and is gone.

    python -m attncourse.tasks.lengths naive:4096 tiled:4096
    python -m attncourse.tasks.lengths --device cuda naive:4096
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from datetime import date
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from attncourse.efficient import linear_attention, tiled_attention, windowed_attention
from attncourse.kqv import scaled_dot_product_attention

D_HEAD, WIDTH, BLOCK = 64, 129, 512
METHODS: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "naive": scaled_dot_product_attention,
    "tiled": partial(tiled_attention, block=BLOCK),
    "windowed": partial(windowed_attention, width=WIDTH),
    "linear": linear_attention,
    "library": F.scaled_dot_product_attention,
}
MB = 1e6
PER_UNIT = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss


def peak_bytes(device: str) -> int:
    """Return the most memory that this process has held so far, there, in bytes."""
    if device == "cuda":
        return torch.cuda.max_memory_allocated()
    import resource  # not on Windows

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * PER_UNIT


def device_clock(device: str) -> float:
    """Return seconds of this process's work; of a GPU's, once all its work is done."""
    if device == "cuda":
        torch.cuda.synchronize()
        return time.perf_counter()
    return time.process_time()


def once(method: str, n: int, device: str = "cpu", least: float = 0.05) -> dict:
    """Return milliseconds of one call, forward, and the memory it took, on one head of n tokens.

    A short sequence first: what the process loads at its first call is no part of the cost. The
    next call shows the memory, and the time is the least of those after it, three or more, until
    ``least`` seconds are over.
    """
    torch.manual_seed(0)
    query, key, value = (torch.randn(1, 1, n, D_HEAD, device=device) for _ in range(3))
    attend, seconds = METHODS[method], []
    attend(*(x[..., :192, :] for x in (query, key, value)))
    with torch.no_grad():
        before = peak_bytes(device)
        attend(query, key, value)
        peak = peak_bytes(device) - before
        while len(seconds) < 3 or sum(seconds) < least:
            begin = device_clock(device)
            attend(query, key, value)
            seconds.append(device_clock(device) - begin)
    return {"method": method, "n": n, "ms": 1e3 * min(seconds), "peak_mb": peak / MB}


def measure(points: Iterable[tuple[str, int]], device: str = "cpu") -> list[dict]:
    """Return a row for each (method, n): method, n, ms and peak_mb (10⁶ bytes above the inputs)."""
    points_as_text = [f"{method}:{n}" for method, n in points]
    command = [sys.executable, "-m", __name__, "--device", device, *points_as_text]
    # A kernel of the book is told how to compute and to keep memory: here all is as it comes.
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("MALLOC_", "ATEN_"))}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=plain)
    if done.returncode:
        raise RuntimeError(f"no measurement: {done.stderr.strip().splitlines()[-1]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def lines_of(rows: Iterable[dict], what: str) -> dict[str, tuple[list[int], list[float]]]:
    """Return for each method the lengths and ``ms`` or ``peak_mb`` there."""
    lines: dict[str, tuple[list[int], list[float]]] = {}
    for row in rows:
        ns, numbers = lines.setdefault(row["method"], ([], []))
        ns.append(row["n"])
        numbers.append(row[what])
    return lines


def operators(call: Callable) -> set[str]:
    """Return the names of torch's operators that a call runs, without gradients."""
    names = set()

    class Seen(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            names.add(func.__name__.split(".")[0])
            return func(*args, **(kwargs or {}))

    with torch.no_grad(), Seen():
        call()
    return names


def machine(device: str = "cpu") -> dict[str, str]:
    """Return the label of a measurement: processor, how much of it, version and date."""
    gpu = device == "cuda"
    return {
        "machine": torch.cuda.get_device_name() if gpu else processor(),
        "cores": f"CUDA {torch.version.cuda}" if gpu else f"1 of {os.cpu_count()} cores",
        "torch": torch.__version__.split("+")[0],
        "date": date.today().isoformat(),
    }


def processor() -> str:
    """Return the name of the processor."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.split(":", 1)[1] for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return names[0].strip() if names else platform.processor() or platform.machine()


def in_a_fork(method: str, n: int, device: str) -> None:
    """Print one measurement, made in a process of its own."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        failed = 1
        try:
            print(json.dumps(once(method, n, device)), flush=True)
            failed = 0
        except Exception as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        finally:
            os._exit(failed)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        sys.exit(1)


def main() -> None:
    """Measure the methods and lengths that were asked for, and print them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("points", nargs="+", metavar="METHOD:TOKENS")
    arguments = parser.parse_args()
    torch.set_num_threads(1)  # also: a fork of a process with threads would hang
    for method in METHODS:  # on the CPU: a process that has begun to use a GPU must not fork
        once(method, 256, least=0)  # what is loaded at the first call is no part of the cost
    for point in arguments.points:
        method, n = point.split(":")
        in_a_fork(method, int(n), arguments.device)


if __name__ == "__main__":
    main()
