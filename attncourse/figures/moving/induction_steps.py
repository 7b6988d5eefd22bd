"""Chapter 14: the two steps of an induction head, on a sequence that the reader types."""

from html import escape

from attncourse.figures.moving.controls import choice, controls, role_cell, scrolling
from attncourse.figures.moving.figure import Moving

MOST, LETTERS = 12, 8  # tokens, and letters in one
STEP_TITLES = ["1 · write notes", "2 · find the note", "3 · copy"]


def induction_steps(tokens: list[str], asks: int) -> Moving:
    """Show what an ideal induction head does for one token of a sequence, in three steps.

    tokens: 2 to 12 words of at most 8 letters. asks: the number of the token that asks at first.
    Layer 0 writes beside each token the one before it; layer 1 looks, from the token that asks, at
    the places whose note is this token, all alike: a row of ``induction_pattern`` that is made to
    sum to 1. The shares of what stands there are what comes next. With no such place the row is 0.

    Raises ``ValueError`` for other tokens, or a token that is not there.
    """
    if isinstance(tokens, str) or not 2 <= len(tokens) <= MOST:
        raise ValueError(f"tokens: expected 2 to {MOST} words, got {tokens!r}")
    for word in tokens:
        if not isinstance(word, str) or not 1 <= len(word) <= LETTERS or word.split() != [word]:
            raise ValueError(f"tokens: expected words of 1 to {LETTERS} letters, got {word!r}")
    if isinstance(asks, bool) or not isinstance(asks, int) or not 0 <= asks < len(tokens):
        raise ValueError(f"asks: expected a token from 0 to {len(tokens) - 1}, got {asks!r}")
    weights, says = induction_row(tokens, asks), ""
    share_by_token = {
        t: sum(w for w, u in zip(weights, tokens, strict=True) if u == t) for t in tokens
    }
    best = max(share_by_token, key=share_by_token.__getitem__)
    says = f"“{tokens[asks]}” has not come before: there is nothing to copy."
    if share_by_token[best]:
        says = f"After “{tokens[asks]}” comes “{best}”, with a share of {share_by_token[best]:.2f}."
    return Moving(
        "induction_steps",
        "An induction head, step by step",
        '<div class="am-controls"><label>Sequence <input type="text" data-part="words" '
        f'maxlength="110" autocomplete="off" value="{escape(" ".join(tokens))}"></label></div>'
        + controls(choice("step", "step", STEP_TITLES, 2))
        + induction_table(tokens, asks, weights),
        "In a browser that runs scripts, you type the sequence and choose who asks.",
        {"tokens": list(tokens), "asks": asks},
        says,
    )


def induction_row(tokens: list[str], asks: int) -> list[float]:
    """Return the row of the token that asks: even weights on what came behind its like, or 0."""
    n = len(tokens)
    places = [j for j in range(1, n) if j <= asks and tokens[j - 1] == tokens[asks]]
    return [1 / len(places) if j in places else 0.0 for j in range(n)]


def induction_table(tokens: list[str], asks: int, weights: list[float]) -> str:
    """Draw three lines below the tokens: the notes, the weights of who asks, what is copied."""
    head = "".join(
        f'<th scope="col"><button type="button" aria-pressed="{str(i == asks).lower()}">'
        f"{escape(token)}</button></th>"
        for i, token in enumerate(tokens)
    )
    notes = [f"after {escape(before)}" for before in ["", *tokens[:-1]]]
    lines = {
        "note": [role_cell("value", 0.0, note if i else "–") for i, note in enumerate(notes)],
        "weight": [role_cell("key", w, f"{w:.2f}") for w in weights],
        "copies": [
            role_cell("value", w, escape(token) if w else "")
            for w, token in zip(weights, tokens, strict=True)
        ],
    }
    rows = "".join(
        f'<tr><th scope="row">{name}</th>{"".join(cells)}</tr>' for name, cells in lines.items()
    )
    return scrolling(
        f"<thead><tr><td></td>{head}</tr></thead><tbody>{rows}</tbody>", "notes, weights, copies"
    )
