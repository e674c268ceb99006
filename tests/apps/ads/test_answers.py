"""What each endpoint may answer, or not: a code and whose trouble it is, over real sockets (§9.3)."""

import gzip
import json
import socket
from collections.abc import Callable
from typing import Any

import pytest

from retoma.apps.ads.clients import WorkerClient, WriterClient
from retoma.apps.ads.clients.answers import (
    Endpoint,
    Met,
    in_their_words,
    meaning,
    met,
)
from retoma.apps.ads.clients.passed_over import Without
from retoma.apps.ads.clients.services import MOST
from retoma.apps.ads.model import Proxy, Worker, Writer
from retoma.apps.ads.store.failures import in_portuguese
from retoma.engine.rules.errors import ErrorClass, Permanent, Transient, Unsure
from retoma.outbound import Outbound
from retoma.outbound.client import FAILURES
from retoma.secret import Secret
from tests.apps.ads.fakes import told
from tests.outbound.fakes import answer, endless, redirect, serving

pytestmark = pytest.mark.usefixtures("forgetful")  # the document's own password: "pass"

PROXY = Proxy("PRX-1", "one", "proxy.example.com", 8080, "user", Secret("pass"))
CALLS: dict[Endpoint, Callable[[WorkerClient, WriterClient], Any]] = {
    Endpoint.OPEN_SESSION: lambda worker, _: worker.open_session(PROXY),
    Endpoint.SESSION_STATUS: lambda worker, _: worker.session_status(),
    Endpoint.CLOSE_SESSION: lambda worker, _: worker.close_session(),
    Endpoint.START_SCRAPE: lambda worker, _: worker.start_scrape("key", {}),
    Endpoint.FIND_SCRAPE: lambda worker, _: worker.find_scrape("key"),
    Endpoint.SCRAPE_STATUS: lambda worker, _: worker.scrape("job"),
    Endpoint.CANCEL_SCRAPE: lambda worker, _: worker.cancel_scrape("job"),
    Endpoint.PROCESS: lambda _, writer: writer.process({}),
    Endpoint.WRITE_STATUS: lambda _, writer: writer.status("job"),
    Endpoint.HEALTH: lambda _, writer: writer.healthy(),
}
# Endpoint by endpoint: 400 401 403 404 409 413 422 429 500 503, redirect, not JSON, too large, refused.
# A code of the document, or `config`: the mission waits for a person. `?` where it may have happened:
# then it is looked for under its key. `-`: an answer like others.
ASKED = (
    400,
    401,
    403,
    404,
    409,
    413,
    422,
    429,
    500,
    503,
    "redirect",
    "html",
    "large",
    "refused",
)
TABLE = {
    Endpoint.OPEN_SESSION: "500 502 502 502 502 500 500 502 100 502 502 -   100 502",
    Endpoint.SESSION_STATUS: "502 502 502 -   502 502 502 502 502 502 502 502 502 502",
    Endpoint.CLOSE_SESSION: "502 502 502 -   502 502 502 502 502 502 502 -   502 502",
    Endpoint.START_SCRAPE: "500 config config 200 502 500 config throttled ? 502 ? ? ? 502",
    Endpoint.FIND_SCRAPE: "-   -   -   -   -   -   -   502 -   502 -   -   502 502",
    Endpoint.SCRAPE_STATUS: (
        "202 config config -   202 202 config 202 202 202 202 202 202 202"
    ),
    Endpoint.CANCEL_SCRAPE: "202 202 202 -   -   202 202 202 202 202 202 -   202 202",
    Endpoint.PROCESS: "303 config config config 300 303 config throttled ? 301 ? ? ? 301",
    Endpoint.WRITE_STATUS: ("300 config config -   300 300 config 300 300 301 300 300 300 301"),
    Endpoint.HEALTH: "301 301 301 301 301 301 301 301 301 -   301 301 301 301",
}


def said(what: int | str) -> bytes:
    match what:
        case "redirect":
            return redirect("http://169.254.169.254/latest/meta-data")
        case "html":
            return answer(200, b"<html>maintenance</html>", content_type="text/html")
        case "large":
            return answer(200, b'{"status":"' + b"x" * MOST + b'"}')
        case 429:
            return told(429, {}, retry_after="7")
        case int(status):
            return told(status, {"detail": "x"})
        case _:
            raise AssertionError(what)


def clients(out: Outbound, url: str) -> tuple[WorkerClient, WriterClient]:
    key = Secret("CANARY-" + "k" * 30)
    worker = Worker("WRK-1", "W1", url, key, "storage.example.com")
    return WorkerClient(out, worker), WriterClient(out, Writer("WRT-1", "writer", url, key))


async def met_at(endpoint: Endpoint, out: Outbound, url: str) -> str:
    """As the table writes it."""
    try:
        await CALLS[endpoint](*clients(out, url))
    except Unsure:
        return "?"
    except (Transient, Permanent) as error:
        return error.code.removeprefix("ERROR")
    return "-"


def closed_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.mark.parametrize("endpoint", Endpoint)
async def test_every_answer_of_every_endpoint_has_one_meaning(endpoint):
    says = [b""]
    async with (
        serving(lambda _: says[0]) as server,
        Outbound(private=frozenset({"127.0.0.1"})) as out,
    ):
        found = []
        for what in ASKED:
            if what == "refused":
                url = f"http://127.0.0.1:{closed_port()}"
            else:
                says[0], url = said(what), server.url
            found.append(await met_at(endpoint, out, url))

    assert found == TABLE[endpoint].split()


