"""Pauses: applications, kinds and queues of which nothing is claimed for a while."""

from dataclasses import dataclass

from retoma.engine.ops.pauses import scope_of
from retoma.engine.store.pauses import SCOPES, Pause, Scope
from retoma.library import Retoma

__all__ = ["SCOPES", "Pause", "Resumed", "Scope"]


@dataclass(frozen=True, slots=True)
class Paused:
    """What is paused, and whether it was this call that paused it."""

    scope: Scope
    name: str
    since: object
    actor: str
    why: str | None
    changed: bool


@dataclass(frozen=True, slots=True)
class Resumed:
    """What is no longer paused, and whether it was this call that changed it."""

    scope: Scope
    name: str
    paused: bool
    changed: bool


async def list_pauses(app: Retoma) -> list[Pause]:
    """What is paused, since when and by whom."""
    return await app.pauses.all()


async def pause(
    app: Retoma, what: str, name: str, *, why: str | None = None, actor: str
) -> Paused:
    """Claim nothing more of an application, a kind or a queue; what runs goes on to its end."""
    found, changed = await app.pauses.pause(scope_of(what), name, why, actor=actor)
    return Paused(found.scope, found.name, found.since, found.actor, found.why, changed)


async def resume(app: Retoma, what: str, name: str, *, actor: str) -> Resumed:
    """Let it go on where it stood."""
    scope = scope_of(what)
    changed = await app.pauses.resume(scope, name, actor=actor)
    return Resumed(scope, name, paused=False, changed=changed)
