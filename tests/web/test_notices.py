"""Somebody hears of an alert once: also where whoever told it died before it could say so."""

import asyncio
import base64
import hashlib
import hmac
import json
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

import pytest

from retoma import BadInput, Retoma, settings
from retoma.db import Transaction
from retoma.engine.handlers.kinds import Kinds
from retoma.engine.ops.alerts import EVERY, HAND_OVER
from retoma.engine.store import alerts, now
from retoma.engine.store.alerts import Cause, Rule
from retoma.secret import Secret
from retoma.web.notices import EMAIL, WEBHOOK, Shape, notice_kinds, shaped, signed
from tests.clock import TestClock
from tests.engine.aids import eventually, running
from tests.outbound.certificates import Authority
from tests.outbound.fakes import OK, answer, serving
from tests.outbound.post import PASSWORD, USER, posted
from tests.outbound.post import Post as PrivatePost
from tests.web.test_serve import Process, listening, process

SECRET = "CANARY-signs-posts"  # noqa: S105 — nobody's
PLACE = "env:SIGNS"
PATIENCE = 100.0  # seconds; a busy machine starts a process slowly
LEASE = 1e6  # seconds: longer than all jumps together
SHOP = Cause(Rule.BREAKER, "shop")
BODY = {"rule": "BreakerOpen", "severity": "warning", "text": "breaker <shop> & co is open"}


def raised(tx: Transaction) -> None:
    """As whoever looks would raise it, and would find it open from then on."""
    alerts.raise_alert(tx, SHOP, {"reason": "down"})


async def ready(app: Retoma, test_clock: TestClock) -> None:
    await app.upgrade()
    test_clock.jump(0)  # on PostgreSQL: the schema is there now, and gets the clock of tests
    await app.breakers.declare("shop")
    await app.breakers.open("shop", "down")
    test_clock.jump(600)
    # However often the clock jumps, nothing is old news, and nobody who works is slow.
    await app.knobs.set("alert_stale", "365d")
    await app.knobs.set("alert_slow", "365d")
    await app.knobs.set("alert_no_beat", "365d")


def telling(app: Retoma, **given: Any) -> Kinds:
    kinds = Kinds()
    for each in notice_kinds(app, settings.read(**given)):
        kinds.add(each)
    return kinds


def ended(app: Retoma, kind: str, n: int) -> Callable[[], Awaitable[bool]]:
    async def ask() -> bool:
        jobs = await app.jobs(kind=kind, state="done")
        return len(jobs) == n

    return ask


async def test_a_webhook_hears_once_of_each_change_and_can_see_that_it_was_us(
    database_url, test_clock, monkeypatch
):
    """The whole way: a rule holds, somebody looks, it is handed over, posted, and over."""
    monkeypatch.setenv("RETOMA_PRIVATE_HOSTS", "127.0.0.1")
    monkeypatch.setenv("SIGNS", SECRET)
    async with serving(OK) as server, Retoma(database_url) as app:
        await ready(app, test_clock)
        kinds = telling(app, alert_webhook=f"{server.url}/hook", alert_webhook_secret=PLACE)
        async with running(app, kinds=kinds, lease=LEASE):
            await eventually(jumping(test_clock, ended(app, WEBHOOK, 1)))
            await app.breakers.close("shop")
            await eventually(jumping(test_clock, ended(app, WEBHOOK, 2)))

    assert 2 == len(server.asked), "without a crash each is sent exactly once"
    [first, second] = [json.loads(asked.body) for asked in server.asked]
    assert ("raised", "closed") == (first["change"], second["change"])
    assert "breaker shop has been open for 5 minutes: down" == first["text"]
    assert f"over: {first['text']}" == second["text"]
    for asked in server.asked:
        stamp = asked.headers["retoma-timestamp"]
        told = hmac.new(SECRET.encode(), f"{stamp}.".encode() + asked.body, hashlib.sha256)
        assert f"v1={told.hexdigest()}" == asked.headers["retoma-signature"]
        assert json.loads(asked.body)["key"] == asked.headers["idempotency-key"]


async def test_a_webhook_that_is_down_is_asked_again_under_the_same_key(
    database_url, test_clock, monkeypatch
):
    monkeypatch.setenv("RETOMA_PRIVATE_HOSTS", "127.0.0.1")
    says = iter([answer(500), answer(503), OK])
    async with serving(lambda _: next(says)) as server, Retoma(database_url) as app:
        await ready(app, test_clock)
        await (await app.database()).write(raised, verb="test")
        kinds = telling(app, alert_webhook=server.url)
        async with running(app, kinds=kinds, lease=LEASE):
            await eventually(jumping(test_clock, ended(app, WEBHOOK, 1)))
        keys = {each.headers["idempotency-key"] for each in server.asked}
        assert (3, 1) == (len(server.asked), len(keys))
        assert "retoma-signature" not in server.asked[0].headers, "nothing to sign it with"


