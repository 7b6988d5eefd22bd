"""Chapter 16's drawings: a loop over a peptide, a query over letters, clusters and two splits."""

from attncourse.figures.diagram import Diagram, Drawings, beside

LOOP = "CASSIRSSYEQYF"
PEPTIDE = "GILGFVFTL"
RESIDUE_WEIGHTS = (0.02, 0.02, 0.02, 0.05, 0.1, 0.26, 0.22, 0.16, 0.06, 0.03, 0.02, 0.02, 0.02)
FAMILIES = ((58, 62, 4), (150, 52, 2), (246, 70, 5), (92, 158, 3), (196, 160, 2), (278, 166, 1))
TESTED = {"random": (1, 5, 8, 12, 16), "similarity": (11, 12, 13, 14, 15)}
AROUND = ((0, 0), (24, 10), (-20, 16), (10, -24), (-14, -20))


def reading() -> Drawings:
    """Draw the loop over its peptide, and how a network reads it."""
    return beside(loop(), model())


def loop() -> Diagram:
    """Draw a receptor's loop above a peptide in its groove, schematic."""
    picture = Diagram(
        "A loop over a peptide",
        f"Schematic. Above, a T-cell receptor with its loop CDR3, a bow of the letters {LOOP}. "
        f"Below, an infected cell shows a piece of a virus, the peptide {PEPTIDE}, held in a "
        "groove. The middle of the loop comes near the middle of the peptide.",
        height=330,
        width=300,
    )
    picture.text(150, 22, "T-cell receptor", bold=True, size=14)
    picture.path("M40,34h60v44h-60ZM200,34h60v44h-60Z", "key", filled=True)
    picture.path("M70,78v8M230,78v8", "key", thick=2)
    for k, letter in enumerate(LOOP):
        t = 0.07 + 0.86 * k / (len(LOOP) - 1)
        x = 70 * ((1 - t) ** 3 + 3 * t * (1 - t) ** 2) + 230 * (3 * t * t * (1 - t) + t**3)
        y = 78 * ((1 - t) ** 3 + t**3) + 236 * (3 * t * (1 - t))
        picture.path(f"M{x - 9:.0f},{y - 9:.0f}h18v18h-18Z", "key", thick=1)
        picture.text(x, y + 5, letter, size=13, bold=4 < k < 8)
    picture.text(150, 130, "loop CDR3", "key", size=13)
    for k, letter in enumerate(PEPTIDE):
        x = 62 + 22 * k
        picture.path(f"M{x - 10},232h20v20h-20Z", "value", filled=True)
        picture.text(x, 247, letter, size=13)
    picture.text(150, 226, "piece of a virus", "value", size=12)
    picture.path("M30,236v36h240v-36", "quiet", thick=2)
    picture.text(150, 292, "infected cell", size=14, bold=True)
    picture.text(150, 318, "schematic, not to scale", "quiet", size=12)
    return picture


def model() -> Diagram:
    """Draw the way from letters to a class: ids, blocks, one learned query, logits."""
    picture = Diagram(
        "From letters to a virus",
        "The letters of a loop become ids, n of them, then vectors, n by d, which one block lets "
        "read each other. One learned query shares out its attention over the letters; their "
        "values are blended into one vector of d numbers, and a linear layer scores each virus.",
        height=330,
        width=300,
    )
    ids = picture.box(75, 4, "ids", "(n)", width=150)
    block = picture.box(75, 70, "one block", "(n, d)", width=150)
    width = 20
    for k, (letter, weight) in enumerate(zip(LOOP, RESIDUE_WEIGHTS, strict=True)):
        x = 20 + width * k
        picture.path(f"M{x},{196 - 180 * weight:.0f}h16V196h-16Z", filled=True)
        picture.text(x + 8, 211, letter, size=13)
    pool = picture.box(75, 228, "blend", "(d)", width=150)
    out = picture.box(50, 292, "a score for each virus", width=200, height=30)
    picture.text(20, 140, "learned query:", "query", size=13, anchor="start", bold=True)
    picture.text(20, 156, "attention", size=13, anchor="start")
    picture.arrow(ids, block)
    picture.arrow((150, 112), (150, 136))
    picture.arrow((150, 215), (150, 228))
    picture.arrow(pool, out)
    return picture


def splits() -> Drawings:
    """Draw the same sequences split at random and by cluster."""
    return beside(*(cloud(kind) for kind in TESTED))


def cloud(kind: str) -> Diagram:
    """Draw families of near-copies, some sequences of which are test: filled squares."""
    title = "Random split" if kind == "random" else "Split by similarity"
    leaks = len(leaking(kind))
    picture = Diagram(
        title,
        f"Seventeen sequences as dots in six families of near-copies, joined by lines. Five are "
        f"test, drawn as filled squares. {leaks} of these are joined to one in train.",
        width=320,
        height=240,
    )
    picture.text(160, 18, title, bold=True, size=14)
    number = 0
    for x, y, size in FAMILIES:
        for k, (dx, dy) in enumerate(AROUND[:size]):
            if k:
                picture.path(f"M{x},{y}L{x + dx},{y + dy}", "quiet", thick=1)
        for dx, dy in AROUND[:size]:
            test = number in TESTED[kind]
            left, top = x + dx - 7, y + dy - 7
            if test:
                picture.path(f"M{left},{top}h14v14h-14Z", "query", filled=True, thick=2)
            else:
                picture.path(f"M{left},{top + 7}a7,7 0 1,0 14,0a7,7 0 1,0 -14,0", "key", thick=2)
            number += 1
    says = f"{leaks} of 5 tested have a near-copy in train"
    picture.text(160, 226, says, size=13)
    return picture


def leaking(kind: str) -> list[int]:
    """Return which test sequences share a family with one in train."""
    leaks, first = [], 0
    for *_, size in FAMILIES:
        members = range(first, first + size)
        tested = [i for i in members if i in TESTED[kind]]
        if len(tested) < size:
            leaks += tested
        first += size
    return leaks
