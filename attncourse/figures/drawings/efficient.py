"""Chapter 17's drawings: the walk over tiles, and three shapes of attention."""

from attncourse.figures.diagram import Diagram, Drawings, beside

BLOCKS = 4  # of queries and of keys
NOW = (1, 2)  # the tile at which the walk is shown: row of queries, column of keys
N, HALF, RANK = 12, 1, 3  # tokens, window on each side, features


def walk() -> Drawings:
    """Draw which tile is held when, and what is kept from tile to tile."""
    tiles = Diagram(
        "One tile at a time",
        "A square of sixteen tiles, numbered row by row. Four blocks of queries stand at its left, "
        "four blocks of keys and values above it. Six tiles are done and gone, the seventh is held "
        "now, and nine are still to come.",
        width=300,
        height=262,
    )
    tiles.text(170, 18, "keys and values, in blocks", "key", size=13)
    for j in range(BLOCKS):
        lit = j == NOW[1]
        tiles.path(f"M{76 + 48 * j},28h42v14h-42Z", "key", filled=lit, thick=2 if lit else 1)
    for i in range(BLOCKS):
        y, lit = 54 + 48 * i, i == NOW[0]
        tiles.path(f"M52,{y}h14v42h-14Z", "query", filled=lit, thick=2 if lit else 1)
        for j in range(BLOCKS):
            x, number = 76 + 48 * j, BLOCKS * i + j + 1
            held, done = (i, j) == NOW, (i, j) < NOW
            role = "ink" if held else "quiet"
            tiles.path(f"M{x},{y}h42v42h-42Z", role, filled=held, dashed=not done, thick=1.5)
            tiles.text(x + 21, y + 26, str(number), role, size=14, bold=held)
    tiles.text(24, 148, "queries", "query", size=12)
    tiles.text(170, 258, "one tile is held at a time", size=13)
    return beside(tiles, kept())


def kept() -> Diagram:
    """Draw what small, fast memory holds while a tile is computed."""
    picture = Diagram(
        "What is held",
        "In large, slow memory are Q, K, V and the output U, n by d each. Of Q, K and V one "
        "block each is read. In small, fast memory a tile of scores is made, and three running "
        "quantities are kept for each query: the largest score, the normaliser and the sum of "
        "values. A finished block of U is written back.",
        height=262,
    )
    picture.text(170, 18, "large, slow memory", "quiet", size=13)
    sources = [("Q", "query"), ("K", "key"), ("V", "value"), ("U", "ink")]
    large = [
        picture.box(12 + 82 * i, 28, name, "(n, d)", role, width=70)
        for i, (name, role) in enumerate(sources)
    ]
    picture.path("M6,112H334V236H6Z", "quiet", dashed=True, thick=1)
    picture.text(170, 256, "small, fast memory", "quiet", size=13)
    tile = picture.box(20, 124, "a tile of scores", "(block, block)", width=150)
    sums = picture.box(194, 124, "sum of e^s v", "(block, d)", width=126)
    largest = picture.box(20, 184, "largest score", "(block, 1)", width=150)
    picture.box(194, 184, "normaliser", "(block, 1)", width=126)
    for place, (_, role) in zip(large[:2], sources, strict=False):
        picture.arrow(place, (place.x + 35, 120), role=role)
    picture.arrow(large[2], (211, 120), role="value")
    picture.arrow((293, 120), (293, 76))
    picture.arrow(tile, sums)
    picture.arrow(tile, largest)
    return picture


def shapes() -> Drawings:
    """Draw full attention, a window, and a product of features, each with what it costs."""
    full = square("all pairs", "n · n scores", lambda i, j: True)
    window = square("a window", "n · width scores", lambda i, j: abs(i - j) <= HALF)
    return beside(full, window, product())


def square(title: str, cost: str, seen) -> Diagram:
    """Draw a map of tokens by tokens, filled where a query sees a key."""
    picture = Diagram(
        title[0].upper() + title[1:],
        f"A square of {N} queries by {N} keys, filled where a query sees a key: "
        + ("everywhere." if seen(0, N - 1) else "along the diagonal, three wide.")
        + f" It takes {cost}.",
        width=200,
        height=222,
    )
    picture.text(100, 18, title, bold=True, size=14)
    for i in range(N):
        for j in range(N):
            x, y = 16 + 14 * j, 30 + 14 * i
            is_seen = seen(i, j)
            role = "ink" if is_seen else "quiet"
            picture.path(f"M{x},{y}h12v12h-12Z", role, filled=is_seen, thick=1)
    picture.text(100, 216, cost, size=13)
    return picture


def product() -> Diagram:
    """Draw φ(Q), tall and narrow, times φ(K)ᵀ, low and wide."""
    picture = Diagram(
        "A product of features",
        f"A tall block, {N} queries by {RANK} features, times a low block, {RANK} features by {N} "
        "keys. It takes n times d k times d v steps.",
        width=260,
        height=222,
    )
    picture.text(130, 18, "a product of features", bold=True, size=14)
    for i in range(N):
        for a in range(RANK):
            picture.path(f"M{14 + 14 * a},{30 + 14 * i}h12v12h-12Z", "query", filled=True, thick=1)
    picture.text(68, 116, "·", bold=True, size=18)
    for j in range(N):
        for a in range(RANK):
            picture.path(f"M{82 + 14 * j},{92 + 14 * a}h12v12h-12Z", "key", filled=True, thick=1)
    picture.text(165, 84, "features of the keys", "key", size=12)
    picture.text(70, 48, "features of the queries", "query", size=12, anchor="start")
    picture.text(130, 216, "n · d_k · d_v steps, no scores", size=13)
    return picture


# Of an A100 with 40 GB, as Dao et al. (2022), figure 1, give them: name, size, terabytes a second.
MEMORIES = (
    ("on the chip", "20 MB", 19.0),
    ("GPU memory", "40 GB", 1.5),
    ("the computer’s", "1 TB and more", 0.0128),
)
PIXELS = 3.2  # of a pipe, for each terabyte a second


def memories() -> Drawings:
    """Draw what moves where on a GPU: three memories, and pipes as wide as they are fast."""
    picture = Diagram(
        "Three memories",
        "Three memories of a GPU of the kind A100, each joined to the arithmetic by a pipe as wide "
        "as it is fast: on the chip, 20 megabytes, 19 terabytes a second; the GPU's memory, 40 "
        "gigabytes, 1.5 terabytes a second; the computer’s, a terabyte and more, 0.0128 terabytes "
        "a second, thinner than can be drawn.",
        height=232,
    )
    picture.text(6, 16, "memory", "quiet", size=13, anchor="start")
    picture.text(212, 16, "bytes a second", "quiet", size=13)
    picture.box(278, 28, "sums", width=60, height=196)
    for (name, size, speed), y in zip(MEMORIES, (64, 134, 190), strict=True):
        picture.text(6, y, name, size=14, bold=True, anchor="start")
        picture.text(6, y + 18, size, size=13, anchor="start")
        thick = max(PIXELS * speed, 1)
        top = y + 2 - thick / 2
        picture.path(f"M146,{top:.1f}H274v{thick:.1f}H146Z", "query", filled=True, thick=0.5)
        speed_in_words = f"{speed:g} TB" if speed > 1 else f"{1000 * speed:g} GB"
        picture.text(210, y + 7 if thick > 20 else y - 6, speed_in_words, size=13, bold=True)
    return beside(picture)