class Ambush:
    """Kills a sender once both its notices have arrived: it never hears that they have."""

    def __init__(self) -> None:
        self.victim: int | None = None
        self._arrived: set[str] = set()
        self._struck = asyncio.Event()

    async def met(self, what: str) -> bool:
        """Whether whoever sent this is dead by now."""
        if self._struck.is_set() or self.victim is None:
            return False
        self._arrived.add(what)
        if len(self._arrived) == 2:
            os.kill(self.victim, signal.SIGKILL)
            self._struck.set()
        await self._struck.wait()
        return True

    async def hears(self) -> AsyncIterator[bytes]:
        if not await self.met("post"):
            yield OK


# — letters —


class Post:
    """A tiny server of SMTP."""

    def __init__(self, ambush: Ambush) -> None:
        self.letters: list[EmailMessage] = []
        self.port = 0
        self._ambush = ambush

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 post\r\n")
        with suppress(OSError, EOFError):
            while line := await reader.readline():
                verb = line.split()[0].upper()
                if verb == b"DATA":
                    writer.write(b"354 go on\r\n")
                    raw = await reader.readuntil(b"\r\n.\r\n")
                    letter = message_from_bytes(raw[:-3], policy=policy.default)
                    assert isinstance(letter, EmailMessage)
                    self.letters.append(letter)
                    if await self._ambush.met("letter"):
                        break
                writer.write(b"221 bye\r\n" if verb == b"QUIT" else b"250 ok\r\n")
        writer.close()


@asynccontextmanager
async def posting(ambush: Ambush) -> AsyncIterator[Post]:
    post = Post(ambush)
    async with await asyncio.start_server(post.serve, "127.0.0.1", 0) as server:
        post.port = server.sockets[0].getsockname()[1]
        yield post


async def test_show_4_a_sender_killed_between_sending_and_saying_so_tells_once(
    database_url, test_clock, tmp_path
):
    """Issue 7, show 4: whoever hears it twice has one key, and knows that it is one."""
    ambush = Ambush()
    async with (
        serving(lambda _: ambush.hears()) as server,
        posting(ambush) as post,
        Retoma(database_url) as app,
    ):
        told = {
            "RETOMA_PRIVATE_HOSTS": "127.0.0.1",
            "RETOMA_ALERT_WEBHOOK": server.url,
            "RETOMA_ALERT_EMAIL": "ana@example.org, rui@example.org",
            "RETOMA_SMTP_HOST": "127.0.0.1",
            "RETOMA_SMTP_PORT": str(post.port),
            "RETOMA_SMTP_TLS": "none",
            "RETOMA_SMTP_FROM": "retoma@example.org",
        }
        await ready(app, test_clock)
        await (await app.database()).write(raised, verb="test")
        with process(tmp_path, app.url, **told) as sender:
            ambush.victim = sender.child.pid
            listening(sender)
            while not await app.jobs():
                await later(app, test_clock, sender)
            assert -signal.SIGKILL == await asyncio.to_thread(sender.child.wait, PATIENCE)
        with process(tmp_path, app.url, **told) as sender:
            listening(sender)
            while 1 in {job.epoch for job in await app.jobs()}:
                await later(app, test_clock, sender)
            for kind in (WEBHOOK, EMAIL):
                await eventually(ended(app, kind, 1), PATIENCE)

        assert [1, 1] == [len(await app.jobs(kind=kind)) for kind in (WEBHOOK, EMAIL)]
        keys = [each.headers["idempotency-key"] for each in server.asked]
        letters = [each["Message-ID"] for each in post.letters]
        assert (2, 2) == (len(keys), len(letters)), "before the kill, and after it"
        assert (1, 1) == (len(set(keys)), len(set(letters)))
        assert 1 == len({each.body for each in server.asked}), "the same in every word"
        letter = post.letters[-1]
        assert "[retoma] breaker shop has been open for 5 minutes: down" == letter["Subject"]
        assert "ana@example.org, rui@example.org" == letter["To"]


async def later(app: Retoma, test_clock: TestClock, sender: Process) -> None:
    """The next look is due, and the sender has beaten since, if it lives: no lease ends by this."""
    test_clock.jump(HAND_OVER + 1)
    database = await app.database()
    at = await database.read(now)

    async def beaten() -> bool:
        beats = await app.runners.list()
        return sender.child.poll() is not None or any(each.beat_at >= at for each in beats)

    await eventually(beaten, PATIENCE)


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


