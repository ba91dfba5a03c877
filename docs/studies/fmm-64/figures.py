"""Figures as small SVG files: stacked bars and lines, light ground, text that stays text."""
# ruff: noqa: E501

import math
from collections.abc import Mapping, Sequence
from html import escape

COLOURS = {
    "FP64 multiply-add": "#a2331d",
    "FP64 add": "#cf6a48",
    "FP64 multiply": "#e8a68f",
    "integer": "#f0a326",
    "shared memory": "#8bd3f5",
    "L2": "#1765a3",
    "DRAM": "#0b2a6b",
    "computation": "#cf6a48",
    "data": "#1765a3",
    "constant": "#9aa3ae",
    "U": "#a2331d",
    "V": "#1765a3",
    "W": "#f0a326",
    "X": "#6aa9a0",
    "UP, DOWN": "#7f8894",
}
INK, MUTED, LINE = "#17212c", "#536170", "#d8dee6"
Bars = Mapping[str, Mapping[str, float]]  # label -> part -> value


def text(x: float, y: float, words: str, *, anchor: str = "start", colour: str = INK, size: int = 12) -> str:
    """A line of text."""
    return f'<text x="{x:g}" y="{y:g}" fill="{colour}" font-size="{size}" text-anchor="{anchor}">{escape(words)}</text>'


def page(width: int, height: int, title: str, body: Sequence[str]) -> str:
    """A whole file."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" role="img">'
    )
    paper = f'<title>{escape(title)}</title><rect width="{width}" height="{height}" fill="#fff"/>'
    return "\n".join([head, paper, text(16, 24, title, size=14), *body, "</svg>", ""])


def legend(parts: Sequence[str], x: float, y: float) -> list[str]:
    """Squares with names, in a row."""
    out = []
    for part in parts:
        out.append(f'<rect x="{x:g}" y="{y - 10:g}" width="11" height="11" fill="{COLOURS[part]}"/>')
        out.append(text(x + 16, y, part))
        x += 30 + 7 * len(part)
    return out


def shares(title: str, groups: Mapping[str, Bars], *, row: int = 20, note: str = "") -> str:
    """Bars of 100 per cent, one below the other, in groups with headings; parts of 6 per cent or more say how much."""
    parts = list(dict.fromkeys(part for bars in groups.values() for bar in bars.values() for part in bar))
    left, width, y = 70, 620, 74
    body = legend(parts, 16, 50)
    for heading, bars in groups.items():
        if heading:
            body.append(text(16, y + 12, heading, colour=MUTED))
            y += 20
        for name, bar in bars.items():
            body += _bar(name, bar, left, y, width, row)
            y += row
        y += 8
    if note:
        body.append(text(16, y + 12, note, colour=MUTED, size=11))
        y += 16
    return page(left + width + 20, y + 10, title, body)


def _bar(name: str, bar: Mapping[str, float], left: float, y: float, width: float, row: int) -> list[str]:
    total, x = sum(bar.values()), float(left)
    out = [text(left - 8, y + row - 6, name, anchor="end", size=min(12, row - 3))]
    for part, value in bar.items():
        share = value / total if total else 0.0
        out.append(f'<rect x="{x:.1f}" y="{y}" width="{share * width:.1f}" height="{row - 3}" fill="{COLOURS[part]}"/>')
        if share >= 0.06 and row >= 16:
            light = part in ("L2", "DRAM", "FP64 multiply-add", "data", "U", "V")
            words = f"{100 * share:.0f} %"
            out.append(
                text(
                    x + share * width / 2, y + row - 7, words, anchor="middle", colour="#fff" if light else INK, size=11
                )
            )
        x += share * width
    return out


def lines(title: str, xs: Sequence[float], series: Mapping[str, Sequence[float]], x_label: str, y_label: str) -> str:
    """Lines over logarithmic axes; zeros and what is below the axis are left out."""
    left, top, width, height = 70, 60, 560, 300
    seen = [value for values in series.values() for value in values if value > 0]
    high = math.ceil(math.log10(max(seen)))
    low = max(math.floor(math.log10(min(seen))), high - 4)
    first, last = math.log2(xs[0]), math.log2(xs[-1])

    def place(x: float, y: float) -> tuple[float, float]:
        across = (math.log2(x) - first) / (last - first)
        return left + width * across, top + height * (high - math.log10(y)) / (high - low)

    body = legend(list(series), 16, 48)
    for power in range(low, high + 1):
        y = place(xs[0], 10.0**power)[1]
        body.append(f'<path d="M{left} {y:.1f}h{width}" stroke="{LINE}"/>')
        body.append(text(left - 8, y + 4, f"1e{power}", anchor="end", colour=MUTED))
    for x in xs:
        body.append(text(place(x, 10.0**low)[0], top + height + 18, f"{x:g}", anchor="middle", colour=MUTED))
    for name, values in series.items():
        stretches: list[list[tuple[float, float]]] = [[]]
        for x, y in zip(xs, values, strict=True):
            if y >= 10.0**low:
                stretches[-1].append(place(x, y))
            else:
                stretches.append([])  # nothing to join over
        for points in stretches:
            spots = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
            body.append(f'<polyline points="{spots}" fill="none" stroke="{COLOURS[name]}" stroke-width="2"/>')
            body += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{COLOURS[name]}"/>' for x, y in points]
    body.append(text(left + width / 2, top + height + 38, x_label, anchor="middle"))
    body.append(text(left + width, top - 8, y_label, anchor="end", colour=MUTED))
    return page(left + width + 20, top + height + 52, title, body)
