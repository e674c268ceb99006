"""The webhook of embeddings: told once that a submission is over, whatever became of its documents."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from pydantic import SecretStr
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from retoma.testing import FakeClock
from tests.apps.embeddings.aids import COLLECTION, Counting, house
from tests.apps.quotes.aids import serving
from tests.engine.aids import eventually, running


class Receiver:
    """Keeps what it is told; the first delivery it answers 503."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, dict[str, Any]]] = []
        self.gate: asyncio.Event | None = None  # closed: an answer waits here

    async def hook(self, request: Request) -> Response:
        told = json.loads(await request.body())
        self.heard.append((request.headers["idempotency-key"], told))
        if self.gate is not None:
            await self.gate.wait()
        return Response(status_code=503 if len(self.heard) == 1 else 204)


@asynccontextmanager
async def receiving() -> AsyncIterator[tuple[Receiver, SecretStr]]:
    receiver = Receiver()
    routes = [Route("/hook", receiver.hook, methods=["POST"])]
    async with serving(Starlette(routes=routes)) as port:
        yield receiver, SecretStr(f"http://127.0.0.1:{port}/hook")


async def test_the_webhook_is_told_once_that_a_submission_is_over(database_url):
    """Sent again under the same key where the first delivery failed; a document that failed is counted."""
    provider = Counting(refuses={"veneno": "refused"})
    async with (
        receiving() as (receiver, where),
        house(database_url, provider, embeddings_webhook=where) as there,
    ):
        added = await there.add(
            ("a.txt", "uma casa"), ("b.txt", "um mar"), ("c.txt", "veneno"), follow=True
        )
        await there.drained()

    (first, told), (second, again) = receiver.heard
    assert (first, told) == (second, again)
    assert told["key"] == first
    assert {
        "event": "embeddings.complete",
        "collection": COLLECTION,
        "batch": added.batch,
        "documents": 3,
        "embedded": 2,
        "failed": 1,
        "canceled": 0,
    } == {name: value for name, value in told.items() if name != "key"}


async def test_a_collection_that_is_embedded_anew_is_told_of_too(database_url):
    async with (
        receiving() as (receiver, where),
        house(database_url, embeddings_webhook=where) as there,
    ):
        await there.add(("a.txt", "uma casa"))
        await there.drained()
        assert [] == receiver.heard
        batch, _ = await there.reembed(follow=True, size=300)
        await there.drained()

    assert {batch} == {told["batch"] for _, told in receiver.heard}


async def test_the_webhook_is_told_again_when_what_failed_was_retried(database_url):
    """Once for both documents, under a key of its own, and only when the last of them has ended."""
    provider = Counting(refuses={"veneno": "refused"})
    async with (
        receiving() as (receiver, where),
        house(database_url, provider, embeddings_webhook=where) as there,
    ):
        await there.add(
            ("a.txt", "uma casa"), ("b.txt", "veneno um"), ("c.txt", "veneno dois"), follow=True
        )
        await there.drained()
        receiver.heard = receiver.heard[-1:]
        provider.refuses = {"dois": "refused"}
        dead = [job.id for job in await there.app.jobs(state="dead")]
        for job in dead:
            await there.app.retry(job)
        await there.drained()
        for job in [job.id for job in await there.app.jobs(state="dead")]:
            await there.app.retry(job)
        provider.refuses = {}
        await there.drained()

    assert [(1, 2), (2, 1), (3, 0)] == [
        (told["embedded"], told["failed"]) for _, told in receiver.heard
    ]
    assert 3 == len({key for key, _ in receiver.heard})


async def test_a_document_that_is_retried_waits_while_the_webhook_is_told_of_what_was(
    database_url,
):
    """Else what is told would be the old end, and nobody would tell the new one."""
    provider, clock = Counting(refuses={"veneno": "refused"}), FakeClock()
    async with (
        receiving() as (receiver, where),
        house(database_url, provider, clock=clock, embeddings_webhook=where) as there,
    ):
        await there.add(("a.txt", "veneno"), follow=True)
        receiver.gate = asyncio.Event()
        async with running(there.app):

            async def being_told() -> bool:
                clock.advance(1.0)  # it waits between two looks at its batch
                return len(receiver.heard) == 1

            await eventually(being_told)
            [dead] = await there.app.jobs(state="dead")
            provider.refuses = {}
            await there.app.retry(dead.id)

            async def snoozed() -> bool:
                return "snoozed" in {each.type for each in await there.app.events(dead.id)}

            await eventually(snoozed)
            receiver.gate.set()
        await there.drained()

    assert [(0, 1), (1, 0)] == sorted(
        {(told["embedded"], told["failed"]) for _, told in receiver.heard}
    )


async def test_without_a_webhook_nobody_is_told_and_nothing_waits(database_url):
    async with house(database_url) as there:
        await there.add(("a.txt", "uma casa"), follow=True)
        await there.drained()

        assert [("skipped",)] == await there.rows(
            "SELECT state FROM jobs WHERE kind = 'embeddings.completion'"
        )
