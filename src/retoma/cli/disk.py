"""`retoma db size`: what takes how much room."""

from retoma import settings
from retoma.console.kit import ask, at, clean, console, print_json, table
from retoma.services.disk import DiskSeen, disk_seen
from retoma.words import speak

UNITS = ("B", "kB", "MB", "GB", "TB")
KILO = 1024.0


def size(database: str | None, as_json: bool) -> None:
    chosen = settings.read(database_url=database)
    seen = ask(database, lambda app: disk_seen(app, chosen))
    if as_json:
        print_json(seen.document)
        return
    page = table(speak("what"), speak("size"), speak("where"))
    for row in _rows(seen):
        page.add_row(*row)
    console().print(page)
    for line in _retention(seen):
        print(line)


def _rows(seen: DiskSeen) -> list[tuple[str, str, str]]:
    disk = seen.disk
    where = speak("a server") if seen.file is None else clean(seen.file)
    more = ">" if disk.at_least else ""
    rows = [
        (speak("database"), _told(disk.database), where),
        (speak("free in it"), _told(disk.free), ""),
        *((clean(name), _told(bytes_), "") for name, bytes_ in disk.tables.items()),
        (speak("evidence"), more + _told(disk.evidence), seen.shelf),
    ]
    if seen.wal is not None:
        rows.append((speak("not yet in its place"), _told(seen.wal), "-wal"))
    if seen.left is not None:
        rows.append((speak("left on its disk"), _told(seen.left), ""))
    if seen.shelf_left is not None:
        rows.append((speak("left for evidence"), _told(seen.shelf_left), ""))
    return rows


def _retention(seen: DiskSeen) -> list[str]:
    stays = ", ".join(
        f"{name} {speak('for ever') if length is None else f'{length:g} s'}"
        for name, length in seen.keep.items()
    )
    last = seen.disk.last_pass
    if last is None:
        return [stays, speak("retention has not passed yet")]
    gone = ", ".join(f"{what} {n}" for what, n in last.retired.items() if n)
    return [
        stays,
        speak("retention last passed {at} UTC: {gone}", at=at(last.at), gone=gone or "-"),
    ]


def _told(n: int) -> str:
    amount, unit = float(n), 0
    while amount >= KILO and unit < len(UNITS) - 1:
        amount, unit = amount / KILO, unit + 1
    return f"{amount:.1f} {UNITS[unit]}" if unit else f"{n} B"
