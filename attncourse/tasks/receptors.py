"""T-cell receptors of chapter 16: simulated ones, whose motifs are known, and tables of VDJdb."""

import csv
import gzip
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from attncourse.sequences import ALPHABET
from attncourse.support.arrays import require_count

RECEPTOR_COLUMNS = ("cdr3.beta", "antigen.epitope")
LONGEST_RECEPTOR = 40  # letters; a longer loop is a mistake in the table
MOTIFS = {"virus A": ("RSS", "GQG"), "virus B": ("LAG", "SYE"), "virus C": ("TDR", "NWP")}


@dataclass(frozen=True)
class Repertoire:
    """Receptors, what each recognises, and where its motif begins (−1 where it has none)."""

    sequences: list[str]
    labels: np.ndarray
    starts: np.ndarray
    classes: tuple[str, ...]


def simulate_repertoire(
    n: int, seed: int = 0, planted: float = 0.8, copies: float = 0.0
) -> Repertoire:
    """Return n made-up receptors: a frame, random letters, in most of them a motif of their virus.

    Every loop is *CAS*, five to eleven letters and *F*, frequent letters three times as likely. A
    share ``planted`` of them bears one of its virus' two motifs of three letters, anywhere inside;
    the others are noise, as unlabelled ones would be. Viruses are unequally common: 1/2, 1/3, 1/6.
    A share ``copies`` are near-copies: an earlier receptor of the same virus with one letter, none
    of its motif, exchanged. Raises ``ValueError`` for a share outside 0 to 1.
    """
    require_count("n", n)
    for name, share in (("planted", planted), ("copies", copies)):
        if not 0 <= share <= 1:
            raise ValueError(f"{name}: expected a share from 0 to 1, got {share}")
    rng, classes = np.random.default_rng(seed), tuple(MOTIFS)
    common = np.array([3 if letter in "GSEQTLANPRY" else 1 for letter in ALPHABET], dtype=float)
    labels = rng.choice(len(classes), size=n, p=[1 / 2, 1 / 3, 1 / 6])
    sequences, starts = [], np.full(n, -1)
    for number, label in enumerate(labels):
        before = np.flatnonzero(labels[:number] == label)
        if copies and len(before) and rng.random() < copies:
            model = int(rng.choice(before))
            starts[number] = starts[model]
            sequences.append(near_copy(sequences[model], int(starts[model]), rng))
            continue
        inside = rng.choice(list(ALPHABET), size=rng.integers(5, 12), p=common / common.sum())
        if rng.random() < planted:
            motif = rng.choice(MOTIFS[classes[label]])
            start = int(rng.integers(len(inside) - len(motif) + 1))
            inside[start : start + len(motif)] = list(motif)
            starts[number] = len("CAS") + start
        sequences.append("CAS" + "".join(inside) + "F")
    return Repertoire(sequences, labels, starts, classes)


def near_copy(sequence: str, start: int, rng: np.random.Generator) -> str:
    """Return the receptor with one letter between *CAS* and *F* exchanged, none of its motif."""
    motif = range(start, start + 3) if start >= 0 else ()
    place = int(rng.choice([i for i in range(3, len(sequence) - 1) if i not in motif]))
    other = rng.choice([letter for letter in ALPHABET if letter != sequence[place]])
    return sequence[:place] + other + sequence[place + 1 :]


@dataclass(frozen=True)
class ReceptorTable:
    """The table that ``load_vdjdb`` reads: receptors and epitopes, and counts of what was left out.

    ``dropped`` counts the rows left out by reason; ``duplicates`` those that repeat a receptor with
    the same epitope, which are left out as well; ``cross_reactive`` are the receptors that are
    listed with several epitopes, which stay, once for each.
    """

    sequences: list[str]
    epitopes: list[str]
    dropped: Counter
    duplicates: int
    cross_reactive: dict[str, list[str]]


def load_vdjdb(path: str | Path) -> ReceptorTable:
    """Return the receptors of a table of VDJdb: tab-separated, one a row, gzip or plain.

    Rows without a loop or an epitope, with letters that are no amino acids, or with more than 40
    are dropped and counted. Raises ``ValueError`` for a file without the columns ``cdr3.beta`` and
    ``antigen.epitope``, and for one without a single receptor.
    """
    path, dropped, seen = Path(path), Counter(), {}
    duplicates = 0
    with open_text(path) as file:
        reader = csv.DictReader(file, delimiter="\t")
        missing = [name for name in RECEPTOR_COLUMNS if name not in (reader.fieldnames or ())]
        if missing:
            got = ", ".join((reader.fieldnames or ["nothing"])[:6])
            raise ValueError(
                f"{path.name}: expected columns {', '.join(RECEPTOR_COLUMNS)}, got {got[:120]}"
            )
        for row in reader:
            sequence, epitope = ((row[name] or "").strip().upper() for name in RECEPTOR_COLUMNS)
            reason = fault(sequence, epitope)
            if reason:
                dropped[reason] += 1
            elif (sequence, epitope) in seen:
                duplicates += 1
            else:
                seen[sequence, epitope] = None
    if not seen:
        raise ValueError(f"{path.name}: expected receptors, got none; dropped: {dict(dropped)}")
    listed: dict[str, list[str]] = {}
    for sequence, epitope in seen:
        listed.setdefault(sequence, []).append(epitope)
    several = {sequence: bound_to for sequence, bound_to in listed.items() if len(bound_to) > 1}
    sequences, epitopes = map(list, zip(*seen, strict=True))
    return ReceptorTable(sequences, epitopes, dropped, duplicates, several)


def open_text(path: Path):
    """Return the file as text, unpacked if it is gzip; bytes that are no UTF-8 become a mark."""
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    opened = gzip.open if packed else open
    return opened(path, "rt", encoding="utf-8-sig", errors="replace", newline="")


def fault(sequence: str, epitope: str) -> str:
    """Return why a row cannot be used, or ``""``."""
    if not sequence:
        return "no loop"
    if not epitope:
        return "no epitope"
    if not set(sequence) <= set(ALPHABET):
        return "letters that are no amino acids"
    return "longer than 40 letters" if len(sequence) > LONGEST_RECEPTOR else ""
