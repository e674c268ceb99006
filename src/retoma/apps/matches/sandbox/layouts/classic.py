"""The old pages: tables, classes in Portuguese, times of the place, an event in the list of its kind."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Final
from zoneinfo import ZoneInfo

from retoma.apps.matches.sandbox.layouts.listing import Listing
from retoma.apps.matches.sandbox.leagues import Player
from retoma.apps.matches.sandbox.odd import Odd
from retoma.apps.matches.sandbox.season import GOALS, Event, Match, Status

SIDES: Final = {"home": "mandante", "away": "visitante"}
STATUSES: Final[Mapping[Status, str]] = {
    Status.SCHEDULED: "Agendado",
    Status.LIVE: "Ao vivo",
    Status.FINISHED: "Encerrado",
    Status.POSTPONED: "Adiado",
}
STATISTICS: Final = {
    "possession": "Posse de bola",
    "shots": "Finalizações",
    "shots_on_target": "Finalizações no gol",
    "corners": "Escanteios",
    "fouls": "Faltas",
    "offsides": "Impedimentos",
    "passes": "Passes",
}
MARKS: Final = {"goal": "", "own_goal": " <i>contra</i>", "penalty": " <i>pênalti</i>"}
COLOURS: Final = {"yellow": "amarelo", "red": "vermelho"}


def round_page(listing: Listing) -> str:
    league = listing.league
    rows = "".join(
        f'<tr class="jogo"><td class="data">{_time(match)}</td>'
        f'<td class="mandante">{escape(match.home.short)}</td>'
        f'<td class="placar"><a href="{escape(link)}">{_score(match)}</a></td>'
        f'<td class="visitante">{escape(match.away.short)}</td>'
        f'<td class="situacao">{STATUSES[match.status]}</td></tr>'
        for match, link in listing.matches
    )
    return _page(
        f"{league.title} {league.year}",
        f'<div id="topo"><h1><span class="liga">{league.title}</span> <b class="temporada">{league.year}</b></h1>'
        f'<h2 class="rodada">{listing.round}ª rodada</h2></div>'
        f'<table class="jogos"><caption>{listing.total} jogos</caption>{rows}</table>',
    )


def match_page(match: Match, odd: Odd | None) -> str:
    league = match.league
    score = "" if odd is Odd.NO_SCORE else f'<span class="placar">{_score(match)}</span>'
    status = "Intergaláctico" if odd is Odd.UNKNOWN_STATUS else STATUSES[match.status]
    status = "W.O." if match.walkover else status
    return _page(
        f"{match.home.short} x {match.away.short}",
        f'<div id="topo"><h1><span class="liga">{league.title}</span> <b class="temporada">{league.year}</b></h1>'
        f'<h2 class="rodada">{match.round}ª rodada</h2></div>'
        f'<div id="jogo"><h1 class="confronto"><span class="mandante">{escape(match.home.short)}'
        f'</span> {score} <span class="visitante">{escape(match.away.short)}</span></h1>'
        f'<p class="situacao">{status}</p><p class="data">{_time(match)}</p>'
        f'<p class="estadio">{escape(match.stadium)}</p>'
        f"{_events(match.events)}{_statistics(match, odd)}{_lineups(match, odd)}</div>",
    )


def _events(events: Sequence[Event]) -> str:
    goals = "".join(
        f'<li class="{SIDES[each.side]}"><b>{_minute(each)}</b> '
        f'<span class="jogador">{escape(each.player)}</span>{MARKS[each.kind]}</li>'
        for each in events
        if each.kind in GOALS
    )
    cards = "".join(
        f'<li class="{SIDES[each.side]} {COLOURS[each.kind]}"><b>{_minute(each)}</b> '
        f'<span class="jogador">{escape(each.player)}</span></li>'
        for each in events
        if each.kind in COLOURS
    )
    changes = "".join(
        f'<li class="{SIDES[each.side]}"><b>{_minute(each)}</b> entra '
        f'<span class="entra">{escape(each.player)}</span>, sai '
        f'<span class="sai">{escape(each.other or "")}</span></li>'
        for each in events
        if each.kind == "substitution"
    )
    return (
        f'<h3>Gols</h3><ul class="gols">{goals}</ul><h3>Cartões</h3><ul class="cartoes">{cards}'
        f'</ul><h3>Substituições</h3><ul class="substituicoes">{changes}</ul>'
    )


def _statistics(match: Match, odd: Odd | None) -> str:
    rows = []
    for name, (home, away) in match.statistics.items():
        sign = "%" if name == "possession" else ""
        said = f"{home}{sign}"
        if name == "possession" and odd in (Odd.EMPTY, Odd.WORDS):
            said = "" if odd is Odd.EMPTY else "muita"
        rows.append(f"<tr><td>{said}</td><th>{STATISTICS[name]}</th><td>{away}{sign}</td></tr>")
    return f'<table class="estatisticas">{"".join(rows)}</table>'


def _lineups(match: Match, odd: Odd | None) -> str:
    if odd is Odd.NO_LINEUP:
        return ""
    return "".join(
        f'<div class="escalacao {SIDES[side]}"><ol class="titulares">{_players(first)}</ol>'
        f'<ol class="reservas">{_players(bench)}</ol>'
        f'<p class="tecnico">{escape(match.coach(side))}</p></div>'
        for side, (first, bench) in match.lineups.items()
    )


def _players(players: Sequence[Player]) -> str:
    return "".join(f'<li value="{each.number}">{escape(each.name)}</li>' for each in players)


def _minute(event: Event) -> str:
    return f"{event.minute}+{event.added}'" if event.added else f"{event.minute}'"


def _score(match: Match) -> str:
    return "x" if match.score is None else f"{match.score[0]} x {match.score[1]}"


def _time(match: Match) -> str:
    if match.kickoff is None:
        return "A definir"
    return f"{match.kickoff.astimezone(ZoneInfo(match.league.zone)):%d/%m/%Y %H:%M}"


def _page(title: str, body: str) -> str:
    return (
        '<!DOCTYPE html><html lang="pt-BR"><head><meta charset="utf-8">'
        f"<title>{escape(title)}</title></head><body>{body}"
        '<div id="rodape">Tabela de jogos</div></body></html>'
    )