def test_http_401_is_a_key_for_a_person_to_see_to_and_not_error401():
    told_of = {endpoint: meaning(endpoint, Met.UNAUTHORIZED) for endpoint in Endpoint}

    assert meaning(Endpoint.PROCESS, Met.TIMEOUT).code == "ERROR302"
    assert "ERROR401" not in {each.code for each in told_of.values()}
    for endpoint in (Endpoint.START_SCRAPE, Endpoint.PROCESS):
        assert told_of[endpoint].error_class is ErrorClass.CONFIG
    assert {meaning(e, m).code for e in Endpoint for m in Met} <= {
        *("ERROR100", "ERROR200", "ERROR202", "ERROR300", "ERROR301", "ERROR302", "ERROR303"),
        *("ERROR500", "ERROR502", "config", "throttled"),
    }


@pytest.mark.parametrize(
    ("status", "counts_as"),
    [(418, 400), (407, 401), (408, 503), (502, 500), (599, 500), (307, 300), (422, 422)],
)
def test_a_status_that_is_in_no_table_counts_as_the_first_of_its_hundred(status, counts_as):
    assert met(status) == f"http_{counts_as}"


@pytest.mark.parametrize(
    ("asks", "waits"),
    [
        *[("-1", 1.0), ("9999999999", 900.0), ("0", 1.0), ("7", 7.0), ("soon", None)],
        *[("Thu, 01 Jan 1970 00:00:00 GMT", 1.0), ("Fri, 31 Dec 2399 00:00:00 GMT", 900.0)],
    ],
)
async def test_row_31_a_wait_that_is_asked_for_is_kept_within_reason(asks, waits):
    """PROMISES §6, 31: clamped to [1 s, 15 min]; what cannot be read is no wish."""
    async with (
        serving(told(429, {}, retry_after=asks)) as server,
        Outbound(private=frozenset({"127.0.0.1"})) as out,
    ):
        for call in (CALLS[Endpoint.START_SCRAPE], CALLS[Endpoint.PROCESS]):
            with pytest.raises(Transient) as failed:
                await call(*clients(out, server.url))
            assert failed.value.retry_after == waits


@pytest.mark.parametrize(
    "body",
    [
        *({}, {"status": None}, {"status": 7}, [], None, 7),
        *({"status": "completed", "ads_count": each} for each in (-1, "12", True, 1.5)),
    ],
)
async def test_row_32_what_a_worker_says_in_another_shape_is_not_taken_for_a_count(body):
    async with (
        serving(told(200, body)) as server,
        Outbound(private=frozenset({"127.0.0.1"})) as out,
    ):
        worker, _ = clients(out, server.url)
        seen = await worker.scrape("job")

    assert seen.ads_count is None
    assert seen.status in ("", "completed")


async def test_row_33_a_bomb_an_endless_body_and_a_redirect_are_not_followed_to_their_end():
    bomb = gzip.compress(b"0" * (80 << 20))
    headers = {"content_type": "application/json", "content_encoding": "gzip"}
    asked: list[str] = []

    def says(one: Any) -> Any:
        asked.append(one.target)
        if one.target.endswith("bomb"):
            return answer(200, bomb, **headers)
        if one.target.endswith("elsewhere"):
            return redirect("http://169.254.169.254/")
        return endless(b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 65_536)

    async with (
        serving(says) as server,
        Outbound(private=frozenset({"127.0.0.1"})) as out,
    ):
        worker, writer = clients(out, server.url)
        for job in ("bomb", "endless", "elsewhere"):
            for call in (worker.scrape(job), writer.status(job)):
                with pytest.raises(Transient) as failed:
                    await call
                assert failed.value.code in ("ERROR202", "ERROR300", "ERROR302")

    assert len(asked) == 6, "a redirect leads nowhere"


ADS = [{"id": n, "text": 'data": [{\\" "data"' + "x" * 500} for n in range(10_000)]


async def test_h67_a_status_is_understood_however_many_ads_it_carries():
    """More than five megabytes of them, which nobody keeps."""
    body = {"job_id": "job", "data": ADS, "status": "running", "ads_count": 10_000}
    large = told(200, body)
    assert len(large) > 5_000_000 > 4 * MOST
    async with serving(large) as server, Outbound(private=frozenset({"127.0.0.1"})) as out:
        worker, writer = clients(out, server.url)
        seen, written = await worker.scrape("job"), await writer.status("job")

    assert (seen.status, seen.ads_count, written.status) == ("running", 10_000, "running")


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ({"data": [1, {"a": "]"}], "b": 1}, {"data": None, "b": 1}),
        ({"a": {"data": [1]}, "data": "x,}"}, {"a": {"data": [1]}, "data": None}),
        ({'x"data': [1], "\\": 2, "data\\": 3}, None),
        ({"data": 7}, {"data": None}),
        ({"status": "data", 'é\\"': ["data", ":"]}, None),
        (["data", {"data": 1}], None),
        ({}, None),
    ],
)
def test_h67_only_the_value_of_that_name_is_passed_over(sent, kept, size):
    for text in (json.dumps(sent), json.dumps(sent, ensure_ascii=False, indent=2)):
        whole, slim = text.encode(), Without("data")
        for at in range(0, len(whole), size):
            slim.feed(whole[at : at + size])
        assert json.loads(slim.kept) == (sent if kept is None else kept)


def test_what_came_of_a_request_is_kept_in_the_language_of_the_document():
    """A mission keeps it in Portuguese: no English of our client stands there."""
    for text in {str(text) for _, text in FAILURES.values()}:
        assert text != in_portuguese(text)
        assert f"worker: GET http://w: {in_portuguese(text)}" == in_portuguese(
            f"worker: GET http://w: {text}"
        )
    error = Transient(
        "ads writer: POST http://writer.example: the connection broke", code="no_answer"
    )
    told = in_their_words(Endpoint.PROCESS, error)
    assert (told.code, in_portuguese(str(told))) == (
        "ERROR301",
        "writer: POST http://writer.example: a conexão caiu",
    )
