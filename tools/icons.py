"""The signs on the book's buttons: the few that its pages show, as a style sheet of 10 kB.

The theme brings the whole of Font Awesome. From its fonts are taken the signs that the theme's
templates and styles name; they lie inside the style sheet, so that pages opened from a folder have
them too.
"""

from __future__ import annotations

import base64
import hashlib
import io
import re
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

THEMES = ("pydata_sphinx_theme", "sphinx_book_theme")
OUR_OWN = "\uf059"  # the question mark of a quiz, see attncourse.css
# Font Awesome's families: their names in styles, the file, the classes that choose each.
ICON_FAMILIES = (
    ("Free", "solid", "fa-solid-900", 900, ".fa, .fas, .fa-solid"),
    ("Brands", "brands", "fa-brands-400", 400, ".fab, .fa-brands"),
)
STYLES = """/* From Font Awesome Free, fontawesome.com (icons: CC BY 4.0, fonts: SIL OFL 1.1). */
:is(.fa, .fas, .fab, .fa-solid, .fa-brands) {
  display: inline-block; font-style: normal; font-variant: normal; line-height: 1;
  text-rendering: auto; -webkit-font-smoothing: antialiased;
}
.fa-lg { font-size: 1.25em; line-height: 0.05em; vertical-align: -0.075em; }
"""


def folder(cache_folder: Path) -> Path:
    """Return a folder with `icons.css`, made where it is not kept from an earlier build."""
    tool = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:12]
    place = cache_folder / "-".join(["icons", *map(version, THEMES), tool])
    if not (place / "icons.css").exists():
        place.mkdir(parents=True, exist_ok=True)
        (place / "icons.css").write_text(style_sheet(), encoding="utf-8")
    return place


def style_sheet() -> str:
    """Return the style sheet: two small fonts, and a rule for each sign."""
    specs = [find_spec(name) for name in THEMES]
    roots = [Path(spec.origin).parent for spec in specs if spec and spec.origin]
    awesome = next(roots[0].rglob("fontawesome/*/css/all.min.css")).parents[1]
    named = re.findall(
        r"((?:\.fa-[\w-]+:before,?)+)\{content:\"\\([0-9a-f]+)\"\}",
        (awesome / "css" / "all.min.css").read_text(encoding="utf-8"),
    )
    all_of_it = {name: code for names, code in named for name in re.findall("fa-[a-z-]+", names)}
    shown = {n: chr(int(all_of_it[n], 16)) for n in icon_names(roots) if n in all_of_it}
    signs = set(shown.values()) | signs_in(roots) | {OUR_OWN}
    parts = [STYLES]
    for family, short, file, weight, classes in ICON_FAMILIES:
        data = base64.b64encode(subset(awesome / "webfonts" / f"{file}.ttf", signs)).decode()
        parts.append(
            f':root {{ --fa-font-{short}: normal {weight} 1em/1 "Font Awesome 6 {family}"; }}\n'
            f'@font-face {{ font-family: "Font Awesome 6 {family}"; font-weight: {weight}; '
            f'src: url("data:font/woff;base64,{data}") format("woff"); }}\n'
            f':is({classes}) {{ font-family: "Font Awesome 6 {family}"; font-weight: {weight}; }}\n'
        )
    for name, sign in shown.items():
        parts.append(f'.{name}::before {{ content: "\\{ord(sign):x}"; }}\n')
    return "".join(parts)


def icon_names(roots: list[Path]) -> list[str]:
    """Return the signs that the themes' templates and programs put on a page by name."""
    files = [f for root in roots for f in root.rglob("*") if f.suffix in (".html", ".py")]
    text = "".join(path.read_text(encoding="utf-8") for path in sorted(files))
    hosts = ["fa-github", "fa-gitlab", "fa-bitbucket"]  # a template puts these names together
    return sorted({*re.findall(r"\bfa-[a-z-]+", text), *hosts})


def signs_in(roots: list[Path]) -> set[str]:
    """Return the signs that the themes' styles put before and after things."""
    files = [f for root in roots for f in root.rglob("static/styles/*.css")]
    text = "".join(path.read_text(encoding="utf-8") for path in files)
    written = {chr(int(code, 16)) for code in re.findall(r'"\\(f[0-9a-f]{3})"', text)}
    return written | set(re.findall("[\ue000-\uf8ff]", text))


def subset(font: Path, signs: set[str]) -> bytes:
    """Return a font with these signs alone; those that it does not have are left out."""
    from fontTools.subset import Options, Subsetter, load_font, save_font

    options = Options(flavor="woff", layout_features=[], hinting=False, notdef_outline=True)
    options.recalc_timestamp = False
    made = load_font(str(font), options)
    subsetter = Subsetter(options)
    subsetter.populate(text="".join(sorted(signs)))
    subsetter.subset(made)
    file = io.BytesIO()
    save_font(made, file, options)
    return file.getvalue()
