"""Leagues, sites and verdicts as data; what a match is, by rules that no page is needed for."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from retoma.apps.matches.model import (
    CODES,
    STATUS,
    EventKind,
    LayoutChanged,
    MatchStatus,
    SchemaInvalid,
    Side,
    TaskStatus,
    Verdict,
)
from retoma.apps.matches.sandbox import LAST_STEP, LEAGUES, Season
from retoma.apps.matches.schemas import Event, MatchPage, clean, validated
from retoma.apps.matches.sites import LONG, site_of, sites, slug
from retoma.engine.rules.errors import (
    Action,
    BadInput,
    NotFound,
    Permanent,
    Throttled,
    Transient,
)
from retoma.engine.rules.states import State
from retoma.outbound import Policy

SITE = sites()["brasileirao"].at("https://jogos.example")
NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


def told() -> dict[str, Any]:
    """A match that is as it should be, in plain values."""
    match = next(
        each for each in Season(7).every("brasileirao", LAST_STEP) if each.score == (2, 1)
    )
    plain = match.plain()
    lineups = {
        side: {role: tuple(players) for role, players in lineup.items()}
        for side, lineup in plain["lineups"].items()
    }
    return {
        **plain,
        "kickoff": match.kickoff,
        "events": tuple(plain["events"]),
        "lineups": lineups,
    }


# — states and codes —


def test_every_state_has_its_word_and_every_error_its_line():
    assert set(State) == set(STATUS)
    assert set(TaskStatus) - set(STATUS.values()) == {TaskStatus.NOT_YET}
    for error in (LayoutChanged, SchemaInvalid):
        assert issubclass(error, Permanent)
    assert {Action.BURY} == {
        CODES[code].action for code in ("LAYOUT_CHANGED", "SCHEMA_INVALID")
    }
    assert Action.RETRY is CODES["NOT_PUBLISHED"].action


# — leagues and sites —


def test_the_teams_of_the_sandbox_are_known_by_all_their_names():
    for name, league in LEAGUES.items():
        known = sites()[name].league

        assert {team.key for team in league.teams} == set(known.teams)
        assert (league.rounds, league.zone) == (known.rounds, known.zone)
        for team in league.teams:
            assert team.key == known.team_key(team.short) == known.team_key(team.long)


@pytest.mark.parametrize(
    "said", ["ATLÉTICO-MG", "Atle\u0301tico Mineiro", " atletico  mg ", "Atlético\u202e-MG"]
)
def test_a_team_is_known_however_it_is_written(said):
    assert "atletico-mg" == SITE.league.team_key(said)


def test_no_two_teams_answer_to_one_name():
    for site in sites().values():
        names = [
            slug(name)
            for team in site.league.teams.values()
            for name in (team.name, *team.aliases)
        ]

        assert len(names) == len(set(names))
    assert None is SITE.league.team_key("Íbis")
    assert None is SITE.league.team_key("")


def test_a_round_that_cannot_be_is_refused():
    assert "https://jogos.example/brasileirao/2026/rodada/38" == SITE.round_url(2026, 38)
    for season, number in ((2026, 0), (2026, 39), (2026, -1), (0, 1), (99_999, 1)):
        with pytest.raises(BadInput):
            SITE.round_url(season, number)
    with pytest.raises(NotFound, match="brasileirao, liga-portugal"):
        site_of("premier")


@pytest.mark.parametrize(
    "link",
    [
        "https://elsewhere.example/brasileirao/2026/jogo/1",
        "//elsewhere.example/brasileirao/2026/jogo/1",
        "http://jogos.example/brasileirao/2026/jogo/1",
        "https://jogos.example:8443/brasileirao/2026/jogo/1",
        "https://jogos.example@elsewhere.example/brasileirao/2026/jogo/1",
        "https://a:b@jogos.example/brasileirao/2026/jogo/1",
        "/admin",
        "/brasileirao/2026/jogo/1/../../../../admin",
        "/liga-portugal/2026/jogo/1",
        "/brasileirao/2026/jogo/1?next=x",
        "/brasileirao/2026/jogo/1\n",
        "javascript:alert(1)",
        "http://[",
        "",
    ],
)
def test_a_link_leads_to_a_match_of_its_site_or_nowhere(link):
    """H-47."""
    wanted = None if link.strip() == link else "https://jogos.example/brasileirao/2026/jogo/1"

    assert wanted == SITE.match_url(link)


def test_a_link_may_be_written_in_both_ways():
    whole = "http://127.0.0.1:8001/brasileirao/2026/jogo/1105"
    here = site_of("brasileirao").at("http://127.0.0.1:8001/")

    assert whole == here.match_url("/brasileirao/2026/jogo/1105") == here.match_url(whole)


# — what an answer means —


@pytest.mark.parametrize(
    ("status", "verdict"),
    [
        *((each, Verdict.TRANSIENT) for each in (408, 429, 500, 502, 503, 504, 599)),
        (404, Verdict.NOT_YET),
        *((each, Verdict.FATAL) for each in (400, 401, 403, 410, 418)),
    ],
)
def test_a_404_is_not_yet_and_what_is_away_comes_back(status, verdict):
    """H-43."""
    assert verdict is SITE.verdict(status)


def test_verdicts_are_what_a_policy_takes():
    policy = Policy(purpose="matches", hosts={"jogos.example"}, answers=SITE.sorts())

    assert (Transient, "NOT_PUBLISHED") == (
        policy.answers[404].raises,
        policy.answers[404].code,
    )
    assert Throttled is policy.answers[429].raises
    assert "SITE_REFUSED" == policy.answers[410].code
    assert {each.code for each in policy.answers.values()} - {"transient", "throttled"} <= set(
        CODES
    )


def test_what_is_not_over_is_looked_at_again_at_a_stated_time():
    def again(status: MatchStatus | None, kickoff: datetime | None) -> timedelta:
        return SITE.look_again(status, kickoff, NOW)

    hours = timedelta(hours=1)
    assert timedelta(minutes=5) == again(MatchStatus.LIVE, NOW - hours)
    assert 5 * hours == again(MatchStatus.SCHEDULED, NOW + 3 * hours)
    assert hours == again(MatchStatus.SCHEDULED, NOW - 9 * hours)
    assert 6 * hours == again(MatchStatus.POSTPONED, None)
    assert timedelta(minutes=30) == again(None, None)
    assert LONG == again(MatchStatus.SCHEDULED, NOW + 900 * hours)


# — what a match is —


def test_an_own_goal_counts_for_the_other_side():
    def counts_for(kind: EventKind) -> Side | None:
        told = {"minute": 1, "side": "home", "kind": kind, "player": "Zé"}
        return Event.model_validate(told).counts_for

    assert Side.AWAY is counts_for(EventKind.OWN_GOAL)
    assert Side.HOME is counts_for(EventKind.PENALTY)
    assert None is counts_for(EventKind.RED)


def changed(**how: Any) -> dict[str, Any]:
    return {**told(), **how}


def with_event(**how: Any) -> dict[str, Any]:
    plain = told()
    player = plain["lineups"]["home"]["starters"][0]["name"]
    event = {"minute": 5, "side": "home", "kind": "yellow", "player": player, **how}
    return {**plain, "events": (*plain["events"], event)}


def with_statistic(name: str, home: int, away: int) -> dict[str, Any]:
    return changed(statistics={**told()["statistics"], name: {"home": home, "away": away}})


@pytest.mark.parametrize(
    ("data", "path"),
    [
        (changed(score={"home": 2, "away": 2}), "score"),
        (changed(score=None), "score"),
        (changed(lineups=None), "lineups"),
        (changed(statistics=None), "statistics"),
        (changed(events=(), score={"home": 1, "away": 0}), "score"),
        (changed(kickoff=NOW.replace(year=2029)), "kickoff"),
        (changed(status="scheduled"), "status"),
        (changed(status="postponed"), "status"),
        (changed(kickoff=None), "kickoff"),
        (changed(kickoff=datetime(2026, 5, 1)), "kickoff"),  # noqa: DTZ001 — that is the flaw
        (changed(kickoff=NOW.replace(year=9999)), "kickoff"),
        (changed(stadium=" \u202e "), "stadium"),
        (changed(away=told()["home"]), "away"),
        (changed(key="x-x-y"), "key"),
        (changed(round=0), "round"),
        (changed(season=1), "season"),
        (changed(referee="Zé"), "referee"),
        (with_event(minute=0), "events["),
        (with_event(minute=91), "events["),
        (with_event(minute=44, added=2), "events["),
        (with_event(minute=45, added=31), "events["),
        (with_event(minute=True), "events["),
        (with_event(side="both"), "events["),
        (with_event(kind="throw-in"), "events["),
        (with_event(player="Ninguém"), "events["),
        (with_event(other="Ninguém"), "events["),
        (with_event(kind="substitution"), "events["),
        (with_statistic("possession", 60, 60), "statistics.possession"),
        (with_statistic("shots_on_target", 99, 0), "statistics.shots_on_target.home"),
        (with_statistic("fouls", -1, 0), "statistics.fouls.home"),
        ("nothing", "page"),
        (None, "page"),
    ],
)
def test_what_does_not_add_up_is_refused_by_its_path(data, path):
    """R4."""
    with pytest.raises(SchemaInvalid) as refused:
        validated(MatchPage, data)

    assert any(each.path.startswith(path) for each in refused.value.problems)


def test_events_are_told_by_minute_added_time_kind_side_and_player():
    """However they come."""
    plain = told()
    page = validated(MatchPage, plain)
    shuffled = validated(MatchPage, {**plain, "events": tuple(reversed(plain["events"]))})
    added = with_event(minute=45, added=1)

    assert page == shuffled
    minutes = [(each.minute, each.added or 0) for each in validated(MatchPage, added).events]
    assert sorted(minutes) == minutes


def test_a_name_is_kept_composed_and_without_what_turns_the_text():
    assert "Zé  <b>".replace("  ", " ") == clean(" Ze\u0301 \u202e \n <b> ")
    assert "محمد" == clean("\u200fمحمد")
    assert 7 == clean(7)
