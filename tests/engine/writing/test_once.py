"""What is asked for once is done once, however often and by however many it is asked (H-X8)."""

import asyncio
import json

import pytest

from retoma import Context, Retoma
from retoma.db import Lane, ReplyLost
from retoma.engine.rules.errors import IdempotencyMismatch, Permanent
from retoma.engine.rules.job import Job
from retoma.engine.store import Asked
from retoma.engine.writing.once import Answered, Once
from tests.engine.aids import change, rows

ASKED = Asked("ana", "key-1", "submit", "hash-1")


def app_on(url: str) -> Retoma:
    app = Retoma(url)

    @app.job
    async def story(ctx: Context, n: int) -> None: ...

    return app


async def submit(app: Retoma, asked: Asked = ASKED) -> tuple[int, bool]:
    """The job, and whether it is new."""
    try:
        made = await app.write_once(asked, lambda tx: tx.submit("story", 1), shown)
    except Answered as answered:
        return json.loads(answered.answer)["id"], False
    return made.id, True


def shown(job: Job) -> dict[str, int]:
    return {"id": job.id}


async def test_e8_row_10_fifty_at_once_make_one_job(database_url):
    async with app_on(database_url) as app, app_on(database_url) as other:
        made = await asyncio.gather(*(submit((app, other)[n % 2]) for n in range(50)))

        assert 1 == len({job for job, _ in made})
        assert 1 == sum(new for _, new in made)
        assert 1 == len(await app.jobs())


async def test_e8_row_11_another_body_under_the_same_key_is_refused(database_url):
    async with app_on(database_url) as app:
        await submit(app)
        for other in (
            Asked("ana", "key-1", "submit", "hash-2"),
            Asked("ana", "key-1", "invite", "hash-1"),
        ):
            with pytest.raises(IdempotencyMismatch, match="key-1"):
                await submit(app, other)

        assert (2, True) == await submit(app, Asked("bob", "key-1", "submit", "hash-2"))
        assert 2 == len(await app.jobs())


async def test_what_was_refused_takes_no_key(database_url):
    async with app_on(database_url) as app:

        def refuse(tx: object) -> Job:
            raise Permanent("no")

        with pytest.raises(Permanent):
            await app.write_once(ASKED, refuse, shown)

        assert (1, True) == await submit(app)


async def test_a_lost_reply_is_asked_for_again(database_url):
    async with app_on(database_url) as app:
        database = await app.database()

        class Deaf:
            """The first commit happens, and its answer gets lost."""

            url, dialect, calls = database.url, database.dialect, 0

            async def write(self, fn, *, verb, lane=Lane.WRITE, patience=None):
                self.calls += 1
                made = await database.write(fn, verb=verb)
                if self.calls == 1:
                    raise ReplyLost("lost")
                return made

        with pytest.raises(Answered, match="7"):
            await Once(Deaf(), ASKED).write(lambda _: 7, verb="test")  # type: ignore[arg-type]


async def test_old_answers_are_forgotten(database_url, test_clock):
    async with app_on(database_url) as app:
        database = await app.database()
        test_clock.jump(0)
        await submit(app)
        test_clock.jump(3 * 86_400)
        await submit(app, Asked("ana", "key-2", "submit", "hash-1"))
        assert 0 == await app.retention.forget_answers()

        test_clock.jump(5 * 86_400)

        assert 1 == await app.retention.forget_answers()
        assert [("key-2",)] == await rows(database, "SELECT key FROM answers")
        await change(database, "DELETE FROM answers")
