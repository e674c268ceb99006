"""The ads of a mission are handed to a writer, which is followed to its end."""

from dataclasses import dataclass
from typing import Any, Final

from retoma.apps.ads import store
from retoma.apps.ads.clients import WriterClient, WriteSeen
from retoma.apps.ads.clients.answers import THROTTLED
from retoma.apps.ads.model import ERRORS, Action, Event, writer_payload
from retoma.apps.ads.steps.hands import (
    UNHEARD,
    Hands,
    error_wait,
    heard,
    refusal_code,
)
from retoma.apps.ads.store import UNWANTED, StorageSeen, Written
from retoma.engine.handlers.context import Context
from retoma.engine.handlers.remote import Edge, Remote
from retoma.engine.handlers.remote import Status as RemoteStatus
from retoma.engine.rules.errors import Permanent, Transient
from retoma.engine.rules.outcome import Park, Skip, Snooze, Unwound
from retoma.engine.rules.states import ParkReason
from retoma.words import say

NO_WRITER: Final = 30.0  # seconds between two looks for a writer
AWAY: Final = ("ERROR301", "ERROR302")
WRITE: Final = {
    "processing": Edge.GOING,
    "completed": Edge.DONE,
    "partial": Edge.DONE,
    "failed": Edge.FAILED,
    "not_found": Edge.GONE,
}
# What the engine says of remote work, in the document's codes.
WRITE_CODES: Final = {
    "remote_gone": "ERROR300",
    "remote_failed": "ERROR300",
    "remote_timeout": "ERROR300",
    "remote_stalled": "ERROR300",
    "throttled": "ERROR300",  # it has asked for time, which costs no try
}
# The same in words.
SAID: Final = {
    "remote_gone": say("the writer does not know this job"),
    "remote_timeout": say("the writer took too long (timeout_writer)"),
    "remote_stalled": say("the writer made no progress any more (stall_writer)"),
}
# What a writer of ours calls a request or a table that can never do, and others may call so too.
SCHEMA: Final = ("target_schema", "unknown_profile", "no_such_array", "ERROR303")


@dataclass(frozen=True, slots=True)
class Storage:
    """The story of the ads of a mission."""

    hands: Hands

    async def tell(self, ctx: Context, mission: str) -> Any:
        """Its ads are handed to a writer, which is followed to its end (§3)."""
        seen = await self.hands.read(lambda tx: store.look_at_storage(tx, mission))
        turn = f"{ctx.generation}.{ctx.attempt}.{seen.parks}"
        version = version_of(ctx, seen.parks)
        if not has_it(ctx, version) and not seen.wanted:
            return Skip(say("the mission was canceled before a writer had its ads"))
        has = seen.writer if has_it(ctx, version) else None
        writer = has or await self._chosen(ctx, mission, f"{turn}.{len(ctx.remote_steps())}")
        if writer is None:
            await ctx.progress(note=say("no writer is available"))
            return Snooze(NO_WRITER)
        client = WriterClient(self.hands.tools.out, await self.hands.writer(writer))
        try:
            found = await self._written(ctx, mission, client, seen, version)
        except (Transient, Permanent) as error:
            return await self._not_written(ctx, mission, writer, error, turn)
        except Unwound as unwound:
            await self._late(ctx, mission, unwound, f"{turn}.{len(ctx.remote_steps())}")
            raise
        if too_many_failed(found, await self.hands.knob("max_failed_share")):
            return await self._refused(ctx, mission, found, f"{version}.{seen.parks}")
        return await ctx.write("written", store.written, mission, ctx.job, found, key=turn)

    async def _chosen(self, ctx: Context, mission: str, turn: str) -> str | None:
        """One that is there; where it was away, once its `/health` answers: others wait for that."""
        chosen = await self.hands.read(store.choose_writer)
        if chosen is None:
            return None
        writer, away = chosen
        if away:
            client = WriterClient(self.hands.tools.out, await self.hands.writer(writer))
            async with ctx.breaker(store.breaker_of(writer)):
                if not await client.healthy():
                    raise Transient(
                        say("{writer} is not healthy", writer=writer), code="ERROR301"
                    )
        return await ctx.write("writer", store.give_writer, mission, writer, key=turn)

    async def _written(
        self,
        ctx: Context,
        mission: str,
        client: WriterClient,
        storage: StorageSeen,
        version: int,
    ) -> Written:
        async def send(key: str, url: Any) -> str:
            now = await self.hands.read(lambda tx: store.look_at_storage(tx, mission))
            if not now.wanted:
                raise Permanent(say("the mission was canceled"), code=UNWANTED)
            return await client.process(writer_payload(key, url))

        async def find(key: str) -> str | None:
            return None if (await heard(client.status(key))).status == "not_found" else key

        async def ask(handle: str) -> RemoteStatus:
            await self.hands.noted(
                ctx, lambda tx: store.write_started(tx, mission, handle, storage.url)
            )
            try:
                said = await client.status(handle)
            except Transient as error:
                await self._silent(ctx, mission, error)
                raise
            if WRITE.get(said.status) is Edge.GOING and said.processed is not None:
                told = {"processed": said.processed, "total": said.total}
                told_of = {"writer_job_id": handle, **told}
                await self.hands.noted(
                    ctx,
                    lambda tx: store.tell_progress(tx, mission, Event.WRITER_PROGRESS, told_of),
                )
            return write_status(said, handle)

        interval, timeout, stall = await self.hands.knobs(
            "polling_job", "timeout_writer", "stall_writer"
        )
        remote = Remote(
            send=send,
            ask=ask,
            find=find,
            statuses=WRITE,
            failure=write_failure,
            interval=interval,
            timeout=timeout,
            stall=stall,
        )
        return Written(**await ctx.remote("process", remote, storage.url, version=version))

    async def _not_written(
        self, ctx: Context, mission: str, writer: str, error: Transient | Permanent, turn: str
    ) -> Any:
        if error.code == UNHEARD:
            await self._silent(ctx, mission, error.__cause__ or error)
            await ctx.progress(
                note=say("{writer} does not answer: {error}", writer=writer, error=error)[:200]
            )
            return Snooze(await self.hands.knob("polling_job"))
        if error.code == UNWANTED:
            return Skip(say("the mission was canceled before a writer had its ads"))
        code = WRITE_CODES.get(error.code, error.code)
        if code not in ERRORS:
            why = (refusal_code(error), str(error))
            await ctx.write("refusal", store.note_refusal, mission, *why, key=turn)
            if not ctx.holds_remote_work():
                await ctx.write("left", store.leave_writer, mission, key=turn)
            raise error  # a key that is wrong, a request they refuse: a person must see to it
        text = SAID.get(error.code, str(error)) if code != error.code else str(error)
        told = (mission, writer, code, text)
        waits = error.code == THROTTLED
        verdict = await ctx.write("not_written", write_failed, *told, waits, key=turn)
        if verdict.action == UNWANTED:
            return Skip(say("the mission was canceled, and its writer has failed"))
        if verdict.action == Action.OPERATOR:
            return Park(f"{code}: {text}", ParkReason.CONFIG)
        if verdict.again:
            raise Transient(text, code=verdict.code, retry_after=error_wait(error))
        raise Permanent(text, code=verdict.code)

    async def _silent(self, ctx: Context, mission: str, error: BaseException) -> None:
        """It has the ads, and does not say how far it is: told once, and asked again."""
        code = getattr(error, "code", "")
        if code in AWAY:
            text = str(error)
            await self.hands.noted(ctx, lambda tx: store.writer_silent(tx, mission, code, text))

    async def _refused(self, ctx: Context, mission: str, found: Written, turn: str) -> Any:
        """More than chance explains: what was stored is stored, and a person looks at the rest."""
        text = say("{n} of {total} ads were refused", n=found.failed, total=found.total)
        verdict = await ctx.write(
            "refused", write_refused, mission, ctx.job, found, text, key=turn
        )
        if verdict is not None and verdict.action == UNWANTED:
            return Skip(say("the mission was canceled, and its ads were refused"))
        return Park(text, ParkReason.CONFIG)

    async def _late(self, ctx: Context, mission: str, unwound: Unwound, turn: str) -> None:
        """It took too long, and cannot be stopped: nobody sends it again before a person has said
        that it is lost."""
        left = unwound.outcome
        if isinstance(left, Park) and left.kind is ParkReason.UNKNOWN_REMOTE:
            await ctx.write("late", write_late, mission, left.reason, key=turn)


