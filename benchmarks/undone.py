"""Chapter 18's kept results, made anew: decisions undone, bits a number, tokens a word, merges.

    python benchmarks/undone.py             all of it: some minutes of one core, and the real model
    python benchmarks/undone.py --merges    the merges for the moving figure alone

Writes ``attncourse/data/undone.json`` and ``attncourse/data/merges.json``.
"""

import datetime
import json
import math
import platform
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from attncourse.milestones.bits import (
    BITS,
    LANGUAGES,
    SCALE_GROUPS,
    bits_in_file,
    tokens_a_word,
    with_fewer_bits,
)
from attncourse.milestones.undone import BEGUN_TEXT, N_NEW_TOKENS, ROWS, TEXTS, nats, try_undone
from attncourse.pretrained.model import FILE, NAME, VERSION, load, model_file
from attncourse.support.gguf_file import read_gguf

DATA = Path(__file__).parent.parent / "attncourse" / "data"
MERGES = 6000  # of 48,900: the commonest
QUESTION = "What is the capital of France?"


def about() -> dict[str, str]:
    """Where what is kept comes from."""
    return {
        "date": datetime.date.today().isoformat(),
        "model": f"SmolLM2-135M-Instruct, {FILE.name} of {NAME} {VERSION}",
        "licence": "Apache 2.0 (the model and its words), MIT (the texts and results)",
        "versions": f"Python {platform.python_version()}, torch {version('torch')}, gguf "
        f"{version('gguf')}",
        "command": "python benchmarks/undone.py",
    }


def main() -> None:
    """Undo each decision in the real model, and keep what that costs."""
    torch.set_num_threads(1)
    keep("merges", {"about": about(), "merges": merges()})
    if "--merges" in sys.argv[1:]:
        return
    model, words = load()
    rows = []
    for row in ROWS:
        rows.append(try_undone(row, model, words))
        print(f"{rows[-1]['mean']:8.3f}  {row.name:32} {rows[-1]['writes']!r}", flush=True)
    question_ids = words.chat(QUESTION)
    answer = model.generate(question_ids, 40, stop=words.end)[len(question_ids) :]
    result = {
        "about": about(),
        "texts": {
            name: {"text": text, "tokens": len(words.encode(text))} for name, text in TEXTS.items()
        },
        "begun": BEGUN_TEXT,
        "new_tokens": N_NEW_TOKENS,
        "rows": rows,
        "bits": bits(model, words),
        "same_blocks_again": bits_in_file(model),
        "languages": [tokens_a_word(words, language) for language in LANGUAGES],
        "first_answer": {
            "question": QUESTION,
            "pieces": [words.decode([i]) for i in answer.tolist()],
        },
    }
    keep("undone", result)


def bits(model: Any, words: Any) -> list[dict[str, Any]]:
    """Nats a token over those of the file, by bits and by who shares a scale."""
    rows = []
    before = {name: nats(model, words, text) for name, text in TEXTS.items()}
    for shared in SCALE_GROUPS:
        for n in BITS:
            with with_fewer_bits(model, n, shared):
                after = {name: nats(model, words, text) for name, text in TEXTS.items()}
            more = {name: round(after[name] - before[name], 4) for name in TEXTS}
            mean = round(sum(more.values()) / len(more), 4)
            rows.append({"shared": shared, "bits": n, "more": more, "mean": mean})
            print(f"{mean:8.3f}  {n} bits, {shared} shares a scale", flush=True)
    return rows


def merges() -> list[str]:
    """The first merges of the model, each as its two parts with a blank between them."""
    return read_gguf(model_file()).field("tokenizer.ggml.merges")[:MERGES]


def keep(name: str, what: dict[str, Any]) -> None:
    """Writes a file of kept data; no number in it is NaN, which is no JSON."""
    path = DATA / f"{name}.json"
    lines = json.dumps(
        without_nan(what), ensure_ascii=False, indent=None if name == "merges" else 1
    )
    path.write_text(lines + "\n", encoding="utf-8")
    print(f"{path.name}: {path.stat().st_size / 1e3:.0f} kB", flush=True)


def without_nan(what: Any) -> Any:
    """The same with None in place of NaN."""
    if isinstance(what, dict):
        return {name: without_nan(value) for name, value in what.items()}
    if isinstance(what, list):
        return [without_nan(value) for value in what]
    return None if isinstance(what, float) and math.isnan(what) else what


if __name__ == "__main__":
    main()
