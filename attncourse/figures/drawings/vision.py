"""Chapter 15's drawings: an image that becomes a sentence, windows and shifted windows."""

from attncourse.figures.diagram import Diagram, Drawings, beside

# A three of scikit-learn's digits, ink from 0 to 16.
THREE = (
    (0, 0, 7, 15, 13, 1, 0, 0),
    (0, 8, 13, 6, 15, 4, 0, 0),
    (0, 2, 1, 13, 13, 0, 0, 0),
    (0, 0, 2, 15, 11, 1, 0, 0),
    (0, 0, 0, 1, 12, 12, 1, 0),
    (0, 0, 0, 0, 1, 10, 8, 0),
    (0, 0, 8, 4, 5, 14, 9, 0),
    (0, 0, 7, 13, 13, 9, 0, 0),
)


def model() -> Drawings:
    """Draw an image cut into patches; and from patches to the scores of the classes."""
    picture = Diagram(
        "From patches to classes",
        "The n patches, n by c times patch squared, are projected to n by d model. The class "
        "token is put in front, which makes n + 1 tokens, and positions are added. They go "
        "through blocks without a mask and a norm. Only the class token’s row is read: a last "
        "layer makes the scores of the classes of it.",
        height=330,
    )
    patches = picture.box(60, 4, "patches", "(n, c·patch^2)", width=170)
    tokens = picture.box(60, 76, "projected", "(n, d_{model})", width=170)
    all_of_them = picture.box(60, 148, "class token + n", "(n + 1, d_{model})", width=170)
    blocks = picture.box(60, 220, "blocks, no mask", "(n + 1, d_{model})", width=170)
    scores = picture.box(60, 294, "scores of classes", width=170, height=30)
    for start, end in (
        (patches, tokens),
        (tokens, all_of_them),
        (all_of_them, blocks),
        (blocks, scores),
    ):
        picture.arrow(start, end)
    picture.text(240, 172, "+ positions", "quiet", size=12, anchor="start")
    picture.text(152, 284, "row 0 alone", "quiet", size=12, anchor="start")
    return beside(cut(), picture)


def cut() -> Diagram:
    """Draw the image, its patches drawn apart, and the sentence that they make."""
    picture = Diagram(
        "An image cut into patches",
        "A digit of 8 by 8 pixels, a three, cut into 16 patches of 2 by 2 pixels. In reading order "
        "they make a sentence of 16 tokens; the first four are the top row of patches.",
        width=300,
        height=330,
    )
    picture.text(150, 18, "8 × 8 pixels, 16 patches", bold=True, size=14)
    for i, row in enumerate(THREE):
        for j, ink in enumerate(row):
            x, y = 58 + 22 * j + 5 * (j // 2), 34 + 22 * i + 5 * (i // 2)
            at = f'x="{x}" y="{y}" width="22" height="22"'
            picture.parts.append(f'<rect {at} class="ad-weight" fill-opacity="{ink / 16:.2f}"/>')
            picture.parts.append(f'<rect {at} class="ad-thin" style="stroke:var(--quiet)"/>')
    picture.text(150, 256, "in reading order, tokens 1 to 16:", "quiet", size=12)
    for n in range(16):
        r, s = divmod(n, 4)
        for p in range(2):
            for q in range(2):
                ink = THREE[2 * r + p][2 * s + q] / 16
                at = f'x="{7 + 18 * n + 8 * q}" y="{268 + 8 * p}" width="8" height="8"'
                picture.parts.append(f'<rect {at} class="ad-weight" fill-opacity="{ink:.2f}"/>')
        at = f'x="{7 + 18 * n}" y="268" width="16" height="16"'
        picture.parts.append(f'<rect {at} class="ad-thin" style="stroke:var(--quiet)"/>')
        if n in (0, 5, 10, 15):
            picture.text(15 + 18 * n, 302, str(n + 1), size=12)
    picture.text(150, 322, "token 0 is the class token", size=12)
    return picture


def windows() -> Drawings:
    """Draw windows on a grid of tokens, and the same windows shifted by half their side."""
    pictures = []
    for shift, title in ((0, "even layers"), (2, "odd layers: shifted")):
        picture = Diagram(
            title[0].upper() + title[1:],
            "A grid of 8 by 8 tokens. "
            + (
                "Windows of 4 by 4 begin at the upper left corner. The token in row 3, column 3 "
                "sees the 16 tokens of the first window."
                if shift == 0
                else "The borders have moved down and right by 2: now the same token sees the 16 "
                "tokens around the middle. Windows at the rim are smaller."
            ),
            width=250,
            height=250,
        )
        picture.text(125, 18, title, bold=True, size=14)
        for i in range(8):
            for j in range(8):
                x, y = 25 + 25 * j, 30 + 25 * i
                same = (i - shift) // 4 == (3 - shift) // 4 and (j - shift) // 4 == (3 - shift) // 4
                role = "query" if (i, j) == (3, 3) else "key" if same else "quiet"
                picture.path(f"M{x + 4},{y + 4}h17v17h-17Z", role, filled=role != "quiet", thick=1)
        borders = (0, 4, 8) if shift == 0 else (0, 2, 6, 8)
        for at in borders:
            picture.path(f"M{25 + 25 * at},30v200M25,{30 + 25 * at}h200", thick=2)
        picture.text(125, 246, "asks: row 3, column 3", "query", size=12)
        pictures.append(picture)
    return beside(*pictures)