def version_of(ctx: Context, parks: int) -> int:
    """Of the sending: ads that were refused are sent anew once a person has let them go on."""
    version = max((each.id.version for each in ctx.remote_steps()), default=1)
    refused = any(ctx.kept("refused", key=f"{version}.{n}") for n in range(parks))
    return version + 1 if refused else version


def has_it(ctx: Context, version: int) -> bool:
    """Whether the writer of a mission has its ads, or has stored them; else any may be sent them."""
    return ctx.holds_remote_work() or ctx.kept("process", version=version)


def write_status(seen: WriteSeen, handle: str) -> RemoteStatus:
    total, done = seen.total, seen.processed
    share = min(1.0, done / total) if total and done is not None else None
    value = {
        "job_id": handle,
        "total": total or 0,
        "success": seen.success_count or 0,
        "failed": seen.failed_count or 0,
        "items": seen.failed_items[: store.MOST_ITEMS],
    }
    if seen.code is not None:
        value["code"] = seen.code
    return RemoteStatus(seen.status, value=value, progress=share, note=seen.error)


def write_failure(status: RemoteStatus) -> Exception:
    code = "ERROR303" if (status.value or {}).get("code") in SCHEMA else "ERROR300"
    return Transient(status.note or ERRORS[code].means, code=code)


def too_many_failed(found: Written, share: float) -> bool:
    """Nothing stored, or more refused than chance explains: the tables do not fit the ads."""
    return bool(found.total) and (found.success == 0 or found.failed > share * found.total)


def write_failed(
    tx: Any, mission: str, writer: str, code: str, message: str, waits: bool = False
) -> store.Verdict:
    if code in AWAY:
        store.writer_away(tx, writer, f"{code}: {message}")
    told = {"writer_job_id": store.writer_job(tx, mission), "error": message}
    verdict = store.failed(tx, mission, code, message, Event.WRITER_FAILED, told, waits=waits)
    store.leave_writer(tx, mission)
    return verdict


def write_refused(
    tx: Any, mission: str, job: int, found: Written, text: str
) -> store.Verdict | None:
    """None where an older version of ours has kept no verdict."""
    told = {"writer_job_id": found.job_id, "error": text}
    verdict = store.failed(tx, mission, "ERROR303", text, Event.WRITER_FAILED, told)
    store.keep_counts(tx, mission, job, found)
    store.leave_writer(tx, mission)
    return verdict


def write_late(tx: Any, mission: str, text: str) -> None:
    told = {"writer_job_id": store.writer_job(tx, mission), "error": text}
    store.tell_of_failure(tx, mission, "ERROR300", text, Event.WRITER_FAILED, told)
