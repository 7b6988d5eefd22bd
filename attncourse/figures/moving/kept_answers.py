"""Chapter 18: what a real model answered, word by word, each as dark as it was likely."""

from collections.abc import Sequence
from html import escape
from math import isfinite

from attncourse.figures.moving.controls import button, controls
from attncourse.figures.moving.figure import Moving

CHANCES = 5  # of other words, beside the one that was written


def kept_answers(answers: Sequence[dict], chosen: int = 0) -> Moving:
    """Return questions to choose from; the answer comes word by word, each with its rivals.

    answers: for each question ``question``, ``pieces`` (the words written, as they look), and for
    each piece in ``chances`` up to five pairs of a piece and its probability, the likeliest first;
    ``written`` are the probabilities of the pieces themselves. chosen: the question to begin with.

    Raises ``ValueError`` where these do not fit together or a probability is none.
    """
    for record in answers:
        n = len(record["pieces"])
        if not n or {len(record["written"]), len(record["chances"])} != {n}:
            raise ValueError(
                f"answers: expected as many pieces as numbers, of {record['question']!r}"
            )
        every = [p for row in record["chances"] for _, p in row] + list(record["written"])
        if not all(isfinite(p) and 0 <= p <= 1 for p in every):
            raise ValueError(f"answers: expected probabilities, of {record['question']!r}")
    if not 0 <= chosen < len(answers):
        raise ValueError(f"chosen: expected one of {len(answers)} questions, got {chosen}")
    options = "".join(
        f'<option value="{i}"{" selected" if i == chosen else ""}>{escape(answer["question"])}'
        "</option>"
        for i, answer in enumerate(answers)
    )
    record = answers[chosen]
    return Moving(
        "kept_answers",
        "Ask a real model",
        controls(f'<select data-part="question" aria-label="Question">{options}</select>')
        + controls(button("next", "Next word"), button("all", "All"), button("again", "Again"))
        + f'<p class="ka-asked" data-part="asked">{escape(record["question"])}</p>'
        f'<p class="ka-answer" data-part="answer">{answer_words(record)}</p>'
        '<table data-part="rivals"><tbody></tbody></table>',
        "In a browser that runs scripts, other questions can be chosen, and each word shows which "
        "others the model thought of.",
        {
            "answers": [
                {
                    "question": a["question"],
                    "pieces": list(a["pieces"]),
                    "written": [round(p, 4) for p in a["written"]],
                    "chances": [
                        [[t, round(p, 4)] for t, p in row[:CHANCES]] for row in a["chances"]
                    ],
                }
                for a in answers
            ],
            "chosen": chosen,
        },
        "The stronger a word’s ground, the more likely the model thought it.",
    )


def answer_words(record: dict) -> str:
    """Return the answer, each piece on a ground as strong as it was likely."""
    return "".join(
        f'<span style="{ground(p)}">{escape(piece)}</span>'
        for piece, p in zip(record["pieces"], record["written"], strict=True)
    )


def ground(p: float) -> str:
    """Return the style of a word's ground, the stronger the more likely the word."""
    return f"background:color-mix(in srgb,var(--query) {p * 45:.0f}%,transparent)"
