"""Chapter 16's contest on a real table of VDJdb.

    python benchmarks/receptors_vdjdb.py PATH [OUT]

Reads a tab-separated table with the columns ``cdr3.beta`` and ``antigen.epitope``, scores three
readers on a random split and on one by similarity, three seeds each, and writes what the page shows
to ``attncourse/tasks/receptors_vdjdb.json``. Some minutes of one core for 10,000 receptors.
"""

import argparse
import json
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import torch

import attncourse
from attncourse.sequences import (
    balanced_accuracy,
    bootstrap_interval,
    similarity_clusters,
    split_by_similarity,
)
from attncourse.tasks.receptor_readers import (
    AttentionReader,
    KmerReader,
    NeighbourReader,
    ablated,
    best_of,
    near_copies,
    random_split,
    scored,
)
from attncourse.tasks.receptors import load_vdjdb

FLU = "GILGFVFTL"


def main(path: str, out: str | None = None) -> None:
    """Measure the readers on a table of VDJdb; write the results to ``out``."""
    torch.set_num_threads(1)
    table = load_vdjdb(path)
    rows = [i for i, sequence in enumerate(table.sequences) if sequence not in table.cross_reactive]
    sequences = [table.sequences[i] for i in rows]
    classes = sorted(set(table.epitopes))
    labels = np.array([classes.index(table.epitopes[i]) for i in rows])
    longest = max(map(len, sequences))
    begin = time.perf_counter()
    clusters = similarity_clusters(sequences)
    results = {
        "date": datetime.now(UTC).date().isoformat(),
        "command": "python benchmarks/receptors_vdjdb.py PATH",
        "rows": len(table.sequences) + table.duplicates + sum(table.dropped.values()),
        "dropped": sum(table.dropped.values()),
        "duplicates": table.duplicates,
        "cross_reactive": len(table.cross_reactive),
        "receptors": len(sequences),
        "classes": {c: int((labels == k).sum()) for k, c in enumerate(classes)},
        "clusters": len(clusters),
        "largest_cluster": max(map(len, clusters)),
        "seconds_to_cluster": round(time.perf_counter() - begin, 1),
        "near_copies": {},
        "scores": [],
    }
    tried = {
        "attention pooling": [
            AttentionReader(rate, 8, max_length=longest) for rate in (0.003, 0.01)
        ],
        "k-mers": [KmerReader(strength) for strength in (0.03, 0.1, 0.3)],
        "nearest neighbours": [NeighbourReader(t) for t in (0.1, 0.3, 1.0)],
    }
    train, _ = split_by_similarity(sequences)
    training_sequences = [sequences[i] for i in train]
    chosen = {
        name: best_of(all_, training_sequences, labels[train], len(classes))
        for name, all_ in tried.items()
    }
    for seed in range(3):
        splits = {
            "random": random_split(len(sequences), seed=seed),
            "similarity": split_by_similarity(sequences, seed=seed),
        }
        for kind, split in splits.items():
            sides = [[sequences[i] for i in side] for side in split]
            results["near_copies"].setdefault(kind, []).append(near_copies(sides[1], sides[0]))
            decisions = {}
            for name, reader in chosen.items():
                if name == "attention pooling":
                    reader.seed = seed
                score = scored(reader, sequences, labels, split, len(classes))
                decisions[name] = score.decisions
                results["scores"].append(
                    {
                        "seed": seed,
                        "split": kind,
                        "reader": name,
                        "test": len(split[1]),
                        "balanced": score.balanced,
                        "balanced_interval": score.balanced_interval,
                        "area": score.area,
                        "area_interval": score.area_interval,
                    }
                )
                print(results["scores"][-1], flush=True)
            results.setdefault("attention_minus_kmers", []).append(
                {
                    "seed": seed,
                    "split": kind,
                    "interval": bootstrap_interval(
                        lambda y, p, q: balanced_accuracy(y, p) - balanced_accuracy(y, q),
                        labels[split[1]],
                        decisions["attention pooling"],
                        decisions["k-mers"],
                        rng=np.random.default_rng(0),
                    ),
                }
            )
        if FLU in classes:
            results.setdefault("motif", []).append(
                motif(chosen, sides[1], labels[split[1]], classes)
            )
    place = Path(out or Path(attncourse.__file__).parent / "tasks" / "receptors_vdjdb.json")
    place.write_text(json.dumps(rounded(results), indent=1) + "\n", encoding="utf-8")


def motif(chosen: dict, sequences: list[str], labels: np.ndarray, classes: list[str]) -> dict:
    """How many receptors bear the letters RS inside, and who points at them, of those of the flu.

    Pointing is having the highest place on either letter; chance is 2 letters of the length, and
    the middle points at the middle letter of every loop.
    """
    flu = labels == classes.index(FLU)
    inside = np.array([sequence.find("RS", 3, len(sequence) - 4) for sequence in sequences])
    bearing = flu & (inside >= 0)
    bearers = [sequence for sequence, bears in zip(sequences, bearing, strict=True) if bears]
    starts, answers = inside[bearing], labels[bearing]
    middle = np.eye(max(map(len, bearers)))[[len(sequence) // 2 for sequence in bearers]]
    attention, kmers = chosen["attention pooling"], chosen["k-mers"]

    def hits(weights: np.ndarray) -> float:
        top = weights.argmax(-1)
        return float(((top == starts) | (top == starts + 1)).mean())

    return {
        "share_of_flu": float((inside >= 0)[flu].mean()),
        "share_of_others": float((inside >= 0)[~flu].mean()),
        "receptors": len(bearers),
        "chance": float(np.mean([2 / len(sequence) for sequence in bearers])),
        "attention": hits(attention.weights(bearers)),
        "attention ablated": hits(ablated(attention, bearers, answers)),
        "k-mers": hits(kmers.weights(bearers, answers)),
        "the middle": hits(middle),
    }


def rounded(x):
    """The same with every float to four places."""
    if isinstance(x, dict):
        return {name: rounded(value) for name, value in x.items()}
    if isinstance(x, list | tuple):
        return [rounded(value) for value in x]
    return round(float(x), 4) if isinstance(x, float) else x


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("path", nargs="?", help="a table of VDJdb, which the course does not hold")
    options.add_argument("out", nargs="?", help="where to write, in place of the page's own data")
    chosen = options.parse_args()
    if chosen.path is None:
        print("receptors_vdjdb: left out, as it needs a table of VDJdb: name its path")
    elif not Path(chosen.path).is_file():
        options.error(f"there is no file {chosen.path}")
    else:
        main(chosen.path, chosen.out)
