"""What chapter 18 keeps of the real model: its answers word by word, and a column of its weights.

    python benchmarks/answers.py

writes ``attncourse/data/answers.json`` (a minute of a core, and the real model). The answers are
the likeliest words, so that they come out the same again; a last digit may differ from one
processor to another.
"""

import json
from pathlib import Path

import torch
from undone import about  # beside this file

from attncourse.llama import Llama
from attncourse.pretrained.byte_pairs import BytePairs
from attncourse.pretrained.model import load

DATA = Path(__file__).resolve().parent.parent / "attncourse" / "data" / "answers.json"
QUESTIONS = (
    "How many legs does a spider have?",
    "What is the capital of France?",
    "Who was the first person on the moon?",
    "Why is the sky blue?",
    "Write a sentence about a cat that likes belly rubs.",
    "What is 7 times 8?",
)
BEGINNINGS = (
    "My cat is small, cute, and fluffy. She",
    "The capital of France is",
    "How many legs does a spider have?",
)
OTHERWISE = "A"  # the other word with which the first answer could have begun
LONGEST, RIVALS = 40, 5


def answered(model: Llama, words: BytePairs, ids: torch.Tensor, stop: int | None) -> dict:
    """The likeliest continuation, with the probability of each piece and of its rivals."""
    whole = model.generate(ids, LONGEST, stop=stop)
    with torch.no_grad():
        chances = model(whole[:-1])[len(ids) - 1 :].softmax(-1)  # (n_new, n_vocab)
    new = whole[len(ids) :].tolist()
    if new[-1] == stop:
        new = new[:-1]
    rows = []
    for row in chances[: len(new)]:
        best = row.topk(RIVALS)
        rows.append(
            [
                [shown(words, i), round(p, 4)]
                for p, i in zip(*map(torch.Tensor.tolist, best), strict=True)
            ]
        )
    return {
        "pieces": [shown(words, i) for i in new],
        "written": [round(chances[t, i].item(), 4) for t, i in enumerate(new)],
        "chances": rows,
    }


def shown(words: BytePairs, number: int) -> str:
    """Return the text of one token."""
    return words.decode([number])


def kept(model: Llama, words: BytePairs) -> dict:
    """All that the chapter keeps, for these questions and beginnings."""
    column = model.blocks[0].feed_forward.W_down.weight[:32, 0]
    question_ids = words.chat(QUESTIONS[0])
    other = torch.cat([question_ids, words.encode(OTHERWISE)])
    return {
        "answers": [
            {"question": q} | answered(model, words, words.chat(q), words.end) for q in QUESTIONS
        ],
        "completions": [
            {"beginning": b} | answered(model, words, words.encode(b), None) for b in BEGINNINGS
        ],
        "template": words.decode(question_ids),
        "otherwise": words.decode(
            model.generate(other, LONGEST, stop=words.end)[len(question_ids) :]
        ),
        "column": [round(w, 5) for w in column.tolist()],
    }


def main() -> None:
    """Write what the model answers, and print it."""
    torch.set_num_threads(1)
    record = {"about": about() | {"command": "python benchmarks/answers.py"}} | kept(*load())
    DATA.write_text(json.dumps(record, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")
    for answer in record["answers"] + record["completions"]:
        print(answer.get("question") or answer["beginning"], "→", "".join(answer["pieces"]))
    print(f"{DATA.name}: {DATA.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
