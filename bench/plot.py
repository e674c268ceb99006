"""What was measured, as one picture: a group of bars per row, each as long as its share of the longest.

SVG by hand: it is a list of rectangles, and nobody has to install a plotter for it.
"""

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from bench.table import LESS_IS_BETTER, Result, number

LINE = 16  # of a bar, with the space under it
BAR = 12
GAP = 14  # between two groups
LEFT = 300  # where bars begin
LENGTH = 520  # of the longest
WIDTH = LEFT + LENGTH + 160
TOP = 48
COLOURS = {"ours": "#1b6e53", "floor": "#9aa5ad"}
PEER = "#d9a441"
TITLE = "retoma beside the floor and its peers"
MET = {True: "met", False: "not met", None: ""}


def write_plot(results: Sequence[Result], file: Path) -> None:
    file.write_text(drawn(results))


def drawn(results: Sequence[Result], title: str = TITLE) -> str:
    shapes: list[str] = []
    y = TOP
    for result in results:
        bars = list(sides(result))
        shapes += group(result, bars, y)
        y += max(len(bars), 2) * LINE + GAP
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y}"'
            f' viewBox="0 0 {WIDTH} {y}" font-family="sans-serif" font-size="11">',
            f'<rect width="{WIDTH}" height="{y}" fill="#ffffff"/>',
            text(12, 24, title, size=15),
            *shapes,
            "</svg>",
            "",
        ]
    )


def sides(result: Result) -> Iterator[tuple[str, float]]:
    """Who was measured, and with what figure."""
    told = {"ours": result.ours, "floor": result.floor, **result.peers}
    yield from ((side, value) for side, value in told.items() if value is not None)


def group(result: Result, bars: Sequence[tuple[str, float]], y: int) -> Iterator[str]:
    """One row: its name and bar at the left, a rectangle for each side."""
    better = "less is better" if result.unit in LESS_IS_BETTER else "more is better"
    yield text(12, y + 10, result.name, size=12)
    judged = f"{result.bar} {MET[result.met]}" if result.bar else ""
    yield text(12, y + 24, f"{result.unit}, {better} {judged}", colour="#5d6870", size=9)
    longest = max((value for _, value in bars), default=0) or 1
    for place, (side, value) in enumerate(bars):
        at = y + place * LINE
        length = max(LENGTH * value / longest, 1)
        colour = COLOURS.get(side, PEER)
        yield (
            f'<rect x="{LEFT}" y="{at}" width="{length:.1f}" height="{BAR}" fill="{colour}"/>'
        )
        yield text(LEFT + length + 6, at + 10, f"{side} {number(value)}")


def text(x: float, y: float, said: str, *, colour: str = "#20262b", size: int = 11) -> str:
    return f'<text x="{x:.1f}" y="{y}" fill="{colour}" font-size="{size}">{escape(said)}</text>'
