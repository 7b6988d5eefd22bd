"""Chapter 6: a translator writes a line letter by letter, and shows where each letter looks."""

import re
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from attncourse.figures.diagram import Diagram
from attncourse.figures.moving.controls import (
    button,
    choice,
    controls,
    live,
    picture_row,
    slider_control,
)
from attncourse.figures.moving.figure import Moving
from attncourse.figures.moving.live_model import pack_arrays, round_to_16_bits
from attncourse.support.arrays import require_finite

if TYPE_CHECKING:  # numpy alone is enough for the other figures
    from attncourse.tasks.translator import Seq2Seq

MOST, LONGEST = 24, 12  # characters that are read, and that are written, the end included
WIDE, TOP, BOTTOM, HIGH = 340, 34, 158, 176  # of the picture; where the two rows stand
MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
DAY = re.compile(r"(\d+)(?:st|nd|rd|th)?(?: of)? ([a-z]{3})")
WRITER_DESCRIPTION = (
    "Two rows of characters: what has been written above, what is read below. Curves lead from the "
    "letter that is being written to the characters that it looks at, thicker for more weight; "
    "without attention, one box stands between the rows and passes on all that was read."
)


def line_writer(
    models: "dict[str, Seq2Seq]", reads: str, writes: str, line: str, examples: Sequence[str] = ()
) -> Moving:
    """Return translators of dates, chapter 6's ``Seq2Seq``, that write what a reader types.

    models: two or three by their names, with an `AdditiveScore` or without attention; the first is
    shown first. reads, writes: the characters that they know, in the order of their ids from 1.
    line: what is read at first; examples: more lines to choose from. The page carries the weights
    as `live_model` does, and writes the likeliest character each time.

    Raises ``ValueError`` for another number of models, one with another score, and for a line that
    is empty, longer than 24 characters or holds others than ``reads``.
    """
    if not 2 <= len(models) <= 3:
        raise ValueError(f"models: expected 2 or 3, got {len(models)}")
    for text in (line, *examples):
        if not 0 < len(text) <= MOST or set(text) - set(reads):
            raise ValueError(f"line: expected 1 to {MOST} characters of {reads!r}, got {text!r}")
    all_weights = {}
    for i, (name, model) in enumerate(models.items()):
        weights_of_model = {
            f"{i}.{key}": value for key, value in line_writer_weights(name, model).items()
        }
        require_finite(**weights_of_model)
        all_weights |= {key: round_to_16_bits(value) for key, value in weights_of_model.items()}
    first = next(iter(models))
    written, weights = written_by(models[first], line, reads, writes)
    at = first_wrong(written, right_translation(line))
    return Moving(
        "line_writer",
        "A translator writes",
        controls(
            f'<label class="lw-field"><span>It reads</span><input type="text" data-part="line" '
            f'value="{escape(line)}" maxlength="{MOST}" autocomplete="off" autocapitalize="none" '
            'spellcheck="false"></label>',
            *(button("example", escape(text)) for text in examples),
        )
        + controls(choice("model", "Translator", [escape(name) for name in models], 0))
        + controls(
            slider_control("letter", "letter", 1, max(len(written), 2), at + 1),
            button("next", "Next ▸"),
        )
        + picture_row(line_picture(line, written, weights, at)),
        "Where JavaScript runs, the line that is read is yours, and the translators write it.",
        {"reads": reads, "writes": writes, "names": list(models), "months": MONTHS}
        | {"attends": [model.score is not None for model in models.values()]}
        | {"longest": LONGEST, "wide": WIDE, "top": TOP, "bottom": BOTTOM}
        | {"shapes": [[key, *value.shape] for key, value in all_weights.items()]}
        | {"weights": pack_arrays(all_weights.values())},
        says(line, written, weights, at),
        before=["transformer"],
    )


def line_writer_weights(name: str, model: "Seq2Seq") -> dict[str, np.ndarray]:
    """Return a translator's weights under the names that the script reads them by."""
    state = {key: value.detach().cpu().numpy() for key, value in model.state_dict().items()}
    needed = {f"score.{key}.weight" for key in ("W_q", "W_k", "w")}
    if {key for key in state if key.startswith("score")} not in (set(), needed):
        raise ValueError(f"{name}: expected a translator with an AdditiveScore or without a score")
    # Of torch's names, weight_ih_l0_reverse, the script makes ih_reverse.weight.
    pattern = re.compile(r"(weight|bias)_(ih|hh)_l0(_reverse)?$")
    return {
        pattern.sub(lambda m: f"{m[2]}{m[3] or ''}.{m[1]}", key): value
        for key, value in state.items()
    }


