"""Chapter 19's drawing: one vector carried from run to run."""

from attncourse.figures.diagram import Diagram

LEFT, STEP = 66, 56  # of the first word's column, and from one to the next
PROMPT_WORDS = ("The", "capital", "of", "{}", "is")
BLOCKS = 3


def patching() -> Diagram:
    """Draw two runs, one above the other; the vector of one place goes down into the lower one."""
    picture = Diagram(
        "One vector carried into another run",
        "Above, the run on The capital of France is; below, the run on The capital of Italy is. "
        "Each word is a column through three blocks. The vector at the country after the second "
        "block is taken from the upper run and put into the lower one; what comes after it there "
        "is computed anew, up to the answer at the last word.",
        width=340,
        height=330,
    )
    run(picture, 8, "France", "Paris", "query")
    run(picture, 172, "Italy", "?", "key")
    x = LEFT + 3 * STEP
    taken, put = 8 + place(1), 172 + place(1)
    picture.dot(x, taken, "value", radius=6)
    picture.dot(x, put, "value", radius=6)
    picture.arrow((x + 4, taken + 7), (x + 4, put - 8), via=[(x + 26, 120), (x + 26, 200)])
    return picture


def place(block: int) -> float:
    """Return how far below the top of a run the stream after a block is drawn."""
    return 118 - 34 * (block + 1)


def run(picture: Diagram, top: float, country: str, answer: str, role: str) -> None:
    """Draw a run from below to above: words, three blocks, an answer at the last word."""
    for i, word in enumerate(PROMPT_WORDS):
        x = LEFT + STEP * i
        picture.text(x, top + 138, word.format(country), role if "{" in word else "ink", size=13)
        picture.path(f"M{x},{top + 124}V{top + 16}", "quiet")
    for block in range(BLOCKS):
        y = top + place(block) + 6
        picture.path(f"M{LEFT - 10},{y}h{4 * STEP + 20}v20h-{4 * STEP + 20}Z", "ink")
        picture.text(2, y + 15, f"block {block}", "quiet", size=12, anchor="start")
    picture.text(LEFT + 4 * STEP, top + 10, answer, role, bold=True, size=13)
