"""What takes how much room: true sizes, without counting history."""

from collections import defaultdict
from html import unescape

from retoma import Context, Retoma
from retoma.db import file_of
from retoma.engine.query.disk import disk
from retoma.engine.testing import drain
from retoma.services.disk import disk_seen
from tests.db.test_plans import Explaining
from tests.engine.test_meter import as_any, whole_tables
from tests.web.aids import set_up, world
from tests.web.test_pages import HTML

PAGE = b"<h1>closed</h1>" * 500


def shop(url: str) -> Retoma:
    app = Retoma(url)

    @app.job
    async def look(ctx: Context, n: int) -> int:
        await ctx.attach("page.html", PAGE + bytes([n]))
        return n

    return app


async def test_sizes_are_those_of_the_database_and_its_evidence(database_url):
    async with shop(database_url) as app:
        await app.submit_many("look", range(3))
        await drain(app)

        seen = await disk_seen(app, set_up(database_url))

        kept = seen.disk
        file = file_of(database_url)
        assert kept.database > 0
        assert (3, False) == (kept.pieces, kept.at_least)
        assert 0 < kept.evidence <= 3 * (len(PAGE) + 1)
        if file is None:
            assert (None, None, None) == (seen.file, seen.wal, seen.left)
            assert {"jobs", "events"} <= kept.tables.keys()
            assert list(kept.tables.values()) == sorted(kept.tables.values(), reverse=True)
        else:
            assert str(file) == seen.file
            assert kept.database % 512 == 0
            assert {} == kept.tables
            assert seen.left is not None


async def test_the_last_pass_of_retention_is_remembered_with_what_it_deleted(database_url):
    async with shop(database_url) as app:
        before = (await app.insights.disk()).last_pass
        await app.submit_many("look", range(3))
        await drain(app)
        retired = await app.retention.run_once(done=0.000001)

        last = (await app.insights.disk()).last_pass

        assert before is None
        assert last is not None
        assert (3, retired.jobs) == (retired.jobs, last.retired["jobs"])
        assert retired.evidence == last.retired["evidence"]
        await app.retention.run_once()
        again = (await app.insights.disk()).last_pass
        assert again is not None
        assert (0, True) == (again.retired["jobs"], again.at >= last.at)


async def test_the_api_and_the_page_tell_it_to_admins_alone(database_url):
    async with world(database_url) as house:
        await house.app.retention.run_once()
        told = (await house.admin.get("/api/disk")).json()
        page = unescape((await house.admin.get("/disk", headers=HTML)).text)
        refused = [
            (await house.operator.get("/api/disk")).status_code,
            (await house.operator.get("/disk", headers=HTML)).status_code,
        ]

        assert told["database"] > 0
        assert {"keep_done": None, "keep_dead": None, "keep_events": None} == told["keep"]
        assert 0 == told["last_pass"]["retired"]["jobs"]
        assert "there was nothing to delete" in page
        assert [403, 403] == refused


async def test_no_table_that_grows_with_history_is_read_from_end_to_end(database_url):
    async with shop(database_url) as app:
        database = await app.database()
        plans: dict[str, list[str]] = defaultdict(list)

        await database.write(lambda tx: disk(as_any(Explaining(tx, plans))), verb="explain")

        assert {"last_pass", "size_of_database", "sum_evidence"} == plans.keys()
        assert [] == whole_tables(database.dialect, plans)
