"""Chapter 20's kept results, made anew.

    python benchmarks/serving.py                    all of it, an hour of one core
    python benchmarks/serving.py pages cache_sizes  some parts; the others stay as they are
    python benchmarks/serving.py timed              the parts that need a quiet machine

Writes ``attncourse/data/serving.json``; each part says when it was made and how long it took.
"""

import argparse
import datetime
import json
import platform
import re
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from attncourse.pretrained.model import FILE, NAME, VERSION, load
from attncourse.tasks import (
    batches,
    cache_sizes,
    experts,
    fewer_bits,
    guesses,
    longer,
    pages,
    roofline,
)

ROOT = Path(__file__).parent.parent
KEPT = ROOT / "attncourse" / "data" / "serving.json"
WITHOUT_MODEL = {
    "cache_sizes": cache_sizes.cache_size_table,
    "pages": pages.measure_pages,
    "experts": experts.measure_experts,
    "letters": longer.letters_by_distance,
}
WITH_MODEL = {
    "batches": batches.measure_paddings,
    "bits": fewer_bits.measure_fewer_bits,
    "torn": longer.torn_texts,
    "guesses": guesses.measure_guesses,
    "long": lambda model, words: longer.bands_of(model, words.encode(prose())[:LONG]),
}
LONG = 9728  # tokens: three bands more than the model was made for
TIMED = {
    "roofline": lambda model, words: roofline.measure_roofline(model),
    "batches_timed": lambda model, words: batches.time_batches(model),
    "guesses_timed": guesses.time_drafts,
}
PARTS = (*WITHOUT_MODEL, *WITH_MODEL, *TIMED)


def prose(pages: str = "0[1-3]_*.md") -> str:
    """The text of the book's first pages, without settings, code and boxes."""
    paths = sorted((ROOT / "book").glob(pages))
    text = "\n".join(path.read_text(encoding="utf-8").split("---", 2)[2] for path in paths)
    text = re.sub(r"^(```+|:::+).*?^\1 *$", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"\n{3,}", "\n\n", re.sub(r"^\(.*\)=$", "", text, flags=re.MULTILINE))


def about() -> dict[str, str]:
    """Where what is kept comes from."""
    return {
        "date": datetime.date.today().isoformat(),
        "model": f"SmolLM2-135M-Instruct, {FILE.name} of {NAME} {VERSION}",
        "licence": "Apache 2.0 (the model), MIT (the texts and results)",
        "versions": f"Python {platform.python_version()}, torch {version('torch')}",
        "command": "python benchmarks/serving.py",
    }


def main() -> None:
    """Run the parts that were asked for and keep their results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, "timed"], metavar="PART",
                       help=", ".join([*PARTS, "timed"]))  # fmt: skip
    parts = parser.parse_args().parts or PARTS
    torch.set_num_threads(1)
    model_and_words: tuple[Any, ...] = ()
    for name in [part for part in PARTS if part in parts or (part in TIMED and "timed" in parts)]:
        if name not in WITHOUT_MODEL and not model_and_words:
            model_and_words = load()
        began = time.process_time()
        result = (WITHOUT_MODEL | WITH_MODEL | TIMED)[name](
            *(() if name in WITHOUT_MODEL else model_and_words)
        )
        seconds = round(time.process_time() - began, 1)
        made = {"date": datetime.date.today().isoformat(), "seconds": seconds}
        results = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
        keep(results | {"about": about(), name: {"made": made, **result}})
        print(f"{name}: {seconds} s", flush=True)
    print(f"{KEPT.name}: {KEPT.stat().st_size / 1e3:.0f} kB", flush=True)


def keep(what: dict) -> None:
    """Writes the file, a line for each part of it."""
    text = json.dumps(what, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    KEPT.write_text(text.replace('},{"', '},\n{"') + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
