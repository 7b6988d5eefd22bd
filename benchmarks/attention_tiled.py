"""Tiled attention against the library's, in one run on one core.

python benchmarks/attention_tiled.py [n]
"""

import statistics
import sys
import time
from functools import partial

import torch
from torch.nn import functional as F

from attncourse.efficient import tiled_attention
from attncourse.kqv import scaled_dot_product_attention
from attncourse.tasks.lengths import D_HEAD, machine

ROUNDS = 9


def main(n: int) -> None:
    """Print the seconds that each method takes for n tokens."""
    torch.set_num_threads(1)
    print(", ".join(machine().values()), f"\nn = {n}, one head of {D_HEAD}, float32, forward")
    inputs = [torch.randn(1, 1, n, D_HEAD) for _ in range(3)]
    methods = {"library": F.scaled_dot_product_attention, "naive": scaled_dot_product_attention}
    methods |= {f"block {b}": partial(tiled_attention, block=b) for b in (128, 256, 512, 1024)}
    times = {name: [] for name in methods}
    with torch.no_grad():
        for _ in range(ROUNDS):  # in turn, so that a slow moment of the machine hits all of them
            for name, attend in methods.items():
                began = time.process_time()
                attend(*inputs)
                times[name].append(time.process_time() - began)
    print(f"{'median of ' + str(ROUNDS):12} {'ms':>7} {'× library':>10}")
    for name, seconds in times.items():
        pairs = zip(seconds, times["library"], strict=True)
        ratio = statistics.median(a / b for a, b in pairs)
        print(f"{name:12} {1e3 * statistics.median(seconds):7.0f} {ratio:10.2f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 4096)
