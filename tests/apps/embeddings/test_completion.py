"""The webhook of embeddings: told once that a submission is over, whatever became of its documents."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from pydantic import SecretStr
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.apps.embeddings.aids import COLLECTION, Counting, house
from tests.apps.quotes.aids import serving


class Receiver:
    """Keeps what it is told; the first delivery it answers 503."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, dict[str, Any]]] = []

    async def hook(self, request: Request) -> Response:
        told = json.loads(await request.body())
        self.heard.append((request.headers["idempotency-key"], told))
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


async def test_without_a_webhook_nobody_is_told_and_nothing_waits(database_url):
    async with house(database_url) as there:
        await there.add(("a.txt", "uma casa"), follow=True)
        await there.drained()

        assert [("skipped",)] == await there.rows(
            "SELECT state FROM jobs WHERE kind = 'embeddings.completion'"
        )
