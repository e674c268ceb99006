"""The tables of the application, and what its nouns say of themselves."""

from retoma import db
from retoma.db import adhoc, migrations
from retoma.db.migrations import Room

ROOM = Room("embeddings", "retoma.apps.embeddings.migrations")


async def test_the_schema_goes_and_comes_back_and_what_was_paid_for_stays(database_url):
    """E25: down leaves what was embedded as plain tables; up begins anew."""
    database = db.open(database_url)
    try:
        await migrations.downgrade(database, to=0, room=ROOM)
        kept = await database.read(
            lambda tx: tx.all(adhoc("SELECT hash FROM embeddings_vectors_kept"))
        )
        assert [] == kept
        await migrations.upgrade(database, room=ROOM)
        await migrations.downgrade(database, to=0, room=ROOM)
        await migrations.upgrade(database, room=ROOM)
        shown = await database.read(
            lambda tx: tx.all(
                adhoc('SELECT id, "jobType", "lockedBy", "lockExpiresAt" FROM queue_jobs')
            )
        )
        assert [] == shown
    finally:
        database.close()
