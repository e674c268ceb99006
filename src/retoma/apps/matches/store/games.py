"""Matches that are over: `partidas`, with their events and statistics, by one unique key (R2)."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from retoma.apps.matches.model import Side
from retoma.apps.matches.schemas import MatchPage
from retoma.apps.matches.sites import site_of
from retoma.apps.matches.store.rows import json_of, named, verb
from retoma.db import Call
from retoma.db import Transaction as Reading
from retoma.db.database import microseconds
from retoma.engine.errors import NotFound
from retoma.engine.transaction import Transaction
from retoma.words import say

ADD_EVENTS = verb("add_events")
ADD_MATCHES = verb("add_matches")
ADD_STATISTICS = verb("add_statistics")
FIND_MATCH = verb("find_match")
LIST_MATCHES = verb("list_matches")
MATCH_EVENTS = verb("match_events")
MATCH_STATISTICS = verb("match_statistics")
PUT_TEAMS = verb("put_teams")
SHOW_MATCH = verb("show_match")

COLUMNS: Final = (
    *("id", "league", "season", "round", "home", "home_name", "away", "away_name", "status"),
    *("kickoff", "stadium", "home_score", "away_score", "url", "stored_by", "stored_at"),
)
EVENT: Final = ("minute", "added", "side", "kind", "player", "other")
STATISTIC: Final = ("name", "home", "away")
MATCH: Final = ("league", "season", "round", "home", "away")


@dataclass(frozen=True, slots=True)
class Over:
    """A match that is over, as its page tells it, and who stores it."""

    page: MatchPage
    url: str
    actor: str


def put_teams(tx: Transaction, league: str, keys: Iterable[str]) -> None:
    """Once they are known to play: with the tasks of a round, not with each match of it."""
    teams = site_of(league).league.teams
    rows = [{"key": key, "name": teams[key].name} for key in sorted(set(keys))]
    tx.run(PUT_TEAMS, league=league, rows=json.dumps(rows))


def add(tx: Transaction, over: Sequence[Over]) -> tuple[list[tuple[int, bool]], list[Call]]:
    """The number of each, and whether it was there before (R6); what is still to be written of the rest."""
    rows = json.dumps([_row(each) for each in over])
    made = {tuple(which): int(partida) for partida, *which in tx.all(ADD_MATCHES, rows=rows)}
    numbers: list[tuple[int, bool]] = []
    new: list[tuple[int, MatchPage]] = []
    for each in over:
        which = tuple(getattr(each.page, name) for name in MATCH)
        partida = made.pop(which, None)  # of two that tell of the same one is the first
        if partida is None:
            [(there,)] = tx.all(FIND_MATCH, **dict(zip(MATCH, which, strict=True)))
            numbers.append((int(there), True))
        else:
            numbers.append((partida, False))
            new.append((partida, each.page))
    return numbers, _rest(new) if new else []


def _row(over: Over) -> dict[str, Any]:
    page = over.page
    if not (page.score and page.statistics and page.lineups and page.kickoff):
        raise ValueError(f"{page.key}: only a match that is over is stored, not {page.status}")
    return {
        **{name: getattr(page, name) for name in MATCH},
        "status": str(page.status),
        "kickoff": page.kickoff.isoformat(),
        "micros": microseconds(page.kickoff),
        "stadium": page.stadium,
        "home_score": page.score.home,
        "away_score": page.score.away,
        "lineups": page.lineups.model_dump_json(),
        "url": over.url,
        "actor": over.actor,
    }


def _rest(new: Sequence[tuple[int, MatchPage]]) -> list[Call]:
    told = [
        (partida, page.model_dump(mode="json", include={"events", "statistics"}))
        for partida, page in new
    ]
    events = [
        {"partida": partida, "n": n, **each}
        for partida, page in told
        for n, each in enumerate(page["events"], 1)
    ]
    statistics = [
        {"partida": partida, "name": name, **sides}
        for partida, page in told
        for name, sides in page["statistics"].items()
    ]
    return [
        Call(ADD_EVENTS, {"rows": json.dumps(events)}),
        Call(ADD_STATISTICS, {"rows": json.dumps(statistics)}),
    ]


def list_matches(
    tx: Reading,
    *,
    after: int,
    n: int,
    league: str | None = None,
    season: int | None = None,
    round_: int | None = None,
    team: str | None = None,
) -> list[dict[str, Any]]:
    how = {"league": league, "season": season, "round": round_, "team": team}
    return [named(COLUMNS, row) for row in tx.all(LIST_MATCHES, **how, after=after, n=n)]


def match_seen(tx: Reading, partida: int) -> dict[str, Any]:
    """All that is stored of one."""
    row = tx.one(SHOW_MATCH, partida=partida)
    if row is None:
        raise NotFound(say("there is no match {partida}", partida=partida))
    events = tx.all(MATCH_EVENTS, partida=partida)
    statistics = tx.all(MATCH_STATISTICS, partida=partida)
    return {
        **named(COLUMNS, row[:-1]),
        "lineups": json_of(row[-1]),
        "events": [named(EVENT, each) for each in events],
        "statistics": {
            name: {Side.HOME: home, Side.AWAY: away} for name, home, away in statistics
        },
    }
