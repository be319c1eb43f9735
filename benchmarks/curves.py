"""A plot of lines over a logarithmic axis, as an SVG that needs no library."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

__all__ = ["curves"]

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 760, 420, 60, 50, 20, 190
COLOURS = ("#777777", "#1f77b4", "#d62728", "#ff7f0e", "#2ca02c", "#9467bd")


def curves(
    series: Mapping[str, Sequence[tuple[float, float]]], *, across: str, up: str, floor: float
) -> str:
    """Draw each series, points (x, y) with y from ``floor`` to 1; ``across`` and ``up`` label."""
    points = [point for line in series.values() for point in line]
    low, high = (math.log10(edge(x for x, _ in points)) for edge in (min, max))

    def place(x: float, y: float) -> tuple[float, float]:
        share = (math.log10(x) - low) / ((high - low) or 1)
        return (
            LEFT + share * (WIDTH - LEFT - RIGHT),
            HEIGHT - BOTTOM - (y - floor) / (1 - floor) * (HEIGHT - BOTTOM - TOP),
        )

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"',
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="{HEIGHT - 10}">{escape(across)}</text>',
        f'<text transform="translate(14 {HEIGHT / 2}) rotate(-90)">{escape(up)}</text>',
    ]
    for step in range(6):
        y = floor + (1 - floor) * step / 5
        _, at = place(10**low, y)
        parts.append(f'<path d="M{LEFT} {at:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 34}" y="{at + 4:.1f}">{y:.2f}</text>')
    for tick in (100, 200, 500, 1_000, 2_000, 5_000, 10_000):
        if low <= math.log10(tick) <= high:
            at, _ = place(tick, floor)
            parts.append(f'<text x="{at - 12:.1f}" y="{HEIGHT - BOTTOM + 16}">{tick:,}</text>')
    for position, (name, line) in enumerate(series.items()):
        colour = COLOURS[position % len(COLOURS)]
        placed = [place(*point) for point in sorted(line)]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in placed)
        parts.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in placed]
        at = TOP + 16 + 18 * position
        parts.append(
            f'<text x="{WIDTH - RIGHT + 12}" y="{at}" fill="{colour}">{escape(name)}</text>'
        )
    return "\n".join([*parts, "</svg>", ""])
