"""Pages through a pool of proxies, where a knob says so: one page a proxy at a time, and none free is a wait."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from retoma.apps.matches import store
from retoma.engine.ports import Clock
from tests.apps.matches.aids import WHO, House, house
from tests.engine.aids import eventually, running

POOL = "jogos"


class Forwarder:
    """A proxy for plain http: it asks for what it is told to, and says by whom."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.at_once = 0
        self.most = 0

    async def __call__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            where = urlsplit(head.split(" ", 2)[1])
            site, there = await asyncio.open_connection(where.hostname, where.port)
            asked = (
                f"GET {where.path} HTTP/1.1\r\nhost: {where.netloc}\r\nconnection: close\r\n"
            )
            there.write(f"{asked}forwarded: by=_{self.name}\r\n\r\n".encode())
            writer.write(await site.read())
            await writer.drain()
            there.close()
            writer.close()
        finally:
            self.at_once -= 1


@asynccontextmanager
async def proxied(there: House, *names: str) -> AsyncIterator[list[Forwarder]]:
    made = [Forwarder(name) for name in names]
    servers = [await asyncio.start_server(each, "127.0.0.1", 0) for each in made]
    for each, server in zip(made, servers, strict=True):
        port = server.sockets[0].getsockname()[1]
        await there.app.pools.declare(POOL, {each.name: f"http://127.0.0.1:{port}"})
    await there.app.knobs.set("matches.proxies", POOL, actor=WHO)
    try:
        yield made
    finally:
        for server in servers:
            server.close()


async def test_each_page_comes_through_a_proxy_that_nobody_else_has(database_url):
    async with house(database_url) as there, proxied(there, "eins", "zwei") as proxies:
        run = await there.scraped()

        assert (await there.seen(run))["complete"]
        asked = Counter(each["proxy"] for each in there.site.log())
        assert {"eins", "zwei"} == set(asked)
        assert 11 == asked.total()
        assert {1} == {each.most for each in proxies}
        assert {1} == {each["attempts"] for each in (await there.tasks(run)).values()}


async def test_where_every_proxy_is_taken_a_match_waits_and_no_attempt_is_spent(database_url):
    async with house(database_url, clock=Clock()) as there, proxied(there, "eins"):
        await there.app.pools.switch(POOL, ["eins"], on=False, reason="test")
        run, _ = await there.start()

        async def set_aside() -> bool:
            return bool(await there.rows("SELECT 1 FROM jobs WHERE aside IS NOT NULL"))

        async def complete() -> bool:
            return bool((await there.seen(run))["complete"])

        async with running(there.app):
            await eventually(set_aside)
            assert 0 == there.asked().total()
            await there.app.pools.switch(POOL, ["eins"], on=True, reason="test")
            await eventually(complete)
        assert {1} == {each["attempts"] for each in (await there.tasks(run)).values()}


async def test_a_pool_that_is_not_there_is_told_by_its_setting_and_costs_no_error_of_ours(
    database_url,
):
    """Named by mistake, or removed: the round says so, and goes on when the setting is right."""
    async with house(database_url) as there:
        await there.app.knobs.set("matches.proxies", "nenhum", actor=WHO)
        run = await there.scraped()

        told = await there.seen(run)
        assert ("FAILED", "NO_PROXY") == (told["status"], told["error_code"])
        assert "matches.proxies: there is no pool 'nenhum'" == told["error"]["message"]
        assert 0 == there.asked().total()
        await there.app.knobs.set("matches.proxies", "", actor=WHO)
        await there.app.write(lambda tx: store.runs.retry_failed(tx, run=run, actor=WHO))
        await there.drained()
        assert (await there.seen(run))["complete"]


async def test_what_is_no_address_of_a_proxy_is_told_without_a_word_of_it(database_url):
    async with house(database_url) as there:
        await there.app.pools.declare(POOL, {"bad": "http://user:hush@127.0.0.1:1"})
        await there.app.knobs.set("matches.proxies", POOL, actor=WHO)
        run = await there.scraped()

        told = await there.seen(run)
        assert ("FAILED", "NO_PROXY") == (told["status"], told["error_code"])
        assert "hush" not in str(told["error"])
        assert 0 == there.asked().total()
