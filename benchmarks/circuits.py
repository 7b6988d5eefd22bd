"""Chapter 19's kept results, made anew with the real model.

    python benchmarks/circuits.py                 all of it, half an hour of one core
    python benchmarks/circuits.py --only sinks    one experiment; the others stay as they are
    python benchmarks/circuits.py --maps          the explorer's maps alone

Writes ``attncourse/data/circuits.json`` and ``book/assets/real_heads.js``.
"""

import argparse
import datetime
import json
import platform
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from attncourse.pretrained.model import FILE, NAME, VERSION, load
from attncourse.tasks import explored, facts, professions, pronoun_heads, said_twice, sinks

ROOT = Path(__file__).parent.parent
KEPT = ROOT / "attncourse" / "data" / "circuits.json"
MAPS = ROOT / "book" / "assets" / "real_heads.js"
EXPERIMENTS = {
    "professions": lambda model, words: professions.measure_professions(model, words),
    "facts": lambda model, words: facts.measure_facts(model, words),
    "said_twice": lambda model, words: said_twice.measure_repeats(model),
    "sinks": lambda model, words: sinks.measure_sinks(model, words),
    "pronouns": lambda model, words: pronoun_heads.measure_pronoun_heads(model, words),
}


def about() -> dict[str, str]:
    """Where what is kept comes from."""
    return {
        "date": datetime.date.today().isoformat(),
        "model": f"SmolLM2-135M-Instruct, {FILE.name} of {NAME} {VERSION}",
        "licence": "Apache 2.0 (the model), MIT (the texts and results)",
        "versions": f"Python {platform.python_version()}, torch {version('torch')}",
        "command": "python benchmarks/circuits.py",
    }


def script(model: Any, words: Any, sentences=explored.SENTENCES) -> str:
    """The maps as a script, which a page may load from a folder, too."""
    sizes = {"layers": len(model.blocks), "heads": model.config.n_heads}
    maps_kept = {
        "about": about(),
        **sizes,
        "sentences": [explored.explored(model, words, *sentence) for sentence in sentences],
    }
    return f"window.attncourseRealHeads = {json.dumps(maps_kept, separators=(',', ':'))};\n"


def main() -> None:
    """Run the experiments that were asked for and keep their results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=EXPERIMENTS, action="append")
    parser.add_argument("--maps", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    model, words = load()
    MAPS.write_text(script(model, words), encoding="utf-8")
    print(f"{MAPS.name}: {MAPS.stat().st_size / 1e3:.0f} kB", flush=True)
    results = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    keep(results | {"about": about(), "explorer": first_sentence(model, words)})
    for name, measured in EXPERIMENTS.items():
        if options.maps or (options.only and name not in options.only):
            continue
        began = time.process_time()
        results = json.loads(KEPT.read_text(encoding="utf-8"))
        keep(results | {"about": about(), name: measured(model, words)})
        print(f"{name}: {time.process_time() - began:.0f} s", flush=True)
    print(f"{KEPT.name}: {KEPT.stat().st_size / 1e3:.0f} kB", flush=True)


def first_sentence(model: Any, words: Any) -> dict:
    """What the explorer shows before its script has come, and where there is none."""
    return {
        "layers": len(model.blocks),
        "heads": model.config.n_heads,
        "one": explored.explored(model, words, *explored.SENTENCES[0]),
        "texts": [text for text, _, _ in explored.SENTENCES],
    }


def keep(what: dict) -> None:
    """Writes the file, a line for each part of it."""
    text = json.dumps(what, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    KEPT.write_text(text.replace('},{"', '},\n{"') + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
