"""The relaunched pages: sections with data attributes, times with their zone, one timeline, newest first."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Final
from zoneinfo import ZoneInfo

from retoma.apps.matches.sandbox.layouts.listing import Listing
from retoma.apps.matches.sandbox.leagues import Player
from retoma.apps.matches.sandbox.odd import Odd
from retoma.apps.matches.sandbox.season import Event, Match, Status

STATUSES: Final[Mapping[Status, str]] = {
    Status.SCHEDULED: "NS",
    Status.LIVE: "LIVE",
    Status.FINISHED: "FT",
    Status.POSTPONED: "PST",
}
TYPES: Final = {
    "goal": "goal",
    "own_goal": "own-goal",
    "penalty": "penalty-goal",
    "yellow": "yellow-card",
    "red": "red-card",
    "substitution": "sub",
}


def round_page(listing: Listing) -> str:
    league = listing.league
    cards = "".join(
        f'<article data-match="{match.id}" data-status="{STATUSES[match.status]}">'
        f'<a href="{escape(link)}"><strong data-side="home">{escape(match.home.long)}</strong>'
        f"{_goals(match)}"
        f'<strong data-side="away">{escape(match.away.long)}</strong></a>{_time(match)}</article>'
        for match, link in listing.matches
    )
    return _page(
        f"{league.title}: rodada {listing.round}",
        f'<main data-page="round" data-league="{league.title}" data-season="{league.year}" data-round="{listing.round}">'
        f'<section data-matches="{listing.total}">{cards}</section></main>',
    )


def match_page(match: Match, odd: Odd | None) -> str:
    status = "???" if odd is Odd.UNKNOWN_STATUS else STATUSES[match.status]
    status = "WO" if match.walkover else status
    goals = "" if odd is Odd.NO_SCORE else _goals(match)
    return _page(
        f"{match.home.long} vs. {match.away.long}",
        f'<main data-page="match" data-league="{match.league.title}"'
        f' data-season="{match.league.year}" data-round="{match.round}"'
        f' data-status="{status}"><header><h2 data-side="home">{escape(match.home.long)}</h2>'
        f'{goals}<h2 data-side="away">{escape(match.away.long)}</h2>{_time(match)}'
        f"<address>{escape(match.stadium)}</address></header>"
        f"{_timeline(match.events)}{_statistics(match, odd)}{_lineups(match, odd)}</main>",
    )


def _goals(match: Match) -> str:
    if match.score is None:
        return "<output data-score></output>"
    home, away = match.score
    return f'<output data-score data-home="{home}" data-away="{away}">{home}:{away}</output>'


def _timeline(events: Sequence[Event]) -> str:
    rows = "".join(
        f'<li data-type="{TYPES[each.kind]}" data-side="{each.side}" data-minute="{each.minute}"'
        f"{_added(each)}><cite>{escape(each.player)}</cite>{_off(each)}</li>"
        for each in reversed(events)
    )
    return f"<ol data-timeline>{rows}</ol>"


def _added(event: Event) -> str:
    return f' data-added="{event.added}"' if event.added else ""


def _off(event: Event) -> str:
    return f"<del>{escape(event.other)}</del>" if event.other else ""


def _statistics(match: Match, odd: Odd | None) -> str:
    rows = []
    for name, (home, away) in match.statistics.items():
        said = str(home)
        if name == "possession" and odd in (Odd.EMPTY, Odd.WORDS):
            said = "" if odd is Odd.EMPTY else "muita"
        code = name.replace("_", "-")
        rows.append(
            f'<div data-stat="{code}"><dt>{code}</dt><dd>{said}</dd><dd>{away}</dd></div>'
        )
    return f"<dl data-stats>{''.join(rows)}</dl>"


def _lineups(match: Match, odd: Odd | None) -> str:
    if odd is Odd.NO_LINEUP:
        return ""
    return "".join(
        f'<section data-lineup="{side}"><ul data-role="starting">{_players(first)}</ul>'
        f'<ul data-role="bench">{_players(bench)}</ul>'
        f"<p data-coach>{escape(match.coach(side))}</p></section>"
        for side, (first, bench) in match.lineups.items()
    )


def _players(players: Sequence[Player]) -> str:
    return "".join(
        f"<li><span data-number>{each.number}</span><span data-name>{escape(each.name)}</span></li>"
        for each in players
    )


def _time(match: Match) -> str:
    if match.kickoff is None:
        return "<time>TBD</time>"
    local = match.kickoff.astimezone(ZoneInfo(match.league.zone))
    return f'<time datetime="{local.isoformat()}">{local:%H:%M}</time>'


def _page(title: str, body: str) -> str:
    return (
        '<!doctype html><html lang="pt"><head><meta charset="utf-8">'
        f'<title>{escape(title)}</title><link rel="stylesheet" href="/app.css"></head>'
        f'<body><div id="app">{body}</div><script type="module" src="/app.js"></script></body></html>'
    )
