"""Chapter 14's drawings: two instruments for a head, and the two steps of an induction head."""

from attncourse.figures.diagram import Diagram, Drawings, beside

STORY = ("mary", "is", "small", ".")
ROW = (0.9, 0.05, 0.03, 0.02)  # of the full stop, in the head that is drawn
SEQUENCE = ("7", "2", "9", "4", "7")
ASKS, FOLLOWS = 4, 1  # the second 7, and the 2 that came behind the first


def instruments() -> Drawings:
    """Draw a head's row of weights against a pattern, and a head that hands zeros to W_o."""
    score = Diagram(
        "Where does it look?",
        "Four words, mary is small and a full stop. From the full stop lines lead back to the "
        "others, a thick one to mary. A pattern marks mary. The score is the weight that falls on "
        "the mark, 0.90.",
        height=226,
    )
    score.text(170, 18, "a  where does it look?", bold=True)
    places = [score.box(8 + 82 * j, 74, word, width=72) for j, word in enumerate(STORY)]
    for j, weight in enumerate(ROW[:-1]):
        x = 44 + 82 * j
        score.path(
            f"M290,70C290,{30 + 8 * j} {x},{30 + 8 * j} {x},72", "query", thick=0.8 + 5 * weight
        )
    score.text(8, 140, "weights of “.”", "quiet", size=12, anchor="start")
    for j, weight in enumerate(ROW):
        score.text(44 + 82 * j, 160, f"{weight:.2f}", size=14, bold=j == 0)
    score.text(8, 184, "pattern: the character", "key", size=12, anchor="start")
    for j in range(len(places)):
        score.text(44 + 82 * j, 204, "True" if j == 0 else "–", "key", size=14, bold=j == 0)
    score.text(170, 222, f"score = {ROW[0]:.2f}", bold=True)
    worth = Diagram(
        "What is it worth?",
        "Three heads hand their features, d head each, to W o. The middle one is crossed out and "
        "hands over zeros. The loss rises from what it was: that rise is what the head is worth.",
        height=226,
    )
    worth.text(170, 18, "b  what is it worth?", bold=True)
    heads = [
        worth.box(10 + 112 * i, 40, f"head {i}", "(n, d_{head})", role, width=96)
        for i, role in enumerate(("value", "quiet", "value"))
    ]
    mixed = worth.box(90, 136, "· W_o", "(d_{model}, d_{model})", width=160)
    for i in (0, 2):
        worth.arrow(heads[i], (130 + 40 * i, 132), role="value")
    worth.path("M170,96L170,130", "quiet", dashed=True)
    worth.path("M161,104L179,122M179,104L161,122", "key", thick=3)
    worth.text(156, 110, "0 0 0", "quiet", size=13, anchor="end")
    worth.arrow(mixed, (170, 204))
    worth.text(170, 222, "loss without it − loss = its worth", bold=True)
    return beside(score, worth)


def two_steps() -> Drawings:
    """Draw what each layer of an induction head does on *7 2 9 4 7*."""
    note = Diagram(
        "Layer 0: a note",
        "The tokens 7, 2, 9, 4, 7. From each but the first an arrow leads to the one before it, "
        "and below each but the first stands its note: after 7, after 2, after 9, after 4.",
        height=168,
    )
    note.text(170, 16, "a  layer 0: who came before me?", bold=True)
    find = Diagram(
        "Layer 1: find the note",
        "The same tokens with their notes. From the last 7 an arrow leads to the token whose note "
        "says after 7, the 2. It is copied: the next token is 2.",
        height=168,
    )
    find.text(170, 16, "b  layer 1: who came after a 7?", bold=True)
    for picture in (note, find):
        for j, token in enumerate(SEQUENCE):
            marked = picture is find and j == FOLLOWS
            picture.box(6 + 66 * j, 66, token, role="key" if marked else "ink", width=58, height=34)
            if j:
                picture.text(35 + 66 * j, 122, f"after {SEQUENCE[j - 1]}", "value", size=13)
    for j in range(1, len(SEQUENCE)):
        x = 35 + 66 * j
        note.path(f"M{x},62C{x},40 {x - 60},40 {x - 60},60", "query")
        note.path(f"M{x - 65},53L{x - 60},62L{x - 54},54", "query")
    note.text(170, 152, "the note stands beside the token itself", "quiet", size=12)
    ask, got = 35 + 66 * ASKS, 35 + 66 * FOLLOWS
    find.path(f"M{ask},62C{ask},24 {got},24 {got},60", "query", thick=3)
    find.path(f"M{got - 6},52L{got},63L{got + 6},52", "query", thick=3)
    find.text(170, 152, f"copy it: next comes {SEQUENCE[FOLLOWS]}", "value", size=14, bold=True)
    return beside(note, find)
