"""Through a proxy that wants credentials; it is told addresses we have looked at (PROMISES 5.3, 5.4)."""

import asyncio
import base64
import os
import ssl
from contextlib import asynccontextmanager, suppress

import pytest

from retoma import Permanent, Transient
from retoma.outbound import Outbound, Policy, Proxy
from retoma.outbound.client import _load_system_trust
from retoma.secret import Secret
from tests.outbound.certificates import Authority
from tests.outbound.fakes import OK, OTHER, PUBLIC, Names, Streets, serving, spying

PASSWORD = "canary-password"  # noqa: S105 — of nobody
WRONG = "canary-of-somebody-else"
BASIC = "Basic " + base64.b64encode(f"me:{PASSWORD}".encode()).decode()
SHOP = Policy(purpose="shop", hosts={"shop.example"}, schemes={"http", "https"}, deadline=20)


class Gate:
    """A proxy: CONNECT and plain requests, for those it knows. `leads`: where everything goes."""

    def __init__(self) -> None:
        self.heads: list[list[str]] = []
        self.leads = 0
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, EOFError, asyncio.CancelledError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
            self.heads.append(head)
            if f"Proxy-Authorization: {BASIC}" not in head:
                writer.write(b"HTTP/1.1 407 canary\r\ncontent-length: 0\r\n\r\n")
            elif head[0].startswith("CONNECT"):
                writer.write(b"HTTP/1.1 200 go on\r\n\r\n")
                await self._join(reader, writer)
            else:
                writer.write(OK)
            await writer.drain()
            writer.close()
            await writer.wait_closed()

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up = await asyncio.open_connection("127.0.0.1", self.leads)
        try:
            await asyncio.gather(_pump(reader, up[1]), _pump(up[0], writer))
        finally:
            up[1].transport.abort()


async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while data := await source.read(65536):
        target.write(data)
        await target.drain()
    target.transport.abort()


@asynccontextmanager
async def gate(**options):
    proxy = Gate()
    listening = await asyncio.start_server(proxy.serve, "127.0.0.1", 0, **options)
    proxy.port = listening.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        listening.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        if others:
            await asyncio.wait(others)  # whoever still serves ends with its client


@pytest.fixture(scope="module")
def authority():
    return Authority()


async def test_a_tunnel_leads_to_the_address_that_was_looked_at_and_keeps_the_name(authority):
    seen: list[str | None] = []
    async with serving(ssl=authority.server("shop.example", seen)) as server, gate() as proxy:
        proxy.leads = server.port
        streets = Streets(**{OTHER: proxy.port})
        names = Names(shop_example=[[PUBLIC], ["127.0.0.1"]], proxy_example=[[OTHER]])
        given = Proxy(host="proxy.example", port=3128, user="me", password=Secret(PASSWORD))
        async with Outbound(resolver=names, network=streets, trust=authority.trust) as out:
            got = await out.get(SHOP, "https://shop.example/x", proxy=given)

    assert b"ok" == got.body
    assert [f"CONNECT {PUBLIC}:443 HTTP/1.1"] == [head[0] for head in proxy.heads]
    assert ["shop.example"] == seen
    assert "shop.example" == server.asked[0].headers["host"]
    assert "proxy-authorization" not in server.asked[0].headers
    assert [(OTHER, 3128)] == streets.dialled


async def test_a_proxy_that_resolves_is_told_the_name(authority):
    async with serving(ssl=authority.server("shop.example")) as server, gate() as proxy:
        proxy.leads = server.port
        streets = Streets(**{OTHER: proxy.port})
        given = Proxy(host=OTHER, port=3128, user="me", password=PASSWORD, resolves=True)
        async with Outbound(resolver=Names(), network=streets, trust=authority.trust) as out:
            await out.get(SHOP, "https://shop.example/x", proxy=given)
            await out.get(SHOP, "http://shop.example/x", proxy=given)

    assert ["CONNECT shop.example:443 HTTP/1.1", "GET http://shop.example/x HTTP/1.1"] == [
        head[0] for head in proxy.heads
    ]


async def test_a_proxy_may_be_spoken_to_under_tls(authority):
    seen: list[str | None] = []
    async with (
        serving(ssl=authority.server("shop.example")) as server,
        gate(ssl=authority.server("proxy.example", seen)) as proxy,
    ):
        proxy.leads = server.port
        streets = Streets(**{OTHER: proxy.port})
        names = Names(shop_example=[[PUBLIC]], proxy_example=[[OTHER]])
        given = Proxy(host="proxy.example", port=3128, user="me", password=PASSWORD, tls=True)
        async with Outbound(resolver=names, network=streets, trust=authority.trust) as out:
            await out.get(SHOP, "https://shop.example/x", proxy=given)

    assert ["proxy.example"] == seen


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_row_34_a_proxy_that_does_not_know_us_is_a_matter_for_a_person(scheme):
    async with gate() as proxy:
        streets = Streets(**{OTHER: proxy.port})
        given = Proxy(host=OTHER, port=3128, user="me", password=WRONG, resolves=True)
        async with Outbound(resolver=Names(), network=streets) as out:
            with pytest.raises(Permanent) as refused:
                await out.post(SHOP, f"{scheme}://shop.example/x", json={}, proxy=given)

    assert "config" == refused.value.code
    assert "canary" not in str(refused.value)


