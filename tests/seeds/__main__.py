"""Show how the documents are held: `python -m tests.seeds`; `python -m tests.seeds 003` prints rows to fill in
for the lines of 003 that have none."""

import sys
from collections.abc import Iterator
from pathlib import Path

from tests.seeds.extract import Line, claims, lines_of
from tests.seeds.table import FOLDER, PLACES, names, problems, read_table


def main(arguments: list[str]) -> int:
    if arguments:
        return _draft(arguments[0])
    for name in names():
        table = read_table(name)
        found = list(problems(table))
        print(table.summary(), f"{len(found)} problems", *found, sep="\n  ")
    return 0


def _draft(name: str) -> int:
    document = next((each for place in PLACES for each in place.glob(f"{name}*.md")), None)
    if document is None:
        print(f"no document {name} lies beside this tree", file=sys.stderr)
        return 1
    text = document.read_text()
    mapped = set[int]()
    if (FOLDER / f"{name}.toml").is_file():
        mapped = {n for row in read_table(name).rows for n in row.lines}
    else:
        print(f'document = "{document.name}"\n')
    left = [line for line in claims(text).values() if line.number not in mapped]
    for first, last in _ranges(left):
        print(_skeleton(document, first, last))
    return 0


def _ranges(left: list[Line]) -> Iterator[tuple[int, int]]:
    """Neighbours, and all of a code block, are one row to begin with."""
    rows: list[list[Line]] = []
    for line in left:
        before = rows[-1][-1] if rows else None
        if before and (line.number == before.number + 1 or 0 < line.block == before.block):
            rows[-1].append(line)
        else:
            rows.append([line])
    yield from ((row[0].number, row[-1].number) for row in rows)


def _skeleton(document: Path, first: int, last: int) -> str:
    lines = lines_of(document.read_text())
    quote = "\n".join(lines[n] for n in range(first, last + 1))
    told = f"{first}-{last}" if last > first else f"{first}"
    return f"[[row]]\nlines = \"{told}\"\nquote = '''\n{quote}\n'''\nkept = []\ntests = []\n"


sys.exit(main(sys.argv[1:]))
