"""Matches that are over: `partidas`, with their events and statistics, by one unique key (R2)."""

import dataclasses
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Final

from retoma import db
from retoma.apps.matches.model import Side, Wanted
from retoma.apps.matches.schemas import MatchPage, match_key
from retoma.apps.matches.sites import site_of
from retoma.apps.matches.store.rows import SQL, Round
from retoma.db import Call, Json
from retoma.db.rows import microseconds
from retoma.engine.rules.errors import IllegalMove, NotFound
from retoma.engine.run.transaction import Transaction
from retoma.words import say

EVENT: Final = ("minute", "added", "side", "kind", "player", "other")
STATISTIC: Final = ("name", "home", "away")
MATCH: Final = ("league", "season", "round", "home", "away")


@dataclass(frozen=True, slots=True)
class StoredMatch:
    """A row of the document's `partidas`: a match that is over."""

    id: int
    league: str
    season: int
    round: int
    home: str
    home_name: str | None
    away: str
    away_name: str | None
    status: str
    kickoff: datetime | None
    stadium: str
    home_score: int
    away_score: int
    url: str
    stored_by: str
    stored_at: datetime | None
    walkover: bool
    revision: int

    @property
    def of(self) -> Round:
        return Round(self.league, self.season, self.round)

    @property
    def key(self) -> str:
        return match_key(self.home, self.away)