async def test_plain_http_goes_only_through_a_proxy_that_resolves():
    streets = Streets()
    async with Outbound(resolver=Names(shop_example=[[PUBLIC]]), network=streets) as out:
        with pytest.raises(Permanent, match="resolves names itself"):
            await out.get(SHOP, "http://shop.example/x", proxy=Proxy(host=OTHER, port=3128))

    assert [] == streets.dialled


async def test_a_proxy_is_no_way_around_the_rules():
    """Neither to inside addresses through it, nor to an inside address that calls itself a proxy."""
    names = Names(shop_example=[["10.0.0.7"]], proxy_example=[["127.0.0.1"]])
    through = Proxy(host=OTHER, port=3128)
    inside = Proxy(host="proxy.example", port=3128, resolves=True)
    streets = Streets()
    async with Outbound(resolver=names, network=streets) as out:
        for proxy, url in (
            (through, "https://shop.example/"),
            (through, "https://evil.example/"),
            (inside, "https://shop.example/"),
        ):
            with spying() as seen, pytest.raises(Permanent) as refused:
                await out.get(SHOP, url, proxy=proxy)
            assert ("ssrf_blocked", []) == (refused.value.code, seen)

    assert [] == streets.dialled


async def test_a_proxy_that_is_not_there_is_no_answer():
    async with Outbound(resolver=Names(), network=Streets()) as out:
        with pytest.raises(Transient) as failed:
            await out.get(
                SHOP,
                "https://shop.example/",
                proxy=Proxy(host=OTHER, port=3128, resolves=True),
            )

    assert "no_answer" == failed.value.code


async def test_the_environment_is_heard_only_by_a_purpose_that_asks(monkeypatch):
    async with serving() as server, gate() as proxy:
        address = f"http://me:{PASSWORD}@127.0.0.1:{proxy.port}"
        monkeypatch.setitem(os.environ, "http_proxy", address)
        monkeypatch.setitem(os.environ, "no_proxy", "")
        names = Names(shop_example=[["127.0.0.1"]])
        url = f"http://shop.example:{server.port}/x"
        async with Outbound(resolver=names) as out:
            plain = Policy.toward("x", url, private=True)
            asking = Policy.toward("x", url, private=True, environment=True)
            await out.get(plain, url)
            unheard = len(proxy.heads)
            await out.get(asking, url)
            monkeypatch.setitem(os.environ, "no_proxy", "shop.example")
            await out.get(asking, url)

    assert (0, 1) == (unheard, len(proxy.heads))
    assert f"GET {url} HTTP/1.1" == proxy.heads[0][0]
    assert 2 == len(server.asked)


async def test_a_certificate_of_somebody_else_is_not_trusted(authority):
    async with serving(ssl=authority.server("other.example")) as server:
        streets = Streets().leads(PUBLIC, server)
        names = Names(shop_example=[[PUBLIC]])
        for trust in (authority.trust, None):
            async with Outbound(resolver=names, network=streets, trust=trust) as out:
                with pytest.raises(Transient, match="certificate is not trusted"):
                    await out.get(SHOP, "https://shop.example/")

    assert [] == server.asked


async def test_names_on_one_address_do_not_share_a_connection(authority):
    """Or the certificate of one would speak for the other."""
    seen: list[str | None] = []
    both = Policy(purpose="x", hosts={"a.shop.example", "b.shop.example"})
    async with serving(ssl=authority.server("*.shop.example", seen)) as server:
        streets = Streets().leads(PUBLIC, server)
        names = Names(a_shop_example=[[PUBLIC]], b_shop_example=[[PUBLIC]])
        async with Outbound(resolver=names, network=streets, trust=authority.trust) as out:
            for host in ("a", "b", "a", "b"):
                await out.get(both, f"https://{host}.shop.example/")

    assert ["a.shop.example", "b.shop.example"] == seen
    assert 2 == server.connections


async def test_the_trust_of_this_machine_is_not_set_by_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none"))

    trust = await _load_system_trust()

    assert trust.verify_mode is ssl.CERT_REQUIRED
    assert trust.check_hostname
