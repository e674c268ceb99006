"""Matches that are over: `partidas`, with their events and statistics, by one unique key (R2)."""

import json
from collections.abc import Iterable
from typing import Any, Final

from retoma.apps.matches.model import Side
from retoma.apps.matches.schemas import MatchPage
from retoma.apps.matches.sites import site_of
from retoma.apps.matches.store.rows import json_of, named, verb
from retoma.db import Call
from retoma.db import Transaction as Reading
from retoma.engine.errors import NotFound
from retoma.engine.transaction import Transaction
from retoma.words import say

ADD_EVENTS = verb("add_events")
ADD_MATCH = verb("add_match")
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


def put_teams(tx: Transaction, league: str, keys: Iterable[str]) -> None:
    """Once they are known to play: with the tasks of a round, not with each match of it."""
    teams = site_of(league).league.teams
    rows = [{"key": key, "name": teams[key].name} for key in sorted(set(keys))]
    tx.run(PUT_TEAMS, league=league, rows=json.dumps(rows))


def add(tx: Transaction, page: MatchPage, url: str, *, actor: str) -> tuple[int, list[Call]]:
    """Its number, and what is still to be written of it: nothing where it was there before (R6)."""
    if page.score is None or page.statistics is None or page.lineups is None:
        raise ValueError(f"{page.key}: only a match that is over is stored, not {page.status}")
    which: dict[str, Any] = {
        name: getattr(page, name) for name in ("league", "season", "round", "home", "away")
    }
    made = tx.one(
        ADD_MATCH,
        **which,
        status=str(page.status),
        kickoff=page.kickoff,
        stadium=page.stadium,
        home_score=page.score.home,
        away_score=page.score.away,
        lineups=page.lineups.model_dump_json(),
        url=url,
        actor=actor,
    )
    if made is None:
        [(partida,)] = tx.all(FIND_MATCH, **which)
        return int(partida), []
    partida = int(made[0])
    return partida, [
        Call(ADD_EVENTS, {"partida": partida, "rows": _events(page)}),
        Call(ADD_STATISTICS, {"partida": partida, "rows": _statistics(page)}),
    ]


def _events(page: MatchPage) -> str:
    told = [each.model_dump(mode="json") for each in page.events]
    return json.dumps([{"n": n, **each} for n, each in enumerate(told, 1)])


def _statistics(page: MatchPage) -> str:
    told = {} if page.statistics is None else page.statistics.model_dump()
    return json.dumps([{"name": name, **sides} for name, sides in told.items()])


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