@dataclass(frozen=True, slots=True)
class WholeMatch(StoredMatch):
    """A stored match, with all that happened in it."""

    lineups: Json
    # Of rows of their own.
    events: list[dict[str, Any]] = field(default_factory=list)
    statistics: dict[str, dict[str, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Refresh:
    """The payload of a refresh: which match is asked for again, who wants it and why."""

    partida: int
    actor: str
    why: str


@dataclass(frozen=True, slots=True)
class Kept:
    """A stored match, and what its page must say of itself to be its page."""

    partida: int
    of: Round
    key: str
    url: str
    revision: int

    @property
    def wanted(self) -> Wanted:
        return Wanted(season=self.of.season, round=self.of.round, key=self.key)


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
    tx.run(SQL.put_teams, league=league, rows=json.dumps(rows))


def add(tx: Transaction, over: Sequence[Over]) -> tuple[list[tuple[int, bool]], list[Call]]:
    """The number of each, and whether it was there before (R6); what is still to be written of the rest."""
    rows = json.dumps([_row(each) for each in over])
    made = {
        tuple(which): int(partida) for partida, *which in tx.all(SQL.add_matches, rows=rows)
    }
    numbers: list[tuple[int, bool]] = []
    new: list[tuple[int, MatchPage]] = []
    for each in over:
        which = tuple(getattr(each.page, name) for name in MATCH)
        partida = made.pop(which, None)  # of two that tell of the same one is the first
        if partida is None:
            [there] = tx.all(SQL.find_match, into=int, **dict(zip(MATCH, which, strict=True)))
            numbers.append((there, True))
        else:
            numbers.append((partida, False))
            new.append((partida, each.page))
    return numbers, _rest(new) if new else []


def _row(over: Over) -> dict[str, Any]:
    page = over.page
    whole = page.walkover or (page.statistics and page.lineups)
    if not (page.score and page.kickoff and whole):
        raise ValueError(f"{page.key}: only a match that is over is stored, not {page.status}")
    return {
        **{name: getattr(page, name) for name in MATCH},
        "status": str(page.status),
        "kickoff": page.kickoff.isoformat(),
        "micros": microseconds(page.kickoff),
        "stadium": page.stadium,
        "home_score": page.score.home,
        "away_score": page.score.away,
        "lineups": "null" if page.lineups is None else page.lineups.model_dump_json(),
        "walkover": int(page.walkover),
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
        for name, sides in (page["statistics"] or {}).items()
    ]
    return [
        Call(SQL.add_events, {"rows": json.dumps(events)}),
        Call(SQL.add_statistics, {"rows": json.dumps(statistics)}),
    ]


# — changed —


def kept_of(tx: db.Transaction, partida: int) -> Kept:
    """What is told of a stored match to whoever asks its site for it again."""
    there = match_seen(tx, partida)
    return Kept(partida, there.of, there.key, there.url, there.revision)


def replace(
    tx: Transaction, partida: int, revision: int, page: MatchPage, actor: str
) -> list[str]:
    """What is told of a stored match now, whole; the names of what is told otherwise than before.

    IllegalMove where it is another match, or where somebody has changed it since that revision."""
    before = match_seen(tx, partida)
    if any(getattr(page, name) != getattr(before, name) for name in MATCH):
        raise IllegalMove(
            say("match {partida} is another one; delete it instead", partida=partida)
        )
    changed = _changed(before, page)
    if before.revision == revision and not changed:
        return []
    row = _row(Over(page, before.url, actor))
    names = ("stadium", "home_score", "away_score", "lineups", "walkover", "actor")
    given = {"kickoff": page.kickoff, **{name: row[name] for name in names}}
    if tx.one(SQL.change_match, partida=partida, revision=revision, **given) is None:
        raise _moved(partida)
    tx.run(SQL.delete_events, partida=partida)
    tx.run(SQL.delete_statistics, partida=partida)
    for call in _rest([(partida, page)]):
        tx.run(call.statement, **call.params)
    return changed


def _changed(before: WholeMatch, page: MatchPage) -> list[str]:
    told = page.model_dump(mode="json")
    now = {
        **{name: told[name] for name in ("stadium", "events", "lineups")},
        "statistics": told["statistics"] or {},
        "walkover": page.walkover,
        "home_score": page.score and page.score.home,
        "away_score": page.score and page.score.away,
        "kickoff": page.kickoff,
    }
    return sorted(name for name, value in now.items() if getattr(before, name) != value)


def remove(tx: Transaction, partida: int, revision: int) -> WholeMatch:
    """A match is stored no longer, with all that belongs to it: what it was."""
    before = match_seen(tx, partida)
    if tx.one(SQL.delete_match, partida=partida, revision=revision) is None:
        raise _moved(partida)
    tx.run(SQL.delete_events, partida=partida)
    tx.run(SQL.delete_statistics, partida=partida)
    return before


def refreshed(
    tx: Transaction, asked: Refresh, revision: int, page: MatchPage, actor: str
) -> list[str]:
    """What its page says now is stored in its place; in the audit by whom, why, and what it was."""
    before = match_seen(tx, asked.partida)
    changed = replace(tx, asked.partida, revision, page, actor)
    told = {"why": asked.why, "changed": changed, "before": plain(before) if changed else None}
    tx.tell("matches.refreshed", f"match {asked.partida}", told, actor=asked.actor)
    return changed


def page_of(tx: db.Transaction, partida: int) -> dict[str, Any]:
    """A stored match as its page would be read, in values of JSON: so it is put right."""
    there = match_seen(tx, partida)
    told = plain(there)
    same = (*MATCH, "kickoff", "stadium", "status", "walkover", "events", "lineups")
    return {
        "key": there.key,
        **{name: told[name] for name in same},
        "score": {Side.HOME: told["home_score"], Side.AWAY: told["away_score"]},
        "statistics": told["statistics"] or None,
    }


def plain(match: WholeMatch) -> dict[str, Any]:
    """A stored match as values of JSON: for the audit."""
    times = {"kickoff": match.kickoff, "stored_at": match.stored_at}
    return {**asdict(match), **{name: at and at.isoformat() for name, at in times.items()}}


def note(*_: Any) -> None:
    """What asking for a match again came to is in the evidence of its job alone."""


def _moved(partida: int) -> IllegalMove:
    return IllegalMove(
        say(
            "match {partida} was changed by somebody else meanwhile: look again",
            partida=partida,
        )
    )


def list_matches(
    tx: db.Transaction,
    *,
    after: int,
    n: int,
    league: str | None = None,
    season: int | None = None,
    round_: int | None = None,
    team: str | None = None,
) -> list[StoredMatch]:
    how = {"league": league, "season": season, "round": round_, "team": team}
    return tx.all(SQL.list_matches, into=StoredMatch, **how, after=after, n=n)


def match_seen(tx: db.Transaction, partida: int) -> WholeMatch:
    """All that is stored of one."""
    found = tx.one(SQL.show_match, into=WholeMatch, partida=partida)
    if found is None:
        raise NotFound(say("there is no match {partida}", partida=partida))
    events = tx.all(SQL.match_events, partida=partida)
    statistics = tx.all(SQL.match_statistics, partida=partida)
    return dataclasses.replace(
        found,
        events=[dict(zip(EVENT, each, strict=True)) for each in events],
        statistics={
            name: {Side.HOME: home, Side.AWAY: away} for name, home, away in statistics
        },
    )
