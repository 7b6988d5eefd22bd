"""Chapter 13's drawings: a model that says what comes next, the shift by one, the cache."""

from attncourse.figures.diagram import Diagram, Drawings, beside

STORY = ("start", "mary", "is", "small", ".", "she")
CHANCES = (("cooks", 0.33), ("likes", 0.33), ("sells", 0.33))


def model() -> Drawings:
    """Draw the way from tokens to the chances of the next one, and how it comes back in."""
    picture = Diagram(
        "From tokens to the next token",
        "The ids of n tokens become vectors, n by d model: a row of the table of tokens plus a row "
        "of the table of positions. They go through a stack of blocks under a causal mask and a "
        "norm. A last layer gives n vocab logits for each token. From the last row a token is "
        "chosen, and it is put after the others.",
        height=330,
    )
    ids = picture.box(50, 4, "ids", "(n)", width=150)
    x = picture.box(50, 76, "token + position", "(n, d_{model})", width=150)
    blocks = picture.box(50, 148, "blocks, causal", "(n, d_{model})", width=150)
    logits = picture.box(50, 220, "logits", "(n, n_{vocab})", width=150)
    token = picture.box(50, 294, "next token", width=150, height=30)
    for start, end in ((ids, x), (x, blocks), (blocks, logits), (logits, token)):
        picture.arrow(start, end)
    picture.arrow(token, ids, via=((270, 309), (270, 25)), role="quiet", dashed=True)
    picture.text(262, 160, "written", "quiet", size=12, anchor="end")
    picture.text(262, 176, "after", "quiet", size=12, anchor="end")
    picture.text(132, 284, "last row: choose", "quiet", size=12, anchor="start")
    return beside(picture, chances())


def chances() -> Diagram:
    """Draw the distribution after *mary is small . she*."""
    picture = Diagram(
        "What the last row says",
        "After the words mary is small, full stop, she, three verbs are equally likely, a third "
        "each, and every other word has next to nothing.",
        width=300,
        height=330,
    )
    picture.text(150, 40, "mary is small . she …", bold=True, size=15)
    for i, (word, share) in enumerate(CHANCES):
        y = 90 + 44 * i
        picture.text(70, y + 17, word, anchor="end", size=14)
        picture.path(f"M80,{y}h{360 * share:g}v24h-{360 * share:g}Z", filled=True)
        picture.text(92 + 360 * share, y + 17, "1/3", size=13, anchor="start")
    picture.text(70, 239, "the rest", anchor="end", size=14)
    picture.path("M80,222h2v24h-2Z", filled=True)
    picture.text(94, 239, "next to 0", size=13, anchor="start")
    picture.text(150, 296, "a probability for every word that it knows", "quiet", size=12)
    return picture


def shifted() -> Diagram:
    """Draw each row of the logits beside the token that it is judged by, one place on."""
    picture = Diagram(
        "Row t is judged by token t + 1",
        "Six tokens in a row: start, mary, is, small, full stop, she. Below each stands its row of "
        "logits. An arrow leads from each row to the token one place on. The last row has none.",
        height=176,
    )
    width = 52
    for t, word in enumerate(STORY):
        left = 10 + 54 * t
        picture.box(left, 26, word, width=width, role="ink" if t else "quiet")
        picture.box(left, 110, f"row {t}", width=width, role="ink" if t < 5 else "quiet")
        picture.arrow((left + width / 2, 56), (left + width / 2, 104), role="quiet")
        if t < 5:
            picture.arrow((left + width - 8, 108), (left + width + 18, 60), thick=2)
    picture.text(170, 16, "ids", size=12)
    picture.text(170, 160, "arrows: the token that judges a row", size=13)
    return picture


def cached() -> Drawings:
    """Draw what is computed for the seventh token, without a cache and with one."""
    pictures = []
    for with_cache in (False, True):
        title = "with a cache" if with_cache else "without a cache"
        picture = Diagram(
            title[0].upper() + title[1:],
            "A map of seven queries and seven keys, causal. "
            + (
                "Only the last row is computed, from one new query; six keys and values are kept."
                if with_cache
                else "All rows are computed anew to write one token."
            ),
            width=250,
            height=238,
        )
        picture.text(125, 18, title, bold=True, size=14)
        for i in range(7):
            new = not with_cache or i == 6
            for j in range(i + 1):
                x, y = 60 + 22 * j, 58 + 22 * i
                role = "query" if new else "quiet"
                picture.path(f"M{x},{y}h20v20h-20Z", role, filled=new, dashed=not new, thick=1)
        for j in range(7):
            is_cached = with_cache and j < 6
            x = 60 + 22 * j
            picture.path(
                f"M{x},34h20v14h-20Z", "key", filled=not is_cached, dashed=is_cached, thick=1
            )
        picture.text(52, 46, "keys", "key", size=12, anchor="end")
        picture.text(52, 205, "row 6", "query", size=12, anchor="end")
        says = "kept: 6 keys, 6 values" if with_cache else "28 scores for one token"
        picture.text(125, 230, says, size=13)
        pictures.append(picture)
    return beside(*pictures)
