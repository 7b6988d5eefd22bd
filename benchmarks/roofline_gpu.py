"""Chapter 20's roofline on a GPU: what products of SmolLM2's sizes reach, in 16 bits.

    python benchmarks/roofline_gpu.py [FILE]

Prints JSON: the card, the bytes and operations a second that a copy and a large product reach, and
those of the products of a pass that writes or reads so many rows.
"""

import json
import sys
from pathlib import Path

import torch

# Rows and columns of the weights of a layer: queries, keys, values, output; gate, up, down.
SHAPES = ((576, 576), (576, 192), (576, 192), (576, 576), (576, 1536), (576, 1536), (1536, 576))
LARGE = ((8192, 8192),)  # weights of 134 MB: more than the cache of the chip holds


def seconds(work, times: int = 50) -> float:
    """Seconds of one call, the median of three rounds."""
    for _ in range(10):
        work()
    rounds = []
    for _ in range(3):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(times):
            work()
        end.record()
        torch.cuda.synchronize()
        rounds.append(begin.elapsed_time(end) / 1e3 / times)
    return sorted(rounds)[1]


def products(rows: int, shapes: tuple, layers: int) -> dict:
    """Attained bytes and operations a second of these products, of so many layers, as one graph."""
    kind = {"device": "cuda", "dtype": torch.bfloat16}
    weights = [torch.randn(shape, **kind) for _ in range(layers) for shape in shapes]
    x = {width: torch.randn(rows, width, **kind) for width in {w.shape[0] for w in weights}}
    graph = torch.cuda.CUDAGraph()
    for w in weights:
        x[w.shape[0]] @ w
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        for w in weights:
            x[w.shape[0]] @ w
    time = seconds(graph.replay, 10)
    size = sum(w.numel() for w in weights)
    moved = 2 * (size + rows * layers * sum(a + b for a, b in shapes))
    return {
        "rows": rows,
        "ms": round(1e3 * time, 4),
        "operations_a_second": round(2 * rows * size / time / 1e9) * 1e9,
        "bytes_a_second": round(moved / time / 1e9) * 1e9,
        "intensity": round(2 * rows * size / moved, 2),
    }


def main() -> None:
    """Print what a copy and products reach on this card, as JSON."""
    torch.manual_seed(0)
    a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    big = torch.empty(2**30, device="cuda", dtype=torch.uint8)
    other = torch.empty_like(big)
    results = {
        "card": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "peaks": {
            "operations": 2 * 8192**3 / seconds(lambda: a @ b, 10),
            "bytes": 2 * big.numel() / seconds(lambda: other.copy_(big), 10),
        },
        "SmolLM2's 30 layers": [products(n, SHAPES, 30) for n in (1, 4, 16, 64, 256, 512)],
        "8192 by 8192": [products(n, LARGE, 8) for n in (1, 4, 16, 64, 256, 512, 2048)],
    }
    text = json.dumps(results, indent=1)
    print(text)
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
