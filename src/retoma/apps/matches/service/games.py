"""Stored matches: listed, read."""

from collections.abc import AsyncIterator
from functools import partial
from typing import Any, Final

from retoma.apps.matches import store
from retoma.apps.matches.store.games import StoredMatch, WholeMatch
from retoma.library import Retoma

PAGE: Final = 1_000  # matches read at a time, where all are wanted


async def list_matches(
    retoma: Retoma,
    *,
    limit: int,
    after: int = 0,
    league: str | None = None,
    season: int | None = None,
    round_: int | None = None,
    team: str | None = None,
) -> list[StoredMatch]:
    """Stored matches in the order of their ids; `after`: only those with a larger one."""
    how: dict[str, Any] = {"league": league, "season": season, "round_": round_, "team": team}
    database = await retoma.database()
    return await database.read(partial(store.games.list_matches, after=after, n=limit, **how))


async def list_all_matches(retoma: Retoma, **which: Any) -> AsyncIterator[list[StoredMatch]]:
    """Every stored match that `list_matches` would list, page by page."""
    after = 0
    while True:
        page = await list_matches(retoma, limit=PAGE, after=after, **which)
        yield page
        if len(page) < PAGE:
            return
        after = page[-1].id


async def get_match(retoma: Retoma, match: int) -> WholeMatch:
    database = await retoma.database()
    return await database.read(lambda tx: store.games.match_seen(tx, match))


async def get_match_page(retoma: Retoma, match: int) -> dict[str, Any]:
    """A stored match as its page would be read, in values of JSON; corrected, it is given back so."""
    database = await retoma.database()
    return await database.read(lambda tx: store.games.page_of(tx, match))
