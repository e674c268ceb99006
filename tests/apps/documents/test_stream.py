"""What is told as it happens comes to the same as what is asked for afterwards."""

from collections import Counter

import pytest

from retoma.apps.documents import store
from retoma.apps.documents.model import STATUS, TERMINAL, DocumentStatus
from retoma.engine.rules.events import LEADS_TO, EventType
from retoma.engine.rules.states import State
from retoma.web import broadcast
from tests.apps.documents.aids import house, paper
from tests.web.aids import ROOT_KEY, served
from tests.web.sse import Ear, Heard

ADMIN = {"x-api-key": ROOT_KEY}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broadcast, "LOOK", 0.02)


class Told:
    """The statuses of documents, by nothing but the stream."""

    def __init__(self, jobs: list[int]) -> None:
        self._states = dict.fromkeys(jobs, State.WAITING)

    def hear(self, heard: Heard) -> None:
        if heard.name == "job" and (to := LEADS_TO[EventType(heard.data["type"])]) is not None:
            self._states[heard.data["job"]] = to

    @property
    def by_status(self) -> Counter[DocumentStatus]:
        return Counter(STATUS[each] for each in self._states.values())

    @property
    def over(self) -> bool:
        return all(each in TERMINAL for each in self.by_status)


async def heard_until_over(ear: Ear, jobs: list[int]) -> Told:
    told = Told(jobs)
    while not told.over:
        heard = await ear.next()
        assert heard is not None
        told.hear(heard)
    return told


async def test_c7_the_stream_comes_to_the_same_as_the_status(database_url):
    """C7 H-26 H-27: live, and again from where somebody broke off; who leaves changes nothing."""
    with served(database_url) as server:
        async with house(database_url) as there:
            papers = [paper("A-1"), paper("A-2", "corrupt.pdf"), paper("A-3", "stumble.pdf")]
            execution = await there.execution(papers)
            jobs = [each["job"] for each in await there.results(execution)]
            url = f"{server.origin}/api/stream?batch={execution}"
            live, gone = [await Ear.open(url, ADMIN) for _ in range(2)]
            hello = await live.next()
            assert hello is not None
            assert hello.id
            gone.close()
            await there.drained()
            first = await heard_until_over(live, jobs)
            live.close()
            again = await Ear.open(url, ADMIN | {"last-event-id": hello.id})
            after = await heard_until_over(again, jobs)
            again.close()

            database = await there.app.database()
            counted = await database.read(lambda tx: store.executions.counted(tx, execution))
            assert {status: n for status, n in counted.items() if n} == first.by_status
            assert first.by_status == after.by_status
