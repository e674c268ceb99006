"""The server and both services as programs of their own: whatever comes in by their doors, none is killed, none takes the
memory of a small container, and others are answered meanwhile."""

import asyncio
import random
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, closing, suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

from retoma.console.connections import raise_descriptors
from tests.cost import web
from tests.cost.family import MEBIBYTE, Family
from tests.cost.inputs import JSON
from tests.cost.probe import Answer
from tests.cost.programs import KEYED, MEMORY, Program, program
from tests.cost.test_cost import worker_of, writer_of
from tests.web.aids import ROOT_KEY
from tests.web.living import APPLICATIONS

AT_ONCE = 4  # inputs
PIECE = 64 * 1024
OTHERS = 0.2  # seconds for somebody else's page while inputs are read
CROWDED = 1.0  # the same among thousands of connections
PAGES = {"serve": "/api/me", "worker-service": "/session/status", "writer-service": "/health"}
NOT_KEPT = "it was answered before it had come whole"


class Connection:
    """One client, over a socket."""

    def __init__(self, running: Program, browser: Mapping[str, str] | None = None) -> None:
        self._host = f"127.0.0.1:{running.port}"
        self.browser = browser or {}  # headers of one in which an operator is signed in

    async def ask(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes = b"",
        query: str = "",
    ) -> int | str:
        """The status of the answer; what happened instead, where there was none."""
        given = {"host": self._host, "content-length": str(len(body)), **headers}
        lines = [f"{method} {path}{'?' if query else ''}{query} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in given.items()]
        host, port = self._host.split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        try:
            sending = asyncio.create_task(_send(writer, "\r\n".join([*lines, "", ""]), body))
            line = await asyncio.wait_for(reader.readline(), 120)
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
            return int(line.split()[1]) if line else NOT_KEPT
        except OSError:
            return NOT_KEPT
        finally:
            writer.close()


async def _send(writer: asyncio.StreamWriter, head: str, body: bytes) -> None:
    writer.write(head.encode("latin-1"))
    for at in range(0, len(body), PIECE):
        writer.write(body[at : at + PIECE])
        await writer.drain()
    await writer.drain()


def worst(answers: Sequence[Answer]) -> float:
    """What all but one in a hundred took at most."""
    return sorted(each.charged for each in answers)[len(answers) * 99 // 100]


# — every door, with the largest inputs that it takes —


def doors_of_a_service(site: Any) -> Iterator[Family]:
    for door in web.doors_of(site, set(), set()):
        path = door.path.replace("{", "").replace("}", "")
        for who, key in (("", ROOT_KEY), (" by a stranger", None)):
            yield from web._of(
                door.method, path, web.AS_JSON, JSON, web.CHECKED, key=key, who=who
            )
    yield from (each for each in web.FAMILIES if each.door.startswith("header "))


async def signed_in(running: Program) -> dict[str, str]:
    """Headers of a browser in which an operator is signed in."""
    own = {"origin": running.origin, "sec-fetch-site": "same-origin"}
    async with httpx2.AsyncClient(base_url=running.origin, headers=KEYED) as admin:
        wanted = {"person": "Olga", "role": "operator"}
        link = (await admin.post("/api/people", json=wanted)).json()["link"]
        entered = await admin.post(link, headers=own)
    return {**own, "cookie": entered.headers["set-cookie"].partition(";")[0]}


async def feed(
    running: Program, families: Sequence[Family], browser: Mapping[str, str] | None = None
) -> Counter[int | str]:
    """The largest input of each, a few at a time."""
    places = asyncio.Semaphore(AT_ONCE)

    async def one(family: Family) -> object:
        async with places:
            given = await asyncio.to_thread(family.make, family.limit)
            return await family.read(Connection(running, browser), given)

    return Counter(await asyncio.gather(*map(one, families)))  # type: ignore[arg-type]


def _said(log: Path, statuses: Collection[int]) -> list[str]:
    """What the server logged of such answers, and of trouble."""
    wanted = (
        *('"level": "warning"', '"level": "error"'),
        *(f'"status": {each},' for each in statuses),
    )
    lines = log.read_text().splitlines()
    return [line[:300] for line in lines if any(each in line for each in wanted)][:20]


def check(running: Program, seconds: float) -> None:
    assert running.child.poll() is None, running.log.read_text()[-2000:]
    print(f"{running.peak >> 20} MiB at the peak, {len(running.answers)} answers")
    assert MEMORY > running.peak, f"{running.peak >> 20} MiB"
    other = [each for each in running.answers if each.status != 200]
    assert not other, (other, _said(running.log, {each.status for each in other}))
    assert seconds > worst(running.answers)
    print(
        f"{len(running.answers)} answers, at most {max(each.charged for each in running.answers):.3f} s, 99 of 100 within"
        f" {worst(running.answers):.3f} s; {running.peak >> 20} MiB at the peak"
    )


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("which", PAGES)
async def test_no_input_ends_a_program_or_keeps_others_waiting(tmp_path: Path, which: str):
    page = PAGES[which]
    if which == "serve":
        wanted, words = list(web.FAMILIES), []
    elif which == "worker-service":
        wanted = list(doors_of_a_service(worker_of(tmp_path)))
        words = ["--site", "http://127.0.0.1:1", "--data", str(tmp_path)]
    else:
        wanted = list(doors_of_a_service(writer_of(tmp_path)))
        words = ["--database", f"sqlite:///{tmp_path / 'service.db'}"]
    with program(tmp_path, which, *words, RETOMA_APPLICATIONS=APPLICATIONS) as running:
        browser = await signed_in(running) if which == "serve" else None
        with running.probed(page):
            told = await feed(running, wanted, browser)
        print(which, len(wanted), "inputs:", dict(told))
        check(running, OTHERS)

    failed = [line for line in running.log.read_text().splitlines() if "request.failed" in line]
    assert not [each for each in told if isinstance(each, int) and each >= 500], failed


# — many connections at once —

SLOW, STREAMS, UPLOADS = 2_000, 500, 50
TRIES = 20
TABLE = b"descricao\n" + b"".join(b"geladeira %d\n" % n for n in range(9_990))
FILE = (
    b'--b\r\nContent-Disposition: form-data; name="arquivos"; filename="a.txt"\r\n\r\n%s\r\n--b--\r\n'
    % (b"texto " * (3 * MEBIBYTE))
)
LOTE = b'{"quotes": [%s]}' % b",".join([b'"%s"' % (b"a" * 60_000)] * 270)
SENT = (
    ("/api/lotes/import", "text/csv", TABLE, 201),
    ("/classificador/arquivos", "multipart/form-data; boundary=b", FILE, 200),
    ("/api/lotes", "application/json", LOTE, 422),  # 16 MiB that are no quotes
)


async def trickle(running: Program, over: asyncio.Event) -> None:
    """A head that never ends, on a connection that is opened again when it was closed."""
    while not over.is_set():
        with suppress(OSError):
            _, writer = await asyncio.open_connection("127.0.0.1", running.port)
            with closing(writer):
                while not over.is_set() and not writer.is_closing():
                    writer.write(b"X: 1\r\n")
                    await writer.drain()
                    await _rest()
        await _rest()


async def _rest() -> None:
    await asyncio.sleep(random.uniform(1, 3))


@pytest.mark.soak
@pytest.mark.timeout(900)
async def test_a_page_is_answered_among_slow_clients_streams_and_uploads(tmp_path: Path):
    assert raise_descriptors() > 2 * (SLOW + STREAMS + UPLOADS)
    many = {"RETOMA_STREAMS": "600", "RETOMA_STREAMS_EACH": "600"}
    with program(tmp_path, "serve", RETOMA_APPLICATIONS=APPLICATIONS, **many) as running:
        over = asyncio.Event()
        with running.probed("/"):
            async with AsyncExitStack() as stack:
                slow = [asyncio.create_task(trickle(running, over)) for _ in range(SLOW)]
                streams = [await listening(running, stack) for _ in range(STREAMS)]
                uploads = await asyncio.gather(
                    *(sent(running, SENT[n % len(SENT)]) for n in range(UPLOADS))
                )
                ended = [each for each in streams if each.at_eof()]
                over.set()
                await asyncio.gather(*slow)
        print("uploads that were not answered as they should:", Counter(filter(None, uploads)))
        check(running, CROWDED)

    assert [] == ended
    assert [None] * UPLOADS == uploads


async def listening(running: Program, stack: AsyncExitStack) -> asyncio.StreamReader:
    """A stream; as a browser does, it comes again where it was closed before anybody had read what it asks."""
    head = f"GET /api/stream HTTP/1.1\r\nHost: 127.0.0.1:{running.port}\r\nx-api-key: {ROOT_KEY}\r\n\r\n"
    for _ in range(TRIES):
        with suppress(OSError):
            reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
            stack.callback(writer.close)
            writer.write(head.encode())
            line = await reader.readline()
            if line:
                assert line.startswith(b"HTTP/1.1 200 ")
                return reader
    raise AssertionError("no stream could be opened")


async def sent(running: Program, which: tuple[str, str, bytes, int]) -> object:
    """None: it was answered as it should be."""
    path, media, body, expected = which
    headers = {**KEYED, "content-type": media}
    for _ in range(TRIES):
        answered = await Connection(running).ask("POST", path, headers, body)
        if answered != NOT_KEPT:
            break
    return None if answered == expected else (path, answered)
