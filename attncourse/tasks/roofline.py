"""Chapter 20: operations and bytes of reading and of writing, and what they take.

A pass over a batch multiplies every token by every matrix and reads every matrix once, however many
tokens there are. Its *intensity* is operations a byte; what a machine does in a second is at most
the lesser of its peak and of intensity times bandwidth (the *roofline*).

Measured, by ``python benchmarks/serving.py roofline``: the seconds of ``MEASURED_PHASES`` on the
real model, one core, float32, the least of three passes each, against that core's own peaks of the
same run.
No GPU was at hand: what stands for the H100 is arithmetic with the numbers of its data sheet.
Sources: Williams et al. (2009), Roofline; NVIDIA, H100 Tensor Core GPU data sheet (SXM: 989 TFLOP/s
for dense BF16, 3.35 TB/s); Pope et al. (2023), Efficiently Scaling Transformer Inference.
"""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch

from attncourse.llama import Llama, LlamaConfig
from attncourse.tasks.lengths import machine

H100 = {"operations": 989e12, "bytes": 3.35e12}  # a second, by the data sheet
BEFORE = 128  # tokens of each sequence that lie in the cache when the next one is written


class Pass(NamedTuple):
    """``new`` tokens of each of ``batch`` sequences, behind ``before`` that lie in the cache."""

    new: int
    batch: int = 1
    before: int = 0


READING = tuple(Pass(n) for n in (4, 16, 64, 256, 512))
WRITING = tuple(Pass(1, batch, BEFORE) for batch in (1, 2, 4, 8, 16, 32, 64))
MEASURED_PHASES = {"reading": READING, "writing": WRITING}


def pass_work(config: LlamaConfig, shape: Pass, bytes_per_number: float = 4) -> dict[str, dict]:
    """Return operations and bytes of a pass, part by part.

    A product and a sum are two operations. Bytes are those of the matrices, read once, and of keys
    and values, read or written once; what goes from one part to the next stays near the processor
    and is left out, as are norms, rotations and softmax. Of the scores those count that no causal
    mask hides.
    """
    d, d_kv = config.d_model, config.n_kv_heads * config.d_model // config.n_heads
    tokens, all_tokens = shape.batch * shape.new, shape.batch * (shape.before + shape.new)
    pairs = shape.batch * sum(range(shape.before + 1, shape.before + shape.new + 1))
    numbers = {
        "projections": config.n_layers * 2 * d * (d + d_kv),
        "feed-forward": config.n_layers * 3 * d * config.d_ff,
        "table": d * config.n_vocab,
    }
    parts = {
        name: {"operations": 2 * tokens * many, "bytes": many * bytes_per_number}
        for name, many in numbers.items()
    }
    parts["attention"] = {
        "operations": config.n_layers * 4 * d * pairs,
        "bytes": config.n_layers * 2 * d_kv * all_tokens * bytes_per_number,
    }
    return parts


def total(parts: dict[str, dict]) -> tuple[float, float]:
    """Return all operations, all bytes."""
    operations, bytes_ = (sum(p[what] for p in parts.values()) for what in ("operations", "bytes"))
    return operations, bytes_


def bound(operations: float, moved: float, peaks: dict) -> dict:
    """Return the least milliseconds of a pass at these peaks, and by what it is bound."""
    seconds = {"arithmetic": operations / peaks["operations"], "memory": moved / peaks["bytes"]}
    by = max(seconds, key=seconds.__getitem__)
    return {"least_ms": round(1e3 * seconds[by], 5), "bound": by}


def roofline_points(config: LlamaConfig, peaks: dict, bytes_per_number: float = 4) -> list[dict]:
    """Return every pass of ``MEASURED_PHASES`` with its intensity and its bound on a machine."""
    rows = []
    for kind, passes in MEASURED_PHASES.items():
        for shape in passes:
            operations, moved = total(pass_work(config, shape, bytes_per_number))
            row = {"kind": kind, **shape._asdict(), "operations": operations, "bytes": moved}
            row["intensity"] = round(operations / moved, 3)
            rows.append(row | bound(operations, moved, peaks))
    return rows


# --- measured -------------------------------------------------------------------------------------


def seconds_of(call: Callable, times: int = 3) -> float:
    """Return the least seconds of this process's work in some calls after a first one."""
    call()
    seconds = []
    for _ in range(times):
        began = time.process_time()
        call()
        seconds.append(time.process_time() - began)
    return min(seconds)


def peaks(n: int = 2048, numbers: int = 2**26) -> dict:
    """Measure one core's operations a second in a matrix product, and bytes a second in a copy.

    The product is of two ``(n, n)``. A copy reads its bytes and writes as many.
    """
    x, y = torch.randn(2, n, n)
    source, target = torch.ones(2, numbers)
    return {
        "operations": 2 * n**3 / seconds_of(lambda: x @ y),
        "bytes": 2 * source.nbytes / seconds_of(lambda: target.copy_(source)),
    }


@torch.no_grad()
def passed(model: Llama, pass_shape: Pass, times: int = 3) -> float:
    """Return the seconds of a pass of this shape, on tokens drawn at random."""
    generator = torch.Generator().manual_seed(0)
    shape = (pass_shape.batch, pass_shape.before + pass_shape.new)
    ids = torch.randint(model.config.n_vocab, shape, generator=generator)
    cache = model(ids[:, : pass_shape.before], [])[1] if pass_shape.before else []
    return seconds_of(lambda: model(ids[:, pass_shape.before :], cache), times)


def measure_roofline(model: Llama, times: int = 3, longest: int = 2**20) -> dict:
    """Measure peaks, and each pass with its seconds, on this core and by arithmetic.

    ``longest`` leaves out passes of more tokens.
    """
    peaks_here = peaks()
    here = [
        row
        for row in roofline_points(model.config, peaks_here)
        if row["new"] * row["batch"] <= longest
    ]
    for row in here:
        row["ms"] = round(
            1e3 * passed(model, Pass(row["new"], row["batch"], row["before"]), times), 3
        )
    return {
        "machine": machine(),
        "peaks": {name: round(rate) for name, rate in peaks_here.items()},
        "here": here,
        "H100": {
            "peaks": H100,
            "arithmetic": roofline_points(model.config, H100, bytes_per_number=2),
        },
        "parts": {
            name: pass_work(model.config, shape)
            for name, shape in (("reading", Pass(256)), ("writing", Pass(1, 1, BEFORE)))
        },
    }


def roofline_columns(rows: Sequence[dict], kind: str, *names: str) -> tuple[list, ...]:
    """Return the numbers of these names, of one kind of pass, for a figure."""
    return tuple([row[name] for row in rows if row["kind"] == kind] for name in names)
