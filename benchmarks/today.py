"""Chapter 21's kept results, made anew.

    python benchmarks/today.py                 all of it, an hour or two of one core
    python benchmarks/today.py norms memory    some contests; the others stay as they are
    python benchmarks/today.py some_keys       the real model with fewer keys
    python benchmarks/today.py --workers 4     contestants side by side, a core for each

Writes ``attncourse/data/today.json``, contest by contest: every run, with its seed and rate. What
is kept already is not run again. What is kept as ``roofline`` is ``roofline_gpu.py``'s.
"""

import argparse
import datetime
import json
import platform
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from hashlib import sha256
from importlib.metadata import version
from multiprocessing import get_context
from operator import itemgetter
from pathlib import Path

import torch

from attncourse.pretrained.model import load
from attncourse.tasks import some_keys, variant_contests
from attncourse.tasks.variant_tasks import NextLetters

ROOT = Path(__file__).parent.parent
KEPT = ROOT / "attncourse" / "data" / "today.json"


def chapters_text() -> str:
    """The sources of the book's first twenty chapters, code and all."""
    paths = [*sorted((ROOT / "book").glob("[01]?_*.md")), ROOT / "book" / "20_serving.md"]
    return "\n".join(path.read_text(encoding="utf-8").split("---", 2)[2] for path in paths)


def description(text: str) -> str:
    """Return which text this is: its length, and the beginning of its hash."""
    digest = sha256(text.encode()).hexdigest()[:16]
    return f"the sources of chapters 1 to 20, {len(text):,} letters, SHA-256 {digest}"


def about(texts: dict[str, str], machine: str) -> dict[str, str | dict[str, str]]:
    """Return where what is kept comes from; texts: what each contest on letters has read."""
    return {
        "date": datetime.date.today().isoformat(),
        "texts": texts,
        "licence": "MIT",
        "machine": machine,
        "versions": f"Python {platform.python_version()}, torch {version('torch')}",
        "command": "python benchmarks/today.py",
    }


def main() -> None:
    """Run the contests that were asked for and keep their results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("contests", nargs="*")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--machine", default="one core", help="what it ran on, to be kept")
    parser.add_argument("--to", type=Path, default=KEPT)
    options = parser.parse_args()
    text, began = chapters_text(), time.monotonic()
    every = variant_contests.contests(text)
    names = options.contests or [*every, "some_keys"]
    if "some_keys" in names:
        names.remove("some_keys")
        keep(options.to, {"some_keys": measured_with_the_model()}, about({}, options.machine))
    runs = kept_runs(options.to, names)
    done = {(name, run["contestant"]) for name, rows in runs.items() for run in rows}
    to_run = [name for name in runs if any((name, one) not in done for one in every[name].builds)]
    on_letters = [name for name in to_run if isinstance(every[name].task, NextLetters)]
    origin = about(dict.fromkeys(on_letters, description(text)), options.machine)
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        waiting = {
            pool.submit(variant_contests.run_together, name, future, text, every[name].rates): name
            for name in runs
            for future in every[name].builds
            if (name, future) not in done
        }
        for future in as_completed(waiting):
            found = future.result()
            runs[waiting[future]] += found
            keep(options.to, sorted_runs(runs), origin)
            spent = time.monotonic() - began
            print(f"{spent:4.0f} s: {waiting[future]}, {found[0]['contestant']}", flush=True)


def kept_runs(path: Path, names: list[str]) -> dict[str, list[dict]]:
    """The runs that the file holds already, by contest."""
    before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {name: list(before.get(name, [])) for name in names}


def measured_with_the_model() -> dict:
    """The real model with fewer keys, by text."""
    torch.set_num_threads(1)
    return {
        "made": datetime.date.today().isoformat(),
        "texts": some_keys.measure_some_keys(*load()),
    }


def sorted_runs(runs: dict[str, list[dict]]) -> dict[str, list[dict]]:
    """The runs of each contest in an order that does not depend on who ended first."""
    by = itemgetter("contestant", "rate", "seed")
    return {name: sorted(runs_of_name, key=by) for name, runs_of_name in runs.items()}


def keep(path: Path, results: dict, origin: dict) -> None:
    """Write the file, a line for each run; parts that were not run stay, and what they had read."""
    before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    texts = before.get("about", {}).get("texts", {}) | origin["texts"]
    text = json.dumps(
        before | {"about": origin | {"texts": texts}} | results,
        ensure_ascii=False,
        separators=(",", ":"),
    )
    path.write_text(text.replace('},{"contestant"', '},\n{"contestant"') + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