def written_by(model: "Seq2Seq", line: str, reads: str, writes: str):
    """Return a translator's output, and its attention or None.

    The attention has a row for each letter and the end, ``(t + 1, n)``.
    """
    import torch

    source = torch.tensor([[reads.index(c) + 1 for c in line]])
    ids = model.translate(source, LONGEST)
    written = "".join(writes[i - 1] for i in ids[0].tolist() if i)
    if model.score is None:
        return written, None
    with torch.no_grad():
        return written, model.weights(source, ids[:, : len(written)])[0].numpy()


def right_translation(line: str) -> str:
    """Return the right translation of the days in a line: ``03-03 11-18``."""
    days = [(day, name) for day, name in DAY.findall(line) if name in MONTHS]
    return " ".join(f"{MONTHS.index(name) + 1:02d}-{int(day):02d}" for day, name in days)


def first_wrong(written: str, goal: str) -> int:
    """Return the first letter that is not as it should be, or letter 0."""
    return next((i for i, c in enumerate(written) if goal and c != goal[i : i + 1]), 0)


def line_picture(line: str, written: str, weights: np.ndarray | None, at: int) -> Diagram:
    """Draw the output above, the input below, and one letter's attention between them."""
    drawing = Diagram("Two rows of characters", WRITER_DESCRIPTION, width=WIDE, height=HIGH)
    live(drawing, "between", attention_curves(line, weights, at))
    live(drawing, "read", character_row(line, BOTTOM, -1, ""))
    live(drawing, "written", character_row(written[: at + 1], TOP, at, right_translation(line)))
    return drawing


def character_row(text: str, y: int, at: int, goal: str) -> str:
    """Draw characters in a row; the one at ``at`` framed, those that ``goal`` lacks underlined."""
    parts = []
    for i, character in enumerate(text):
        x = character_place(i, max(len(text), LONGEST if at >= 0 else 1))
        wrong = at >= 0 and goal and character != goal[i : i + 1]
        if i == at:
            parts.append(
                f'<rect class="lw-now" x="{x - 8:.1f}" y="{y - 16}" width="16" height="22" rx="3"/>'
            )
        more = ' class="lw-wrong"' if wrong else ""
        shown = escape(character.replace(" ", "␣"))
        parts.append(f'<text x="{x:.1f}" y="{y}" text-anchor="middle"{more}>{shown}</text>')
    return "".join(parts)


def character_place(i: int, n: int) -> float:
    """Return where character i of n stands, around the middle, at most 18 pixels apart."""
    step = min(18, (WIDE - 8) / n)
    return WIDE / 2 + (i - (n - 1) / 2) * step


def attention_curves(line: str, weights: np.ndarray | None, at: int) -> str:
    """Draw curves from the letter to what it looks at, or through one vector."""
    x, n, middle = character_place(at, LONGEST), len(line), WIDE / 2
    if weights is None:
        left, end, low = character_place(0, n), character_place(n - 1, n), BOTTOM - 20
        return (
            f'<path class="lw-all" d="M{left:.1f},{low}L{middle:g},108L{end:.1f},{low}Z"/>'
            '<path class="lw-curve" style="stroke-width:4" '
            f'd="M{middle:g},84C{middle:g},62 {x:.1f},66 {x:.1f},{TOP + 8}"/>'
            f'<rect class="lw-vector" x="{middle - 56:g}" y="82" width="112" height="26" rx="6"/>'
            f'<text x="{middle:g}" y="100" text-anchor="middle">one vector</text>'
        )
    return "".join(
        f'<path class="lw-curve" style="stroke-width:{1 + 7 * w:.2f};'
        f'stroke-opacity:{0.25 + 0.7 * w:.2f}" d="M{x:.1f},{TOP + 8}C{x:.1f},90 '
        f'{character_place(j, n):.1f},96 {character_place(j, n):.1f},{BOTTOM - 16}"/>'
        for j, w in enumerate(weights[at])
        if w >= 0.02
    )


def says(line: str, written: str, weights: np.ndarray | None, at: int) -> str:
    """Say what was written, if it is right, and where the letter looks."""
    goal = right_translation(line)
    judged = "" if not goal else " That is right." if written == goal else f" Right is {goal}."
    looks = "Every letter is made of the same vector."
    if weights is not None:
        most = int(weights[at].argmax())
        looks = f"Letter {at + 1} looks most at “{line[most]}”, {weights[at, most]:.2f}."
    return f"It writes {written}.{judged} {looks}"
