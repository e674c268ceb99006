"""What moved code has ended and what was taken over, over the API and in Mission Control, like any other quote."""

from retoma.apps.quotes.face import CheckpointManager, QuoteRequest, QuoteStatus, SessionMaker
from tests.apps.people import EN
from tests.apps.quotes.test_adopt import legacy, taken
from tests.apps.quotes.test_pages import C, site_of

ROWS = [
    {"id": 41, "status": "DONE", "texto": "Mesa", "result": '{"valor": "muito"}'},
    {"id": 42, "status": "ERROR", "texto": "Mesa", "processing_checkpoint": "SOMEWHERE"},
    {"id": 43, "status": "DONE", "texto": "Mesa", "result": "7", "worker_id": "celery@a"},
    {
        "id": 44,
        "status": "PENDING",
        "texto": "Mesa",
        "resume_data": '{"tested_products": ["x", 7]}',
    },
]


async def test_quotes_in_shapes_that_are_not_ours_are_shown(database_url, tmp_path):
    async with site_of(database_url, tmp_path) as there:
        ended, held = await there.house.quote(2), await there.house.quote(3)
        sessions = SessionMaker(database_url)
        db = sessions()
        manager = CheckpointManager(db, worker_id="celery@a")
        first, second = (db.query(QuoteRequest).get(each) for each in (ended, held))
        assert first is not None
        assert second is not None
        for quote in (first, second):
            manager.start_processing(quote)
            quote.claude_payload_json = ["theirs"]
            data = {"tested_products": [{"url": "u"}, 3], "more": [1]}
            manager.save_checkpoint(quote, C.PRICE_EXTRACTION_PROGRESS, 60, data)
        manager.complete_processing(first, QuoteStatus.DONE)
        database = await there.app.database()
        with legacy(database.dialect, ROWS, tmp_path, database_url) as url:
            await taken(there.house, url, apply=True)

        for number in (ended, held, 41, 42, 43, 44):
            page = await there.viewer.get(f"/quotes/{number}", headers=EN)
            assert 200 == page.status_code, (number, page.text[:2000])
            told = await there.viewer.get(f"/api/quotes/{number}")
            assert 200 == told.status_code, (number, told.text)
        for place in ("/quotes", "/quotes/stats", "/api/quotes", "/api/quotes?status=DONE"):
            assert 200 == (await there.viewer.get(place, headers=EN)).status_code, place
        sessions.close()
        shown = (await there.viewer.get(f"/api/quotes/{held}")).json()
        assert ("celery@a", "PRICE_EXTRACTION_PROGRESS") == (
            *(shown["worker_id"], shown["processing_checkpoint"]),
        )
