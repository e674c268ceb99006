"""What a house for pictures has beyond the one of the tests: every state of a job and a batch, names
without a space, an error of several kB; and, straight in the tables, what would take days to come about.
"""

import json
import math
import sqlite3
import struct
import sys
import zlib
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from retoma import Retoma
from retoma.access import Access, Role
from retoma.codec import encode
from tests import nursery

WORD = "fornecedor-de-peças-" + "x0123456789" * 11  # nowhere to break it
MUCH = 1_234_567
ERROR = "the shop answered 503 with <html> in it, after 3 redirects; " * 80
MINUTE = 60_000_000  # microseconds
DAY = 24 * 60  # minutes
WIDTH, HEIGHT = 640, 360
NOW = "SELECT unixepoch() * 1000000"


def _chunk(name: bytes, body: bytes) -> bytes:
    return (
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
    )


def _png() -> bytes:
    """A picture that can be seen: grey that grows lighter to the right."""
    line = b"\0" + bytes(x * 255 // WIDTH for x in range(WIDTH))
    head = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 0, 0, 0, 0)
    chunks = _chunk(b"IHDR", head) + _chunk(b"IDAT", zlib.compress(line * HEIGHT))
    return b"\x89PNG\r\n\x1a\n" + chunks + _chunk(b"IEND", b"")


PNG = _png()


async def furnish_more(app: Retoma) -> dict[str, Any]:
    """To be called before anything holds a slot for ever; the ids that the addresses need."""
    stops = [{"parks": "Ana decides"}] * 3 + [{"product": "peça"}] * 5
    stopped = await app.submit_many("quotes.price", stops, name="lote parado")
    errors = {"product": WORD, "dies": ERROR, "code": "ERROR" + "9" * 90}
    long = await app.submit("quotes.price", errors, key=WORD, correlation=WORD)
    broken = await app.submit("quotes.price", {"breaks": ERROR})
    skipped = await app.submit("quotes.price", {"parks": "nobody needs it any more"})
    await app.run(until_idle=True, slots=4)
    await app.skip(skipped.id, "the customer has left", actor=WORD[:90])
    [done] = await app.jobs(kind="quotes.price", state="done", limit=1)
    return {
        "done": done.id,
        "skipped": skipped.id,
        "long": long.id,
        "broken": broken.id,
        "stopped": stopped.id,
    }


async def furnish_last(app: Retoma, ids: dict[str, Any]) -> None:
    """To be called when every slot is taken: it waits."""
    million = await app.submit_many("matches.scrape", range(60), name="um milhão de partidas")
    [waiting, *_] = await app.jobs(kind="matches.scrape", state="waiting", limit=5)
    scheduled = await app.submit("matches.scrape", 7, delay="30d", priority=-5)
    paused = await app.submit_many("matches.scrape", range(40), name="rodada em pausa")
    await paused.pause(actor="Ana")
    ids |= {"million": million.id, "waiting": waiting.id}
    ids |= {"scheduled": scheduled.id, "paused": paused.id}
    await app.pools.declare(WORD, {WORD: 1, "b": 2})
    await app.limits.set(WORD, 1)
    await app.schedules.pause(WORD[:100], actor="Ana")
    access = Access(await app.database(), app.clock, app.ids)
    await access.invite("Vera", Role.VIEWER, "Ana")
    await access.create_key("robot " + WORD[:90], Role.OPERATOR, actor="Ana", label=WORD[:100])
    key = await access.create_key("robot", Role.VIEWER, actor="Ana", label="grafana")
    await access.rotate_key(key.id, "1h", "Ana")


def dress(database: Path, ids: Mapping[str, Any]) -> None:
    """In a process of its own: whoever closes a file of SQLite's lets go of every lock that its
    process has on it, also those of the other library."""
    words = [sys.executable, "-m", "tests.web.dressed", str(database), json.dumps(dict(ids))]
    nursery.run(words, check=True)


