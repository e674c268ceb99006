"""Batches: how far jobs that were submitted together are, and what is done to all of them at once."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from retoma.engine.ops.batches import FINISHED, Batch, Progress
from retoma.engine.rules.states import BatchState, State
from retoma.library import Retoma

__all__ = ["FINISHED", "Batch", "Progress"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSeen:
    """A batch and how far it is."""

    id: int
    name: str
    kind: str
    state: BatchState
    paused: bool
    total: int
    ended: int
    counts: dict[State, int]
    share: float
    rate: float = field(metadata={"description": "Jobs ended in a second, of late."})
    eta: float | None = field(
        metadata={"description": "Seconds until the last has ended, at that rate."}
    )

    @property
    def finished(self) -> bool:
        return self.ended == self.total

    @property
    def document(self) -> dict[str, Any]:
        """What the command line prints of it as JSON."""
        names = ("id", "name", "kind", "total", "ended", "share", "finished", "state")
        return {
            **{name: getattr(self, name) for name in names},
            "eta_seconds": self.eta,
            "counts": {str(state): n for state, n in self.counts.items()},
        }


@dataclass(frozen=True, slots=True)
class BatchDetails:
    """A batch, and by which codes its jobs died."""

    batch: BatchSeen
    codes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Paused:
    """Whether a batch is paused now, and whether it was this call that changed it."""

    batch: int
    paused: bool
    changed: bool


async def list_batches(
    app: Retoma, before: int | None = None, limit: int = 50
) -> list[BatchSeen]:
    """Newest first, with how far each one is."""
    found = await app.batches.list(before=before, limit=limit)
    return [seen_of(each, await each.progress()) for each in found]


async def show_batch(app: Retoma, batch: int) -> BatchDetails:
    """How many of its jobs are in each state."""
    found = await app.batches.get(batch)
    seen = seen_of(found, await found.progress())
    return BatchDetails(seen, await app.dead.codes(batch))


async def resume_batch(app: Retoma, batch: int, *, actor: str) -> int:
    """Its parked jobs go on where they stopped."""
    return await (await app.batches.get(batch)).resume(actor=actor)


async def retry_failed(
    app: Retoma, batch: int, *, code: list[str] | None = None, actor: str
) -> int:
    """Try its dead jobs again with a fresh budget; committed steps are kept."""
    return await (await app.batches.get(batch)).retry_failed(code or None, actor=actor)


async def rerun_batch(app: Retoma, batch: int, fresh: bool = False, *, actor: str) -> int:
    """Run every job of it that has ended once more, however it ended."""
    return await (await app.batches.get(batch)).again(fresh=fresh, actor=actor)


async def skip_jobs(
    app: Retoma,
    batch: int,
    why: str,
    job: int | None = None,
    code: list[str] | None = None,
    *,
    actor: str,
) -> int:
    """End one job of it, or those that failed with a code, without doing them."""
    found = await app.batches.get(batch)
    return await found.skip(why, job=job, codes=code or None, actor=actor)


async def pause_batch(app: Retoma, batch: int, *, actor: str) -> Paused:
    """Start no more of its jobs; what runs ends."""
    return Paused(batch, True, await (await app.batches.get(batch)).pause(actor=actor))


async def unpause_batch(app: Retoma, batch: int, *, actor: str) -> Paused:
    """Let it go on where it was paused."""
    return Paused(batch, False, await (await app.batches.get(batch)).unpause(actor=actor))


async def cancel_batch(app: Retoma, batch: int, *, actor: str) -> int:
    """End every job of it that has not ended; running ones end at their next step."""
    return await (await app.batches.get(batch)).cancel(actor=actor)


def seen_of(batch: Batch, progress: Progress) -> BatchSeen:
    """A batch with how far it is, as plain values."""
    eta = progress.eta
    return BatchSeen(
        id=batch.id,
        name=batch.name,
        kind=batch.kind,
        state=progress.state,
        paused=progress.paused,
        total=progress.total,
        ended=progress.ended,
        counts=progress.counts,
        share=progress.share,
        rate=progress.rate,
        eta=None if eta is None else eta.total_seconds(),
    )
