"""What pages keep of the real model for one sentence: before it is loaded, and chapter by chapter.

    python benchmarks/one_sentence.py

writes ``attncourse/data/one_sentence.json`` (half a minute of a core, and the real model): of the
live page's first example the next word and all maps, and for ``SENTENCE`` the probability of its
next word with a decision of each chapter undone. A last digit may differ from one processor to
another.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import torch
from undone import about  # beside this file

from attncourse.circuits import without_edges, without_heads
from attncourse.figures.moving.real_model import EXAMPLE_PROMPTS
from attncourse.llama import Llama
from attncourse.milestones.undone import ROWS, undone
from attncourse.pretrained.byte_pairs import BytePairs
from attncourse.pretrained.model import load
from attncourse.tasks.explored import explored

DATA = Path(__file__).resolve().parent.parent / "attncourse" / "data" / "one_sentence.json"
SENTENCE, ANSWER = "The capital of France is", " Paris"
COUNTRY, LAST = 3, 4  # tokens of the sentence
HEAD = (23, 4)
BARS = 8
# For each chapter: what is undone, in words, and the row of chapter 18's table or one of our own.
UNDONE = {
    "kqv": ("queries and keys exchanged", "queries and keys exchanged"),
    "scoring": ("all scores alike", "uniform weights"),
    "scaling": ("scores not divided", "no scale"),
    "multihead": ("head 23.4 off, of 270", "head"),
    "masking": ("no causal mask", "no causal mask"),
    "positions": ("no positions", "no positions"),
    "transformer": ("layer norm for RMS norm", "the mean taken off too"),
    "gpt": ("temperature 2", "temperature"),
    "interpret": ("23.4: “is” cut from “France”", "edge"),
    "efficient": ("first word hidden from the last", "window"),
}


def next_word(model: Llama, words: BytePairs, text: str) -> list[list]:
    """Return id, text and probability of the likeliest pieces after a text."""
    with torch.no_grad():
        chances = model(words.encode(text))[-1].softmax(-1)
    best = chances.topk(BARS)
    return [
        [i, words.decode([i]), round(p, 4)]
        for i, p in zip(best.indices.tolist(), best.values.tolist(), strict=True)
    ]


@contextmanager
def changed(model: Llama, what: str) -> Iterator[None]:
    """Undo one decision for a while; a temperature changes nothing in the model."""
    all_heads = [(layer, h) for layer in range(30) for h in range(9)]
    rows = {row.name: row for row in ROWS}
    ways = {
        "head": lambda: without_heads(model, [HEAD]),
        "edge": lambda: without_edges(model, {HEAD: [(LAST, COUNTRY)]}),
        "window": lambda: without_edges(model, {head: [(LAST, 0)] for head in all_heads}),
        "temperature": nullcontext,
    }
    with ways[what]() if what in ways else undone(rows[what], model):
        yield


def chances_of_answer(model: Llama, words: BytePairs) -> dict:
    """Return the probability of the answer as it is, and with each chapter's decision undone."""
    ids, (answer,) = words.encode(SENTENCE), words.encode(ANSWER).tolist()
    with torch.no_grad():
        whole = model(ids)[-1].softmax(-1)[answer].item()
        rows = {}
        for stem, (said, what) in UNDONE.items():
            with changed(model, what):
                logits = model(ids)[-1] / (2 if what == "temperature" else 1)
            chances = logits.softmax(-1)
            best = int(chances.argmax())
            rows[stem] = {
                "undone": said,
                "p": round(chances[answer].item(), 4),
                "first": [words.decode([best]), round(chances[best].item(), 4)],
            }
    return {"text": SENTENCE, "answer": ANSWER, "p": round(whole, 4), "undone": rows}


def main() -> None:
    """Write what pages keep of the real model for one sentence."""
    torch.set_num_threads(1)
    model, words = load()
    maps = explored(model, words, EXAMPLE_PROMPTS[0])
    first = {
        "text": EXAMPLE_PROMPTS[0],
        "ids": words.encode(EXAMPLE_PROMPTS[0]).tolist(),
        "pieces": maps["tokens"],
        "maps": maps["maps"],
        "next": next_word(model, words, EXAMPLE_PROMPTS[0]),
    }
    said = about() | {"command": "python benchmarks/one_sentence.py"}
    record = {"about": said, "first": first, "answer": chances_of_answer(model, words)}
    DATA.write_text(json.dumps(record, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")
    print(f"{DATA.name}: {DATA.stat().st_size / 1e3:.0f} kB")
    for stem, row in record["answer"]["undone"].items():
        print(f"{stem:12} {row['p']:.3f} {row['undone']}; first {row['first']}")


if __name__ == "__main__":
    main()
