"""Chapter 7's drawing: what a divisor does to a cloud of scores, and so to the weights."""

import numpy as np

from attncourse.figures.diagram import Diagram, Drawings, beside
from attncourse.lookup import softmax

KEY_WIDTHS = 4, 16, 64
ZERO, UNIT = 114, 6.5  # where score 0 is, how long 1 is, in pixels
CLOUD_CAPTIONS = {
    "q · k": "The wider the vectors, the wider the cloud of scores. At width 64 one weight is "
    "black and all others are white.",
    "q · k / √d_k": "The clouds are about equally wide at every width. The weights are several "
    "shades of grey at every width.",
    "q · k / d_k": "The wider the vectors, the narrower the cloud. At width 64 all scores are near "
    "0 and all weights are the same pale grey.",
}


def clouds() -> Drawings:
    """Draw a query and sixteen keys at three widths: scores plain, over √d_k and over d_k."""
    rng = np.random.default_rng(4)
    query, keys = rng.normal(size=64), rng.normal(size=(16, 64))
    scores = [keys[:, :d_k] @ query[:d_k] for d_k in KEY_WIDTHS]  # (16,) each
    powers = dict(zip(CLOUD_CAPTIONS, (0, 0.5, 1), strict=True))
    return beside(
        *(
            cloud(title, [s / d_k**power for s, d_k in zip(scores, KEY_WIDTHS, strict=True)])
            for title, power in powers.items()
        )
    )


def cloud(title: str, scores: list[np.ndarray]) -> Diagram:
    """Draw for each width a dot for each score, and the weights, as dark as they are large."""
    picture = Diagram(
        title, f"Sixteen scores at three widths. {CLOUD_CAPTIONS[title]}", width=228, height=262
    )
    picture.text(ZERO, 16, title, bold=True, size=14)
    for score in (-15, 0, 15):
        words = f"{score:+d}".replace("-", "−") if score else "0"
        picture.text(ZERO + UNIT * score, 36, words, "quiet", size=12)
    for row, (d_k, places) in enumerate(zip(KEY_WIDTHS, scores, strict=True)):
        line = 62 + row * 74
        picture.path(f"M4,{line}H224M{ZERO},{line - 14}V{line + 14}", "quiet", thick=1)
        for j, score in enumerate(places):
            height = (j * 7) % 16 - 7.5  # apart from its neighbours, to be seen
            picture.dot(round(ZERO + UNIT * score, 1), line + height, "key", radius=2.5)
        picture.text(4, line + 36, f"d_k = {d_k}", anchor="start", size=12)
        weights = softmax(places)[None]  # (1, 16)
        picture.matrix(64, line + 23, weights, form="", cell=(10, 18), shade=True)
    return picture
