"""`./run bench --only zombies`: play the scenarios against every system, print the board, put it into its page."""

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown

from bench.child import Failed
from bench.places import Places, open_places
from bench.zombies.director import play
from bench.zombies.page import Row, section_lines, write_section
from bench.zombies.systems import SYSTEMS, System

NAME = "zombies"


def run(console: Console, *, page: Path | None, facts: Path | None) -> int:
    """0 when nothing stale was accepted of ours; a peer decides nothing, whatever came out for it."""
    log = Console(stderr=True, highlight=False)
    with open_places() as places:
        where = places.describe()
        rows = play_all(SYSTEMS, places, lambda line: log.print(line, markup=False))
    console.print(Markdown("\n".join(section_lines(rows, where))))
    if facts:
        facts.write_text(json.dumps([facts_of(row) for row in rows], indent=2) + "\n")
    if page:
        write_section(rows, page, where)
    return 0 if all(row.clean for row in rows if row.system.ours) else 1


def play_all(
    systems: Sequence[System], places: Places, say: Callable[[str], None]
) -> list[Row]:
    """One after the other: side by side they would stop each other's heartbeats on a small machine."""
    rows = []
    for place, system in enumerate(systems, start=1):
        say(f"[{place}/{len(systems)}] {system.name}")
        rows.append(play_one(system, places, lambda line: say(f"  {line}")))
    return rows


def play_one(system: System, places: Places, say: Callable[[str], None]) -> Row:
    if not system.installed:
        return Row(system=system, played=None, missing="not installed")
    with tempfile.TemporaryDirectory(prefix="retoma-zombies-") as folder:
        try:
            with system.opened(places) as side:
                return Row(system=system, played=play(side, Path(folder), say))
        except Failed as error:
            say(str(error))
            return Row(system=system, played=None, missing="could not be played")


def facts_of(row: Row) -> dict[str, object]:
    played = None if row.played is None else asdict(row.played)
    return {"system": row.system.name, "missing": row.missing, "played": played}
