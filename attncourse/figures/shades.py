"""Weights as ink on the page: squares where there are few, pixels where there are many.

Both follow light and dark mode: squares are drawn in the theme's ink, and pixels are ink that is
more or less transparent, which ``--flip`` in the style sheet makes light.
"""

import base64
import re
import struct
import zlib

import numpy as np

LEVELS = 32  # shades of ink, besides none
SHADE_SIGNS = "0123456789abcdefghijklmnopqrstuvw"  # one for each shade
INK = (31, 35, 40)
MAX_SQUARES = 600  # numbers that are drawn as squares
RUN = re.compile(r"([^0 ])\1*")


def levels(shares: np.ndarray) -> np.ndarray:
    """Return numbers from 0 to 1, shape ``(m, n)``, as shades from 0 (no ink) to ``LEVELS``."""
    return np.round(np.asarray(shares) * LEVELS).astype(np.uint8)


def signs(shades: np.ndarray) -> str:
    """Return shades ``(m, n)`` as text: a sign for each, a blank between rows."""
    return " ".join("".join(SHADE_SIGNS[shade] for shade in row) for row in shades)


def shade_paths(text: str) -> str:
    """Return the SVG of what ``signs`` wrote: a path for each shade, squares 1 by 1.

    slider.js does the same.
    """
    paths: dict[str, str] = {}
    for i, row in enumerate(text.split(" ")):
        for run in RUN.finditer(row):
            paths[run[1]] = paths.get(run[1], "") + f"M{run.start()} {i}.5h{len(run[0])}"
    return "".join(
        f'<path stroke-opacity="{SHADE_SIGNS.index(sign) / LEVELS:g}" d="{d}"/>'
        for sign, d in sorted(paths.items())
    )


def pixels(shades: np.ndarray, least: int = 60) -> str:
    """Return shades ``(m, n)`` as a PNG in base64: ink, from transparent to opaque.

    Each number is a square of several pixels, at least ``least`` in all, so that a browser that
    smooths pictures shows squares nevertheless.
    """
    size = -(-least // max(shades.shape))
    shades = shades.repeat(size, axis=0).repeat(size, axis=1)
    height, width = shades.shape
    rows = b"".join(b"\0" + row.tobytes() for row in shades)  # 0: this row is not filtered
    opacity = bytes(round(255 * level / LEVELS) for level in range(LEVELS + 1))
    png = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in (
            (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),  # 8 bits, a palette
            (b"PLTE", bytes(INK) * (LEVELS + 1)),
            (b"tRNS", opacity),
            (b"IDAT", zlib.compress(rows, 9)),
            (b"IEND", b""),
        )
    )
    return base64.b64encode(png).decode()
