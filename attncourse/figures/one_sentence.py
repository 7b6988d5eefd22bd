"""The same in a real model: what undoing a chapter's decision does to one sentence's next word.

The numbers are kept (``attncourse/data/one_sentence.json``); a link leads to the live page in that
state, where it has one.
"""

from html import escape
from urllib.parse import quote

from attncourse.data import kept
from attncourse.figures.diagram import Diagram

LEFT, LONG = 20, 200  # of the bars
# For each chapter the steps that the live page takes, and what the link says.
LIVE_STATES = {
    "kqv": (["order=layer", "rank=212", "key=3", "why=true"], "Why “is” finds “France”"),
    "scoring": ([], "Read it live"),
    "scaling": (["switch0=1"], "Undo it live"),
    "cross_attention": ([], "Read it live"),
    "multihead": (["order=layer", "rank=212", "head!"], "Undo it live"),
    "masking": (["switch1=1"], "Undo it live"),
    "positions": (["switch2=1"], "Undo it live"),
    "transformer": (["switch5=1"], "Undo it live"),
    "gpt": (["temperature=2"], "Undo it live"),
    "interpret": (["order=layer", "rank=212", "key=3", "cut!"], "Undo it live"),
    "vision": ([], "Read it live"),
    "sequences": ([], "Read it live"),
    "efficient": (["key=0", "cutall!"], "Undo it live"),
}
# Chapters of which this model has nothing that could be undone.
NOTHING = {
    "cross_attention": "It reads one text: no queries from another.",
    "vision": "It reads text alone: it has no patches.",
    "sequences": "It writes on: no query reads a sequence out.",
}
FEW = 0.005


class SameInRealModel:
    """Bars of the next word as it is and with a decision undone, and a link to the live page."""

    def __init__(self, drawing: Diagram, address: str, words: str):
        """Keep a drawing, and the address of the page that shows the same in the real model."""
        self.drawing, self.address, self.words = drawing, address, words

    def __repr__(self) -> str:
        """Return what a saved notebook holds as plain text."""
        return f"drawing: {self.drawing.title}. {self.drawing.says}"

    def _repr_html_(self) -> str:
        link = f'<p><a href="{escape(self.address)}">{escape(self.words)}</a></p>'
        return f"{self.drawing._repr_html_()}{link}"


def same_in_real_model(stem: str) -> SameInRealModel:
    """Return the probability of the sentence's next word with a decision of the chapter undone.

    stem: of a chapter from 5 to 17. Raises ``ValueError`` for another.
    """
    if stem not in LIVE_STATES:
        raise ValueError(f"stem: expected one of {', '.join(LIVE_STATES)}, got {stem!r}")
    answer = kept("one_sentence")["answer"]
    text, word, whole = answer["text"], answer["answer"].strip(), answer["p"]
    rows, note = [("as it is", whole)], NOTHING.get(stem, "")
    if not note:
        row = answer["undone"][stem]
        rows.append((row["undone"], row["p"]))
        first, p = row["first"]
        if first != answer["answer"]:
            note = f"Likeliest is now “{first.strip()}”, {in_percent(p)}."
        elif abs(row["p"] - whole) < 0.1:
            note = f"“{word}” stays, about as probable as before."
        else:
            note = f"“{word}” stays the likeliest word."
    said = "; ".join(f"{name}: {in_percent(p)}" for name, p in rows)
    says = f"Probability of “{word}” after “{text}”. {said}. {note}"
    drawing = Diagram("The same in a real model", says, height=62 + 38 * len(rows))
    drawing.text(8, 18, "The same in a real model", anchor="start", bold=True, size=14)
    drawing.text(8, 38, f"“{text} {word}”: how probable?", anchor="start", size=12)
    for i, (name, p) in enumerate(rows):
        y = 54 + 38 * i
        drawing.text(LEFT, y + 2, name, anchor="start", size=12)
        role, long = ("value", "key")[i], max(LONG * p, 1)
        drawing.path(f"M{LEFT},{y + 8}h{long:.1f}v12h{-long:.1f}Z", role, filled=True)
        drawing.text(LEFT + long + 6, y + 19, in_percent(p), anchor="start", bold=True)
    drawing.text(8, 58 + 38 * len(rows), note, anchor="start", size=12)
    steps = "&".join(f"{name}" for name in (quote(f"text={text}", safe="="), *LIVE_STATES[stem][0]))
    return SameInRealModel(drawing, f"real_model.html#set=real_model&{steps}", LIVE_STATES[stem][1])


def in_percent(p: float) -> str:
    """Return a probability as it is written in the drawing; a small one is not nothing."""
    return f"{100 * p:.0f} %" if p >= FEW else "under 1 %"
