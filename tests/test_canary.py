"""E27: whatever is done with a secret, it is in no log line, event, error or row."""

import io
import logging
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlsplit

import psycopg
import pytest
import structlog
from psycopg import sql

from retoma import Context, Park, Permanent, Retoma, Skip, State, Transient, logs
from retoma.access import Access
from retoma.secret import Secret, known
from retoma.testing import drain
from retoma.vault import SecretSlot, Vault
from tests.engine.aids import AT_ONCE

CANARY = 'CANARY/9c41 7d+e2="f0"-é'
PLACE = SecretSlot("workers", "api_key", "1")


@pytest.fixture
def told(tmp_path, monkeypatch) -> Iterator[io.StringIO]:
    """Every line this process logs, at the level at which it tells most."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    out = io.StringIO()
    logs.configure("debug", out)
    yield out
    structlog.reset_defaults()
    root.handlers[:], root.level = handlers, level
    for value in list(known._values):
        known._forget(value)


async def test_e27_no_canary_in_logs_events_audit_or_rows(database_url, told):
    async with Retoma(database_url) as app:
        vault = Vault(await app.database(), app.ids)
        await vault.put(PLACE, Secret(CANARY), actor="Ana")
        spill_everywhere(app, vault)
        for kind in ("raises", "gives_up", "skips", "parks", "breaks"):
            await app.submit(kind)
        await drain(app)
        ended = {job.kind: job.state for job in await app.jobs()}
        await vault.rotate(actor="Ana")
        for job in await app.jobs():
            known_of = [
                await app.explain(job.id),
                await app.events(job.id),
                await app.get(job.id),
            ]
            assert [] == hits(repr(known_of))

    assert {
        "raises": State.DEAD,
        "gives_up": State.DEAD,
        "skips": State.SKIPPED,
        "parks": State.PARKED,
        "breaks": State.PARKED,
    } == ended
    assert "***" in told.getvalue()
    assert [] == hits(told.getvalue())
    assert [] == hits(dump(database_url))


async def test_e27_no_token_of_ours_in_logs_audit_or_rows(database_url, told):
    async with Retoma(database_url) as app:
        access = Access(await app.database(), app.clock, app.ids, env_key=CANARY * 2)
        key = await access.create_key("Ana", "admin", actor="cli")
        new = await access.rotate_key(key.id, "1h", "Ana")
        link = await access.invite("Bo", "viewer", "Ana")
        cookie = await access.enter(link, f"Firefox {link}")
        assert cookie is not None
        for each in (key.token, new.token, CANARY * 2):
            assert await access.identify(each) is not None
        session = await access.session(cookie)
        assert session is not None
        log = structlog.get_logger()
        for token in (key.token, new.token, link, cookie):
            log.error("leaked", token=token, url=f"https://x/enter/{token}", raw=token)

    plain = [each.rpartition("_")[2] for each in (key.token, new.token, link, cookie)]
    seen = told.getvalue() + dump(database_url)
    assert [] == [each for each in (*plain, session.csrf) if each in seen]
    assert [] == hits(seen)


def spill_everywhere(app: Retoma, vault: Vault) -> None:
    """Stories that handle their secret as badly as they can."""

    async def plain() -> str:
        secret = await vault.get(PLACE)
        assert secret is not None
        return secret.reveal()

    @app.job(retry=AT_ONCE)
    async def raises(ctx: Context) -> None:
        secret = await plain()
        await ctx.progress(0.5, note=f"asked with {secret}")
        ctx.log.warning("asked", key=secret, url=f"https://x/?q={quote(secret)}", raw=[secret])
        raise Transient(f"401 for {secret!r}") from ValueError(secret.encode())

    @app.job
    async def gives_up(ctx: Context) -> None:
        async def call() -> None:
            raise Permanent(f"https://u:{quote(await plain())}@host said no")

        await ctx.step("call", call, once=True)

    @app.job
    async def skips(ctx: Context) -> Skip:
        return Skip(f"nothing to do for {await plain()}")

    @app.job
    async def parks(ctx: Context) -> Park:
        return Park(f"somebody must look at {await plain()}")

    @app.job(retry=AT_ONCE)
    async def breaks(ctx: Context) -> object:
        secret = await vault.get(PLACE)
        assert secret is not None
        return {"not": "storable", "key": secret}


def hits(text: str) -> list[str]:
    """What is left of a canary, or of a good part of one: longer than an id may have by chance."""
    return [
        each
        for each in ("CANARY", "9c41 7d", quote("9c41 7d+e2"), "OWM0MSA3ZC")
        if each in text
    ]


def dump(url: str) -> str:
    """All there is in the database, but for the key beside it."""
    if url.startswith("sqlite"):
        path = Path(urlsplit(url).path[1:])
        files = [path, *path.parent.glob(f"{path.name}-*")]
        return "".join(each.read_bytes().decode("utf-8", "replace") for each in files)
    with psycopg.connect(url) as connection:
        names = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'retoma'"
        ).fetchall()
        whole = sql.SQL("SELECT * FROM {}")
        return repr(
            [
                connection.execute(whole.format(sql.Identifier("retoma", name))).fetchall()
                for (name,) in names
            ]
        )
