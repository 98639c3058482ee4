"""Two plots by visibility, written as SVG by hand: recall of the true ten nearest, and time."""

from __future__ import annotations

import math
from html import escape
from pathlib import Path
from typing import Any

_WIDTH, _HEIGHT, _LEFT, _TOP, _RIGHT, _BOTTOM = 760, 380, 60, 40, 220, 50
_COLOURS = ("#0b6e4f", "#c8553d", "#5b5f97", "#b8860b", "#444444", "#2a9d8f", "#9b5de5")


def plot(figures: list[dict[str, Any]], folder: Path) -> None:
    """Write search-recall.svg and search-latency.svg; rows are (visibility, recall, p50 ms, p95 ms)."""
    folder.mkdir(parents=True, exist_ok=True)
    recalls = [(one["name"], [(row[0], row[1]) for row in one["rows"]]) for one in figures]
    times = [
        (one["name"], [(row[0], math.log10(max(row[2], 0.1))) for row in one["rows"]]) for one in figures
    ]
    ticks = [(value / 5, f"{value / 5:.1f}") for value in range(6)]
    chart = _chart("recall@10 against exact, by how much the asker may read", recalls, ticks)
    (folder / "search-recall.svg").write_text(chart, encoding="utf-8")
    ticks = [(power, f"{10**power:g} ms") for power in range(-1, 5)]
    chart = _chart("vector search, median time, by how much the asker may read", times, ticks)
    (folder / "search-latency.svg").write_text(chart, encoding="utf-8")


def _chart(
    title: str, series: list[tuple[str, list[tuple[float, float]]]], ticks: list[tuple[float, str]]
) -> str:
    low, high = ticks[0][0], ticks[-1][0]
    wide, tall = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM

    def x(visibility: float) -> float:
        return _LEFT + wide * (math.log10(visibility) + 3) / 3

    def y(value: float) -> float:
        return _TOP + tall * (1 - (value - low) / (high - low))

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" '
        f'font-size="12"><rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="22" font-size="14">{escape(title)}</text>',
    ]
    for value, name in ticks:
        parts.append(
            f'<line x1="{_LEFT}" x2="{_LEFT + wide}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="#ddd"/>'
            f'<text x="{_LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{name}</text>'
        )
    for visibility in (0.001, 0.01, 0.1, 0.5, 1.0):
        parts.append(
            f'<text x="{x(visibility):.1f}" y="{_HEIGHT - _BOTTOM + 20}" text-anchor="middle">'
            f"{visibility * 100:g} %</text>"
        )
    for number, (name, points) in enumerate(series):
        colour = _COLOURS[number % len(_COLOURS)]
        line = " ".join(f"{x(at):.1f},{y(min(max(value, low), high)):.1f}" for at, value in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [
            f'<circle cx="{x(at):.1f}" cy="{y(min(max(value, low), high)):.1f}" r="3" fill="{colour}"/>'
            for at, value in points
        ]
        level = _TOP + 18 * number + 10
        parts.append(
            f'<rect x="{_WIDTH - _RIGHT + 20}" y="{level - 9}" width="10" height="10" fill="{colour}"/>'
            f'<text x="{_WIDTH - _RIGHT + 36}" y="{level}">{escape(name)}</text>'
        )
    return "\n".join([*parts, "</svg>"]) + "\n"
