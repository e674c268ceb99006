"""`app.remote`: what a person says of remote work of which nobody knows whether it still runs."""

from dataclasses import dataclass
from typing import Any

from retoma.codec import Unstorable, encode
from retoma.engine import store
from retoma.engine.rules.errors import BadInput
from retoma.engine.rules.job import Job
from retoma.engine.run.submission import ACTOR
from retoma.library.checks import check_id
from retoma.library.connection import Connection
from retoma.words import say


@dataclass(frozen=True, slots=True)
class RemoteWork:
    """Settle the doubt of a parked job."""

    _connection: Connection

    async def send_again(self, job: int, *, actor: str = ACTOR) -> Job:
        """The remote work of a parked job is gone: have it sent again."""
        check_id("job", job)
        return await self._connection.write(
            lambda tx: store.send_again(tx, job, actor=actor), verb="send_again"
        )

    async def adopt(self, job: int, handle: Any, *, actor: str = ACTOR) -> Job:
        """What a parked job had begun is this: a handle to ask after, or what its step gave."""
        check_id("job", job)
        try:
            text = encode(handle)
        except Unstorable as error:
            raise BadInput(
                say("job {job}: what it gave cannot be kept: {error}", job=job, error=error)
            ) from error
        return await self._connection.write(
            lambda tx: store.adopt(tx, job, text, actor=actor), verb="adopt"
        )
