"""The word vectors of chapters 1, 3 and 4, made anew: rows of the real model's table.

    python benchmarks/word_vectors.py

writes ``attncourse/data/word_vectors.json`` (ten seconds of a core, and the real model). A word is
in it if it is one piece of the model's, with the space before it. From each row the mean of all
49,152 rows is taken off; then 576 numbers become 48, along the directions in which these words
differ most from that mean.
"""

import base64
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from undone import about  # beside this file

from attncourse.pretrained.byte_pairs import BytePairs
from attncourse.pretrained.model import model_file
from attncourse.support.gguf_file import GGUF, read_gguf

DATA = Path(__file__).resolve().parent.parent / "attncourse" / "data" / "word_vectors.json"
KEPT = 48
COURSE = """
    the man walked dog I am hungry my cat is small cute and fluffy she likes belly bites happy
    because it makes me like sushi rice bread fish water food eat eats ate drink thirsty tired
    angry sad good bad big large little walk walks run ran running bite book books read write
    walking horse bird mouse cow animal woman boy girl king queen child mother father son daughter
    brother sister friend doctor nurse teacher engineer he her him his they we you one two three
    four five six seven eight nine ten red green blue black white yellow house home car street
    city river tree flower hot cold young old Monday Sunday Paris London Rome France Italy England
    Germany Berlin soup pizza pasta meat milk coffee tea wine love humor science romance novel
    comedy romantic funny loves lives victim furry alive moving
"""
FREQUENT = """
    in of to be for on that with as an or are by can at from was not this have your their all will
    which do more other has about but out if so were also part them up who into these its some how
    when our may time under there than go over know people such been use help new what would need
    through work any had off most no many add used only first system get between where could health
    should well different every high world even form just make years set call see then result those
    way each effect while process during found art count long after return using lead fact test
    life very being own find understand right person back students both follow important does grow
    much before information level study great end start children might school within class often
    around made said show same too power research design again allow care less example down take
    day support human now state called point number build play though body did must plan common
    want including cell pass let social known real without environment public still change better
    hand another material report place learning interest present project list product feel light
    become energy open mean few keep others best include various name history create top home
    stand move among something look things large think air law group means control here family
"""


ASKED = "cat three Paris walked she sushi the"  # whose nearest word in all 576 numbers is kept


def vectors(file: GGUF, words: BytePairs) -> tuple[list[str], list[int], np.ndarray, float, dict]:
    """The words that are one piece, their ids, vectors ``(n, 48)``, the share of variance kept.

    Last, for some words, the nearest of the others in all 576 numbers, with its cosine.
    """
    from gguf import dequantize

    stored = file.tensors["token_embd.weight"]
    table = dequantize(stored.data, stored.tensor_type).reshape(-1, stored.shape[0])
    known = one_piece(words, [*COURSE.split(), *FREQUENT.split()])
    ids = [words.ids[f"Ġ{word}"] for word in known]
    X = table[ids] - table.mean(axis=0)  # (n, 576)
    _, size, directions = np.linalg.svd(X.astype(float), full_matrices=False)
    kept_directions = directions[:KEPT]
    largest = np.abs(kept_directions).argmax(axis=1)
    kept_directions = (
        kept_directions * np.sign(kept_directions[np.arange(KEPT), largest])[:, None]
    )  # a direction has no sign
    share = float((size[:KEPT] ** 2).sum() / (size**2).sum())
    return (
        known,
        ids,
        X @ kept_directions.T,
        share,
        {word: nearest(word, known, X) for word in ASKED.split()},
    )


def nearest(word: str, known: list[str], X: np.ndarray) -> tuple[str, float]:
    """The other word whose vector has the largest cosine with this one's."""
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    cosines = unit @ unit[known.index(word)]
    best = int(np.argsort(-cosines)[1])
    return known[best], round(float(cosines[best]), 3)


def one_piece(words: BytePairs, wanted: Sequence[str]) -> list[str]:
    """Return the words that are one token with a space before them."""
    return [word for word in dict.fromkeys(wanted) if f"Ġ{word}" in words.ids]


def main() -> None:
    """Write the word vectors that a page shows."""
    file = read_gguf(model_file())
    words = BytePairs.from_gguf(file)
    known, ids, word_directions, share, whole = vectors(file, words)
    half = word_directions.astype("<f2")
    origin = about() | {"command": "python benchmarks/word_vectors.py"}
    origin["licence"] = "Apache 2.0 (the model), MIT (the choice of words)"
    said = {"about": origin, "variance": round(share, 4), "whole": whole}
    said |= {"words": " ".join(known), "ids": " ".join(map(str, ids))}
    said["vectors"] = base64.b64encode(half.tobytes()).decode()
    DATA.write_text(json.dumps(said, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")
    left = [w for w in dict.fromkeys(COURSE.split()) if w not in known]
    print(f"{len(known)} words, {share:.1%} of their variance; no piece of their own: {left}")
    print(f"{DATA.name}: {DATA.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
