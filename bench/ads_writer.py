"""The writer beside the plainest way to bring the same file into the same table: COPY, then one upsert."""

import asyncio
import contextlib
import http.server
import json
import socket
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import psycopg

from bench.child import beside, call
from bench.compare import Figures, Measure
from bench.memory import told
from bench.places import Places

HERE = "bench.ads_writer"
LIMIT = 600.0  # seconds
TABLE = """CREATE TABLE public.ads (id text PRIMARY KEY, title text NOT NULL, advertiser text NOT NULL,
    url text, media_type text, language text, n integer, price numeric, active boolean,
    seen_at timestamptz)"""
COLUMNS = ("id", "title", "advertiser", "url", "media_type", "language", "n", "price", "active", "seen_at")  # fmt: skip


def ad(n: int) -> dict[str, Any]:
    return {
        "id": f"ad{n:09d}",
        "title": f"Anúncio número {n}: leve três e pague dois",
        "advertiser": f"Loja {n % 5_000}",
        "url": f"https://example.org/ads/{n}?from=library",
        "media_type": ("image", "video")[n % 2],
        "language": ("pt", "en", "es")[n % 3],
        "n": n,
        "price": n % 1_000 + 0.99,
        "active": n % 7 != 0,
        "seen_at": "2026-01-15T10:30:00Z",
    }


def writer(count: int) -> Measure:
    """Ads a second, and the most memory of the process in megabytes."""

    def measure(places: Places) -> Figures:
        url = prepared(places, "writer")
        with source(places, count) as (_, origin):
            made = call(
                f"{HERE}:process",
                limit=LIMIT,
                url=url,
                own=places.file("writer"),
                origin=origin,
                ads=count,
            )
        return count / made["seconds"], made["megabytes"]

    return measure


def plain(count: int) -> Measure:
    def measure(places: Places) -> Figures:
        url = prepared(places, "plain")
        with source(places, count) as (file, _):
            made = call(f"{HERE}:copied", limit=LIMIT, url=url, file=file)
        return count / made["seconds"], made["megabytes"]

    return measure


def prepared(places: Places, side: str) -> str:
    url = places.postgres(side)
    with psycopg.connect(url) as connection:
        connection.execute(TABLE)
    return url


@contextlib.contextmanager
def source(places: Places, count: int) -> Iterator[tuple[str, str]]:
    """A file of so many ads, and where it is served by a process of its own."""
    with tempfile.TemporaryDirectory(dir=places.folder) as folder:
        file = Path(folder) / "data.json"
        with file.open("w", encoding="utf-8") as out:
            out.write('{"ads": [')
            for n in range(count):
                out.write(f"{',' if n else ''}{json.dumps(ad(n), ensure_ascii=False)}")
            out.write("]}")
        port = free_port()
        with beside(f"{HERE}:serve", folder=folder, port=port):
            wait_for(port)
            yield str(file), f"http://127.0.0.1:{port}"


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def wait_for(port: int) -> None:
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return


# — in processes of their own —


def serve(folder: str, port: int) -> None:
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=folder)
    http.server.ThreadingHTTPServer(("127.0.0.1", port), handler).serve_forever()


def process(url: str, own: str, origin: str, ads: int) -> dict[str, float]:
    return asyncio.run(_process(url, own, origin, ads))


async def _process(url: str, own: str, origin: str, count: int) -> dict[str, float]:
    """As the service does it, from the request to the last row, but for the HTTP of the request."""
    from retoma import Retoma, State
    from retoma.outbound import Outbound
    from retoma.programs.writer import Desk, Wanted
    from retoma.programs.writer.model import Order
    from retoma.programs.writer.story import KIND, writer_kind
    from retoma.secret import Secret
    from retoma.vault import Vault

    retoma = Retoma(f"sqlite:///{own}")
    key = Path(own).with_suffix(".key")
    desk = Desk(
        retoma,
        lambda database: Vault(database, retoma.ids, key_file=key),
        Outbound(private={"127.0.0.1"}),
    )
    retoma.kinds.add(writer_kind(desk))
    wanted = Wanted(
        name="ads",
        table="ads",
        schema="public",
        conflict_key="id",
        json_path="ads",
        origins=[origin],
    )
    async with retoma:
        await desk.ready()
        await desk.add(wanted, Secret(url), {}, actor="bench")
        began = perf_counter()
        made = await retoma.submit(KIND, Order(profile="ads", url=f"{origin}/data.json"))
        await retoma.run(until_idle=True)
        took = perf_counter() - began
        job = await retoma.get(made.id)
        assert job.state is State.DONE, job
        report = json.loads(job.result or "{}")
        assert (count, 0) == (report["stored"], report["failed"]), report
        await desk.close()
    return {"seconds": took, "megabytes": told("VmHWM")}


def copied(url: str, file: str) -> dict[str, float]:
    listed = ", ".join(COLUMNS)
    updates = ", ".join(f"{each} = excluded.{each}" for each in COLUMNS[1:])
    with psycopg.connect(url) as connection:
        began = perf_counter()
        with Path(file).open("rb") as opened:
            ads = json.load(opened)["ads"]
        connection.execute("CREATE TEMP TABLE fresh (LIKE public.ads) ON COMMIT DROP")
        with (
            connection.cursor() as cursor,
            cursor.copy(f"COPY fresh ({listed}) FROM STDIN") as copy,
        ):
            for each in ads:
                copy.write_row([each[name] for name in COLUMNS])
        connection.execute(
            f"INSERT INTO public.ads ({listed}) SELECT {listed} FROM fresh"  # noqa: S608 — ours
            f" ON CONFLICT (id) DO UPDATE SET {updates}"
        )
        connection.commit()
        return {"seconds": perf_counter() - began, "megabytes": told("VmHWM")}
