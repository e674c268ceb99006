"""Tell the operator's webhook that a submission is over: every document of it is embedded, or has failed.

One job follows each batch. Documents that are retried later have it tell again, under another key, once all
has ended again. It waits as a row between its looks, and posts under a key of its own, so that a
receiver knows a second delivery for what it is.
"""

from dataclasses import dataclass
from typing import Any, Final

from retoma.apps.embeddings.model import COMPLETION
from retoma.engine.handlers.context import Context
from retoma.engine.handlers.kinds import Kind, job
from retoma.engine.rules.outcome import Skip, Snooze, Unknown
from retoma.engine.rules.retry import Retry
from retoma.engine.rules.states import State
from retoma.outbound import Policy
from retoma.secret import Secret
from retoma.toolkit.tools import Tools
from retoma.words import say

LOOKS: Final = (1.0, 30.0)  # seconds between two looks at a batch
EVENT: Final = "embeddings.complete"
NOBODY: Final = Skip(say("nobody is told: RETOMA_EMBEDDINGS_WEBHOOK is not set here"))


@dataclass(frozen=True, slots=True)
class Followed:
    """The batch, and the collection that it is of."""

    batch: int
    collection: str


def kinds_of(tools: Tools) -> list[Kind]:
    @job(
        name=COMPLETION,
        application="embeddings",
        retry=Retry(attempts=20, base=5.0, cap=3600.0),
    )
    async def completion(ctx: Context, followed: Followed) -> Any:
        return await _tell(ctx, tools, followed)

    made: Any = completion
    return [made.kind]


async def _tell(ctx: Context, tools: Tools, followed: Followed) -> Any:
    where = tools.settings.embeddings_webhook
    if where is None:
        return NOBODY
    progress = await (await tools.retoma.batches.get(followed.batch)).progress()
    if not progress.finished:
        least, most = LOOKS
        eta = most if progress.eta is None else progress.eta.total_seconds()
        return Snooze(min(max(eta, least), most))
    url = Secret(where.get_secret_value())
    key = f"{await tools.retoma.database_id()}-embeddings-{followed.batch}-{ctx.generation}"
    counts = progress.counts
    told = {
        "event": EVENT,
        "key": key,
        "collection": followed.collection,
        "batch": followed.batch,
        "documents": progress.total,
        "embedded": counts.get(State.DONE, 0),
        "failed": counts.get(State.DEAD, 0),
        "canceled": counts.get(State.CANCELED, 0) + counts.get(State.SKIPPED, 0),
    }

    async def posted() -> int:
        answer = await tools.out.post(
            Policy.toward("embeddings webhook", url.reveal()),
            url.reveal(),
            headers={"Idempotency-Key": key},
            json=told,
        )
        return answer.status

    at = str(ctx.generation)  # what was told of an earlier end is not the answer to this one
    return await ctx.step("notify", posted, key=at, once=True, unknown=Unknown.REPEAT)
