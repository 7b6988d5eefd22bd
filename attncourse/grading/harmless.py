"""Making a submission's own text safe to show: nothing in it runs, loads anything or hides."""

import re
from unicodedata import category

ZERO_WIDTH_SPACE = "\u200b"  # what it parts is no markup any more and reads the same
WEB_ADDRESS = r"(?:https?://|mailto:)[\w\-./?=&%#:~+,;@!$*]*"

# Where text begins to be more than text. A tag needs a letter right after its "<", a link its
# "(" right after the "]": parted, they are shown as they were typed, wherever they stand. Links
# to the web and to nowhere else stay, but an image becomes a link: it would be fetched.
MARKUP = re.compile(
    rf"""<(?=[A-Za-z/!?])            # a tag, a comment, an address in angle brackets
    | !(?=\[)                        # an image
    | \](?=\((?!{WEB_ADDRESS}\)))            # a link
    | \](?=:(?!\s*{WEB_ADDRESS}\s*(?:\n|$))) # the address that a link refers to
    | \\(?=(?:href|class|cssId|style|require|unicode)\b)  # what TeX can do to a page
    """,
    re.VERBOSE,
)
FOLDERS = re.compile(
    r"""(?<![\w:/.<])(?:/[^\s/'"<>()\[\]:,;]+)+/(?=[^\s/])  # on Linux and macOS
    | \b[A-Za-z]:\\(?:[^\s\\]+\\)*""",
    re.VERBOSE,
)
# Terminal codes, null bytes, halves of characters, and marks that reorder what stands in a line.
UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")

ACTING_CATEGORIES = ("Cc", "Cf", "Cs")  # control and format characters, halves of characters
JOINERS = "\u200c\u200d\u00ad"  # of letters, of emoji: these stay


def made_visible(text: str) -> str:
    """Return the text with visible signs in place of control characters."""
    return UNSEEN.sub(visible_sign, text.replace("\r\n", "\n").replace("\r", "\n"))


def visible_sign(match: re.Match[str]) -> str:
    """Return the visible sign for the control character that was matched."""
    number = ord(match[0])
    return chr(0x2400 + number) if number < 32 else "␡" if number == 127 else "\ufffd"


def one_line(text: str, limit: int | None = None) -> str:
    """Return the text in one line of at most ``limit`` characters, for a terminal or a table.

    Control characters are shown as signs.
    """
    text = text if limit is None else text[: 4 * limit]
    visible = "".join(
        c if c in JOINERS or category(c) not in ACTING_CATEGORIES else " " for c in text
    )
    visible = " ".join(visible.split())
    return visible if limit is None else shortened_text(visible, limit)


def printable(text: str, limit: int) -> str:
    """Return the first ``limit`` characters of a name, with a ? for what cannot be printed."""
    return "".join(c if c.isprintable() else "?" for c in text)[:limit]


def shortened_text(text: str, limit: int) -> str:
    """Return the text, cut after ``limit`` characters with a note on how many more there are."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def harmless_message(text: str) -> str:
    """Return a message without control characters, and without the paths of this machine."""
    return FOLDERS.sub("…/", made_visible(text))


def defused_markdown(text: str) -> str:
    """Return Markdown that shows its text and does nothing: no HTML or images, web links only."""
    return MARKUP.sub(lambda match: match[0] + ZERO_WIDTH_SPACE, made_visible(text))
