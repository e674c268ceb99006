"""Reading the tables of a documentation page."""

from pathlib import Path


def rows_of(page: Path, heading: str) -> list[list[str]]:
    """The rows of the table whose first column has this heading; none if there is no such table."""
    rows: list[list[str]] = []
    inside = False
    for line in page.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|"):
            inside = False
        elif inside and set(cells[0]) != {"-"}:
            rows.append(cells)
        elif cells[0] == heading:
            inside = True
    return rows
