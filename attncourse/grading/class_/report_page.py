"""The class report as one HTML page that asks nothing of any network."""

import base64
import hashlib
from datetime import datetime
from html import escape
from pathlib import Path

from attncourse.grading.class_ import report_tables as tables
from attncourse.grading.class_.report_tables import text
from attncourse.grading.class_.summary import Bin, Summary

HERE = Path(__file__).parent


def page(summary: Summary, made: datetime | None = None) -> str:
    """The page. Texts of submissions are escaped; its own script is the only one that may run."""
    style = (HERE / "report_page.css").read_text(encoding="utf-8")
    script = (HERE / "report_page.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    name, day = text(summary.assignment), (made or datetime.now()).strftime("%Y-%m-%d %H:%M")
    parts = [
        head(summary, day),
        distribution(summary),
        tables.exercises(summary),
        tables.misconceptions(summary),
        tables.attention(summary),
        tables.students(summary),
    ]
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}; img-src data:">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<title>{name}: class report</title>\n<link rel="icon" href="data:,">\n'
        f"<style>\n{style}</style>\n</head>\n<body>\n<main>\n{''.join(parts)}</main>\n"
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def head(summary: Summary, day: str) -> str:
    """The title, the figures, and where the points come from."""
    low, median, high = summary.quartiles
    figures = [("students", f"{sum(summary.counts.values())}"), ("handed in", summary.handed_in)]
    figures += [(s, summary.counts[s]) for s in ("missing", "unreadable", "interrupted")]
    if summary.handed_in:
        figures += [("mean", f"{summary.mean:.4g}"), ("median", f"{median:.4g}")]
        figures += [("quartiles", f"{low:.3g}, {high:.3g}")]
    cards = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in figures)
    return (
        f"<h1>{text(summary.assignment)}</h1>\n"
        f'<p class="quiet">Class report of {day}, of {summary.maximum:g} points. '
        f'{escape(summary.sources)}</p>\n<dl class="figures">{cards}</dl>\n'
    )


def distribution(summary: Summary) -> str:
    """The histogram as a picture, and as a table for who cannot see it."""
    if not summary.handed_in or not summary.bins:
        return "<h2>Points</h2>\n<p>Nobody has handed in anything.</p>\n"
    most = max(summary.bins, key=lambda step: step.count)
    told = f"Most, {most.count} of {summary.handed_in}, are at {most.label} points."
    rows = "".join(
        f'<tr><th scope="row">{b.label}</th><td class="number">{b.count}</td></tr>'
        for b in summary.bins
    )
    return (
        f"<h2>Points</h2>\n<figure>{bars(summary.bins, f'Histogram of the points. {told}')}"
        f"<figcaption>{told}</figcaption></figure>\n<details><summary>The same as a table</summary>"
        '<table><thead><tr><th scope="col">points</th><th scope="col" class="number">students</th>'
        f"</tr></thead><tbody>{rows}</tbody></table></details>\n"
    )


def bars(bins: tuple[Bin, ...], label: str) -> str:
    """The bars of a histogram, their counts above and the points below."""
    width, height, top = 400 / len(bins), 120, max(b.count for b in bins)
    shapes = []
    for n, b in enumerate(bins):
        tall, middle = height * b.count / top, (n + 0.5) * width
        shapes.append(
            f'<rect class="bar" x="{n * width + 2:.1f}" y="{16 + height - tall:.1f}" '
            f'width="{width - 4:.1f}" height="{tall:.1f}"/>'
            f'<text x="{middle:.1f}" y="{12 + height - tall:.1f}">{b.count}</text>'
            f'<text x="{middle:.1f}" y="{height + 30}">{b.label}</text>'
        )
    return (
        f'<svg viewBox="0 0 400 160" role="img" aria-label="{escape(label)}">'
        f'<line x1="0" x2="400" y1="136.5" y2="136.5"/>{"".join(shapes)}</svg>'
    )