def _dress(database: str, ids: dict[str, Any]) -> None:
    """Numbers as after a busy day; may be done again."""
    with closing(sqlite3.connect(database, timeout=30)) as tables, tables:
        [[now]] = tables.execute(NOW)
        _count(tables, ids["million"])
        _pace(tables, now, ids["million"])
        _alerts(tables, now)
        _runners(tables, now)
        stood = now - 47 * MINUTE
        tables.execute(
            "UPDATE jobs SET progress_at = ?, started_at = ? WHERE id = ?",
            (stood, stood, ids["running"]),
        )


def _count(tables: sqlite3.Connection, batch: int) -> None:
    of_batch = {"done": MUCH, "running": 512, "dead": 1_903, "parked": 1, "waiting": 2_000_000}
    of_all = {**of_batch, "refused": 17}
    for ledger, counted in ((batch, of_batch), (-1, of_all)):
        tables.executemany(
            "INSERT OR REPLACE INTO counts (batch, kind, state, code, n) VALUES (?, ?, ?, ?, ?)",
            [
                (ledger, "matches.scrape", state, "ERROR202" if state == "dead" else "", n)
                for state, n in counted.items()
            ],
        )


def _pace(tables: sqlite3.Connection, now: int, batch: int) -> None:
    """A day that is busy at noon and quiet at night."""
    this = now // MINUTE
    for back in range(DAY):
        busy = 1.1 + math.sin((this - back) / DAY * 2 * math.pi) + 0.3 * math.sin(back / 7)
        passed = 1 if back else now % MINUTE / MINUTE  # this minute is not over
        n = max(int(busy * 700 * passed), 0)
        moved = {"waiting": n + back % 40, "done": n, "dead": n // 90}
        tables.executemany(
            "INSERT OR REPLACE INTO pace (kind, minute, state, code, bucket, n, ms)"
            " VALUES ('matches.scrape', ?, ?, '', 11, ?, ?)",
            [((this - back) * MINUTE, state, n, n * 1_700.0) for state, n in moved.items()],
        )
        tables.execute(
            "INSERT OR REPLACE INTO batch_pace (batch, minute, n) VALUES (?, ?, ?)",
            (batch, (this - back) * MINUTE, n),
        )


def _alerts(tables: sqlite3.Connection, now: int) -> None:
    raised: list[tuple[str, str, str, dict[str, Any]]] = [
        ("HighStuckQuotes", "quotes.price", "warning", {"jobs": MUCH}),
        ("WorkerHealthCheck", "default", "critical", {"waited": 1_900}),
        ("BreakerOpen", "shopping", "warning", {"reason": ERROR[:300]}),
        ("BatchFinished", "2", "info", {"done": 30, "dead": 10}),
        ("BudgetSpent", WORD, "critical", {}),
    ]
    tables.executemany(
        "INSERT OR IGNORE INTO alerts (rule, subject, severity, details, since)"
        " VALUES (?, ?, ?, ?, ?)",
        [(*each, encode(details), now - 12 * MINUTE) for *each, details in raised],
    )
    tables.execute(
        "UPDATE alerts SET acknowledged_by = 'Ana', acknowledged_at = ?, silenced_until = ?"
        " WHERE rule = 'BreakerOpen'",
        (now, now + 60 * MINUTE),
    )


def _runners(tables: sqlite3.Connection, now: int) -> None:
    knows = encode([f"quotes.{n}@1" for n in range(14)])
    for boot, name, state, slots, trouble in (
        ("b00t1ong", WORD, "alive", 64, ERROR[:400]),
        ("b00t1eaving", "runner 2", "leaving", 1_000, None),
        ("b00t1ost", "runner 3", "lost", 8, None),
    ):
        tables.execute(
            "INSERT OR REPLACE INTO runners (boot, name, host, pid, pid_started, version, state,"
            " since, beat_at, lease_until, slots, knows, trouble)"
            " VALUES (?, ?, 'elsewhere.example.org 1', 4711, '1', '0.7.0', ?, ?, ?, ?, ?, ?, ?)",
            (boot, name, state, now, now, now + 20 * MINUTE, slots, knows, trouble),
        )


if __name__ == "__main__":
    _dress(sys.argv[1], json.loads(sys.argv[2]))