def writing(post: PrivatePost, password: str) -> dict[str, Any]:
    return {
        "alert_email": "ana@example.org",
        "smtp_host": "localhost",
        "smtp_port": post.port,
        "smtp_from": "retoma@example.org",
        "smtp_user": USER,
        "smtp_password": password,
    }


async def test_a_letter_is_written_once_of_each_change_over_tls(
    database_url, test_clock, authority, tmp_path, monkeypatch
):
    """Without a crash each is sent exactly once, by whoever shows the password."""
    trusted = tmp_path / "authority.pem"
    trusted.write_bytes(authority.pem)
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
    with posted(tls=authority.server("localhost")) as post:
        async with Retoma(database_url) as app:
            await ready(app, test_clock)
            await (await app.database()).write(raised, verb="test")
            async with running(app, kinds=telling(app, **writing(post, PASSWORD)), lease=LEASE):
                await eventually(jumping(test_clock, ended(app, EMAIL, 1)))
                await app.breakers.close("shop")
                await eventually(jumping(test_clock, ended(app, EMAIL, 2)))

    first, second = post.letters
    assert "[retoma] breaker shop has been open for 5 minutes: down" == first["Subject"]
    assert f"[retoma] over: {first['Subject'].removeprefix('[retoma] ')}" == second["Subject"]
    assert first["Message-ID"] != second["Message-ID"]
    assert 2 == post.asked.count("AUTH")
    assert not [line for line in post.open if b"AUTH" in line]


async def test_a_wrong_password_parks_the_notice_which_says_so_and_not_the_password(
    database_url, test_clock, authority, tmp_path, monkeypatch
):
    trusted = tmp_path / "authority.pem"
    trusted.write_bytes(authority.pem)
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
    with posted(tls=authority.server("localhost")) as post:
        async with Retoma(database_url) as app:
            await ready(app, test_clock)
            await (await app.database()).write(raised, verb="test")

            async def parked() -> list[Any]:
                return await app.jobs(kind=EMAIL, state="parked")

            wrong = telling(app, **writing(post, "CANARY-wrong"))
            async with running(app, kinds=wrong, lease=LEASE):
                [job] = await eventually(jumping(test_clock, parked))
            seen = await app.see(job.id)
            why = await app.explain(job.id)
            async with running(app, kinds=telling(app, **writing(post, PASSWORD)), lease=LEASE):
                await app.resume(job.id, actor="ana")
                await eventually(ended(app, EMAIL, 1))

    told = repr(seen) + why
    assert "SMTP localhost: the server rejected the user or password" in told
    assert "CANARY" not in told
    assert base64.b64encode(f"\0{USER}\0CANARY-wrong".encode()).decode() not in told
    assert 1 == len(post.letters), "put right, it goes on, and is sent once"


def jumping(
    test_clock: TestClock, ask: Callable[[], Awaitable[Any]]
) -> Callable[[], Awaitable[Any]]:
    """Nobody waits here for the next look or a tick."""

    async def asked_later() -> Any:
        test_clock.jump(EVERY + 1)
        return await ask()

    return asked_later


# — shapes and settings —


def test_slack_and_teams_are_told_in_their_own_way():
    assert {"text": "BreakerOpen (warning): breaker &lt;shop&gt; &amp; co is open"} == shaped(
        Shape.SLACK, BODY
    )
    [card] = shaped(Shape.TEAMS, BODY)["attachments"]
    [block] = card["content"]["body"]
    assert "BreakerOpen (warning): breaker <shop> & co is open" == block["text"]
    assert BODY == shaped(Shape.PLAIN, BODY)


def test_a_signature_is_of_the_time_and_the_body():
    one = signed(Secret(SECRET), b"{}", 1)
    assert one == signed(Secret(SECRET), b"{}", 1)
    assert one != signed(Secret(SECRET), b"{}", 2)
    assert one != signed(Secret(SECRET), b"[]", 1)


@pytest.mark.parametrize(
    "bad",
    [
        {"alert_webhook": "ftp://example.org"},
        {"alert_webhook": "https://user:word@example.org"},
        {"alert_webhook_shape": "carrier pigeon"},
        {"alert_email": "ana@example.org"},
        {"smtp_tls": "perhaps"},
    ],
)
def test_settings_that_cannot_be_are_refused_before_anybody_waits_for_a_notice(bad):
    with pytest.raises(BadInput):
        telling(Retoma("sqlite:///nowhere.db"), **bad)


def test_who_names_nobody_notifies_nobody():
    assert [] == list(telling(Retoma("sqlite:///nowhere.db")))
