"""What the tests of the writer have in common: a table of ads, a source that says what it is told, a desk."""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from fastapi import FastAPI

from retoma import Retoma, Retry, db
from retoma.db import Database, verbatim
from retoma.outbound import Outbound
from retoma.programs.writer import Caps, Desk, Wanted
from retoma.programs.writer.api import build_writer
from retoma.secret import Secret
from retoma.vault import Vault
from retoma.web import Bound, Face
from tests.outbound.fakes import Asked, Server, answer, serving

KEY = "CANARY-" + "w" * 40
TOKEN = "CANARY-token-of-the-source"  # noqa: S105 — of a test
BASE = "http://127.0.0.1"
GROUP = 10  # items: many groups of little
AT_ONCE = Retry(attempts=2, base=0, cap=0)
PATIENT = Bound(per_key=1e6, per_address=1e6)

ADS = {
    "sqlite": """CREATE TABLE ads (id text PRIMARY KEY, title varchar(50) NOT NULL, n integer,
                 price numeric, active boolean, seen_at timestamp, more json,
                 made_at text NOT NULL DEFAULT 'then', CHECK (n IS NULL OR n < 1000000))""",
    "postgres": """CREATE TABLE public.ads (id text PRIMARY KEY, title varchar(50) NOT NULL,
                   n integer, price numeric, active boolean, seen_at timestamptz, more jsonb,
                   made_at text NOT NULL DEFAULT 'then', CHECK (n IS NULL OR n < 1000000))""",
}


def ad(n: int, /, **other: Any) -> dict[str, Any]:
    return {
        "id": f"ad{n}",
        "title": f"Ad número {n}",
        "n": n,
        "price": n + 0.5,
        "active": n % 2 == 0,
        "seen_at": "2026-01-15T10:30:00Z",
        **other,
    }


def document(ads: Sequence[Any], **beside: Any) -> bytes:
    return json.dumps({"job_id": "x", **beside, "ads": list(ads)}).encode()


def asked(url: str, **config: Any) -> dict[str, Any]:
    told = {"table": "ads", "schema": "public", "operation": "upsert", "conflict_key": "id"}
    path = config.pop("json_path", "ads")
    return {
        "config": {**told, **config},
        "source": {"type": "url", "url": url, "json_path": path},
    }


@dataclass(slots=True)
class Shop:
    """A target with a table, a source, and the writer between them."""

    target: Database
    source: Server
    desk: Desk
    site: FastAPI
    http: httpx2.AsyncClient
    says: dict[str, bytes]  # what the source answers, by its path

    @property
    def url(self) -> str:
        return f"{self.source.url}/data.json"

    def tell(self, ads: Sequence[Any], path: str = "/data.json", **beside: Any) -> None:
        self.says[path] = answer(200, document(ads, **beside), content_type="application/json")

    async def process(self, body: dict[str, Any]) -> httpx2.Response:
        return await self.http.post("/process", json=body)

    async def status(self, job: str) -> dict[str, Any]:
        told = await self.http.get(f"/status/{job}")
        assert 200 == told.status_code, told.text
        found: dict[str, Any] = told.json()
        progress = found["progress"]
        stored, failed = progress["success_count"], progress["failed_count"]
        assert progress["processed"] == stored + failed
        return found

    async def ended(self, job: str) -> dict[str, Any]:
        while True:
            found = await self.status(job)
            if found["status"] != "processing":
                return found
            await asyncio.sleep(0.01)

    async def done(self, **config: Any) -> dict[str, Any]:
        """One request, to its end."""
        made = await self.process(asked(self.url, **config))
        assert 200 == made.status_code, made.text
        return await self.ended(made.json()["job_id"])

    async def rows(self) -> list[tuple[Any, ...]]:
        return await rows_of(self.target)


async def rows_of(target: Database) -> list[tuple[Any, ...]]:
    select = verbatim("SELECT * FROM ads ORDER BY id")
    return (await target.read(lambda tx: tx.for_caller(select)))[0]


def hash_of(rows: Sequence[tuple[Any, ...]]) -> str:
    return hashlib.sha256(repr(rows).encode()).hexdigest()


async def with_table(url: str) -> Database:
    target = db.open(url)
    make = verbatim(ADS[target.dialect])
    await target.write(lambda tx: tx.for_caller(make), verb="make")
    return target


def desk_at(folder: Path, *, caps: Caps | None = None) -> Desk:
    retoma = Retoma(f"sqlite:///{folder / 'writer.db'}?synchronous=normal")

    def vault(own: Database) -> Vault:
        return Vault(own, retoma.ids, key_file=folder / "writer.key")

    return Desk(retoma, vault, Outbound(private={"127.0.0.1"}), caps)


async def add_profile(desk: Desk, target: str, origin: str, **wanted: Any) -> None:
    told = {
        "name": "ads_v1",
        "table": "ads",
        "schema": "public",
        "conflict_key": "id",
        "json_path": "ads",
        "origins": [origin],
        **wanted,
    }
    headers = {"authorization": Secret(f"Bearer {TOKEN}")}
    await desk.add(Wanted(**told), Secret(target), headers, actor="test")


@asynccontextmanager
async def shop(
    url: str,
    folder: Path,
    *,
    caps: Caps | None = None,
    bound: Bound = PATIENT,
    group: int = GROUP,
    **wanted: Any,
) -> AsyncIterator[Shop]:
    says: dict[str, bytes] = {}

    def told(request: Asked) -> bytes:
        if request.headers.get("authorization") != f"Bearer {TOKEN}":
            return answer(401)
        return says.get(request.target, answer(404))

    target = await with_table(url)
    desk = desk_at(folder, caps=caps)
    try:
        async with serving(told) as source, desk.retoma:
            await desk.ready()
            await add_profile(desk, url, source.url, **wanted)
            face = Face(port=80)
            site = build_writer(
                desk, face, api_key=KEY, bound=bound, retry=AT_ONCE, group=group
            )
            transport = httpx2.ASGITransport(app=site)
            async with (
                site.router.lifespan_context(site),
                httpx2.AsyncClient(
                    transport=transport, base_url=BASE, headers={"x-api-key": KEY}
                ) as http,
            ):
                yield Shop(target, source, desk, site, http, says)
    finally:
        target.close()
