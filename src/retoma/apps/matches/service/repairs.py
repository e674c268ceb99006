"""Repairs that a person makes; who made each and why is in the audit."""

from collections.abc import Sequence
from dataclasses import dataclass

from retoma.apps.matches import store
from retoma.apps.matches.model import MatchStatus
from retoma.apps.matches.schemas import MatchPage
from retoma.apps.matches.service.scrapes import check_round
from retoma.apps.matches.store.games import WholeMatch
from retoma.apps.matches.store.rows import Round
from retoma.apps.matches.store.tasks import ScrapeTask
from retoma.engine.rules.errors import BadInput
from retoma.engine.run.transaction import Transaction
from retoma.library import Retoma
from retoma.words import say


@dataclass(frozen=True, slots=True)
class Correction:
    """A stored match after a correction, and the names of what has changed."""

    match: WholeMatch
    changed: Sequence[str]


async def accept_match(
    retoma: Retoma, task: int, page: MatchPage, why: str, *, actor: str
) -> ScrapeTask:
    """Store the match of a failed task as a person says it is."""
    _check_finished(page)

    def accept(tx: Transaction) -> ScrapeTask:
        store.repairs.accept(tx, task, page, why, actor=actor)
        return store.tasks.task_seen(tx, task)

    return await retoma.write(accept)


async def correct_match(
    retoma: Retoma, match: int, page: MatchPage, why: str, *, actor: str, revision: int | None
) -> Correction:
    """Replace a stored match, whole. `revision` None: whichever is stored."""
    _check_finished(page)

    def correct(tx: Transaction) -> Correction:
        seen = _revision(tx, match, revision)
        changed = store.repairs.correct(tx, match, seen, page, why, actor=actor)
        return Correction(store.games.match_seen(tx, match), changed)

    return await retoma.write(correct)


async def delete_match(
    retoma: Retoma, match: int, why: str, *, actor: str, revision: int | None
) -> list[int]:
    """Delete a stored match: the scrapes that lack it now. `revision` None: whichever is stored."""
    return await retoma.write(
        lambda tx: store.repairs.delete(
            tx, match, _revision(tx, match, revision), why, actor=actor
        )
    )


async def refresh_match(retoma: Retoma, match: int, why: str, *, actor: str) -> int:
    """Ask the site for a stored match again: the job. The match stays as it is until its page was read."""
    return await retoma.write(lambda tx: store.repairs.refresh(tx, match, why, actor=actor))


async def drop_match(retoma: Retoma, task: int, why: str, *, actor: str) -> ScrapeTask:
    """Drop a match that never was: its round expects it no longer, also in later scrapes."""
    return await retoma.write(lambda tx: store.repairs.drop(tx, task, why, actor=actor))


async def restore_match(retoma: Retoma, task: int, *, actor: str) -> ScrapeTask:
    """Look again for a match that was dropped."""
    return await retoma.write(lambda tx: store.repairs.restore(tx, task, actor=actor))


async def confirm_size(
    retoma: Retoma, of: Round, matches: int, why: str, *, actor: str
) -> None:
    """Record how many matches a round has, where its league does not know."""
    check_round(of)
    await retoma.write(lambda tx: store.repairs.confirm(tx, of, matches, why, actor=actor))


def _revision(tx: Transaction, match: int, seen: int | None) -> int:
    return store.games.match_seen(tx, match).revision if seen is None else seen


def _check_finished(page: MatchPage) -> None:
    if page.status is not MatchStatus.FINISHED:
        raise BadInput(
            say("only a match that is over is stored, not {status}", status=page.status)
        )
