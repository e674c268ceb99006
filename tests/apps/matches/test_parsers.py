"""Pages to matches: exactly the truth in both layouts, or one of two errors that name what failed (R4)."""

import pickle
from dataclasses import replace
from functools import cache

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from retoma.apps.matches.clients.parsers import layouts, parse_match, parse_round
from retoma.apps.matches.model import (
    LayoutChanged,
    PageRefused,
    Problem,
    SchemaInvalid,
    Wanted,
)
from retoma.apps.matches.sandbox import (
    Course,
    Layout,
    Match,
    Matches,
    Odd,
    Season,
    Status,
    build_site,
)
from retoma.apps.matches.sandbox.layouts import DRAWN, Listing
from retoma.apps.matches.sandbox.odd import oddly
from retoma.apps.matches.schemas import MatchPage, RoundPage, from_json
from retoma.apps.matches.sites import sites

TRUTH = Season(7)
ORIGIN = "https://jogos.example"
BRASILEIRAO = sites()["brasileirao"].at(ORIGIN)
CLASSIC, MODERN = BRASILEIRAO, replace(BRASILEIRAO, layouts=("modern",))
READ_BY = {Layout.CLASSIC: CLASSIC, Layout.MODERN: MODERN}
BOTH = pytest.mark.parametrize("layout", list(Layout))


def drawn(match: Match, layout: Layout) -> str:
    return DRAWN[layout].match(match, None)


def drawn_round(league: str, number: int, layout: Layout, step: int = 0) -> str:
    matches = tuple((each, each.path) for each in TRUTH.round(league, number, step))
    known = TRUTH.leagues[league]
    listing = Listing(league=known, round=number, total=len(matches), matches=matches)
    return DRAWN[layout].round(listing)


@cache
def usual() -> Match:
    """With goals, and over."""
    return next(
        each
        for each in TRUTH.every("brasileirao")
        if each.course is Course.USUAL and sum(each.score or (0, 0)) > 2
    )


def wanted_of(match: Match) -> Wanted:
    """What the page of its round says of it."""
    return Wanted(
        season=match.league.year, round=match.round, key=match.key, kickoff=match.kickoff
    )


async def sent(site: Matches, path: str) -> bytes:
    transport = httpx2.ASGITransport(app=site)
    async with httpx2.AsyncClient(transport=transport, base_url=ORIGIN) as client:
        return (await client.get(path)).content


# — the truth —


@BOTH
@pytest.mark.parametrize("league", list(sites()))
def test_every_match_of_a_season_is_read_as_it_was(league, layout):
    site = replace(sites()[league].at(ORIGIN), layouts=(layout,))
    seen = set()
    for step in (0, 1):
        for match in TRUTH.every(league, step):
            if step and match.course is Course.USUAL:
                continue  # as before
            page = parse_match(site, drawn(match, layout), wanted=wanted_of(match))

            assert match.plain() == page.model_dump(mode="json")
            if match.place == 0:
                assert page == from_json(MatchPage, page.model_dump_json())
            seen.add(match.status)
    assert set(Status) == seen


@BOTH
@pytest.mark.parametrize("league", list(sites()))
def test_every_round_of_a_season_is_read_as_it_was(league, layout):
    site = replace(sites()[league].at(ORIGIN), layouts=(layout,))
    for number in range(1, site.league.rounds + 1):
        html = drawn_round(league, number, layout)
        page = parse_round(site, html.encode(), season=2026, round_=number)
        wanted = [
            {**each.listed(), "url": f"{ORIGIN}{each.path}"}
            for each in TRUTH.round(league, number)
        ]

        assert wanted == page.model_dump(mode="json")["matches"]
        assert (league, 2026, number) == (page.league, page.season, page.round)
        assert page == from_json(RoundPage, page.model_dump_json())


# — a layout that changes —


@pytest.mark.parametrize(
    ("site", "shown", "selector"),
    [(CLASSIC, Layout.MODERN, "#jogo"), (MODERN, Layout.CLASSIC, 'main[data-page="match"]')],
)
def test_a_page_in_another_layout_is_refused_and_read_once_its_parser_is_there(
    site, shown, selector
):
    html = drawn(usual(), shown)

    with pytest.raises(LayoutChanged) as refused:
        parse_match(site, html)

    assert selector == refused.value.selector
    assert usual().plain() == parse_match(site, html, shown).model_dump(mode="json")
    both = site.read_by("modern", "classic")
    assert parse_match(site, html, shown) == parse_match(both, html)


@pytest.mark.parametrize(
    ("layout", "cut", "selector"),
    [
        (Layout.CLASSIC, 'class="situacao"', "#jogo .situacao"),
        (Layout.CLASSIC, 'class="gols"', "ul.gols"),
        (Layout.CLASSIC, 'class="estatisticas"', "table.estatisticas"),
        (Layout.CLASSIC, 'class="titulares"', ".escalacao.mandante ol.titulares"),
        (Layout.CLASSIC, ' value="1"', ".escalacao.mandante ol.titulares li[value]"),
        (Layout.CLASSIC, 'class="jogador"', ".jogador"),
        (Layout.CLASSIC, 'class="rodada"', "#topo .rodada"),
        (Layout.MODERN, "data-timeline", "ol[data-timeline]"),
        (Layout.MODERN, "data-round", 'main[data-page="match"][data-round]'),
        (Layout.MODERN, "data-minute", "ol[data-timeline] li[data-minute]"),
        (Layout.MODERN, "data-stats", "dl[data-stats]"),
        (Layout.MODERN, 'data-lineup="away"', '[data-lineup="away"] [data-role="starting"]'),
        (Layout.MODERN, "data-name", "[data-name]"),
    ],
)
def test_whatever_must_be_there_and_is_not_is_named(layout, cut, selector):
    html = drawn(usual(), layout)
    assert cut in html

    with pytest.raises(LayoutChanged) as refused:
        parse_match(READ_BY[layout], html.replace(cut, ""))

    assert selector == refused.value.selector
    assert layout == refused.value.layout
    assert {"code": "LAYOUT_CHANGED", "selector": selector, "layout": layout} == (
        refused.value.evidence()
    )


# — odd ones —

FLAWS: dict[Odd, tuple[str, str]] = {
    Odd.SCORE_100: ("score.home", "less than or equal to 30"),
    Odd.LATIN_1_REFUSED: ("score.home", "less than or equal to 30"),
    Odd.UNEQUAL: ("score", "the goals make"),
    Odd.STRANGER: ("events[", "in no line-up of the home"),
    Odd.LATE: ("events[", "less than or equal to 90"),
    Odd.TWICE_ON: ("lineups.home", "number 1 is there twice"),
    Odd.EMPTY: ("statistics.possession.home", "valid integer: ''"),
    Odd.WORDS: ("statistics.possession.home", "valid integer: 'muita'"),
    Odd.OTHER_ROUND: ("round", "was asked for"),
    Odd.OTHER_SEASON: ("season", "2026 was asked for, the page is of 2025"),
    Odd.OTHER_LEAGUE: ("league", "brasileirao was asked for, the page is of 'Copa da Várzea'"),
    Odd.OTHER_DAY: ("kickoff", "is 180 days from"),
    Odd.MOJIBAKE: ("stadium", "was read by the wrong charset"),
    Odd.UNKNOWN_STATUS: ("status", "'scheduled', 'live', 'finished' or 'postponed'"),
    Odd.OTHER: ("key", "was asked for"),
    Odd.GARBLED: ("page", "is not UTF-8"),
    Odd.DEEP: ("page", "deeper than 1000"),
    Odd.HUGE: ("page", "2097152 are read at most"),
}
LACKING: dict[Odd, dict[Layout, str]] = {
    Odd.NO_SCORE: {
        Layout.CLASSIC: ".confronto .placar",
        Layout.MODERN: "output[data-score]",
    },
    Odd.NO_LINEUP: {
        Layout.CLASSIC: ".escalacao.mandante ol.titulares",
        Layout.MODERN: '[data-lineup="home"] [data-role="starting"]',
    },
    Odd.ALIEN: {Layout.CLASSIC: "#jogo", Layout.MODERN: 'main[data-page="match"]'},
}
OF_ROUNDS: dict[Odd, tuple[str, str]] = {
    Odd.OFF_SITE: (".url", "leads to no match of https://jogos.example"),
    Odd.TO_LOOPBACK: (".url", "leads to no match of https://jogos.example"),
    Odd.LISTED_TWICE: (".key", "is listed twice"),
    Odd.NOT_LISTED: ("total", "says 10 and lists 9"),
}
READABLE = {Odd.UNORDERED, Odd.HOSTILE, Odd.LATIN_1, Odd.UNLISTED}
ELSEWHERE = {Odd.MOVED, Odd.MOVED_AWAY, Odd.DRIP}
LEGITIMATE = {Odd.COACH, Odd.GOALLESS, Odd.WALKOVER}


def test_every_odd_one_has_its_answer():
    assert (
        set(Odd)
        == READABLE | LEGITIMATE | ELSEWHERE | FLAWS.keys() | LACKING.keys() | OF_ROUNDS.keys()
    )


async def page_of(odd: Odd, layout: Layout, path: str) -> bytes:
    site = build_site(TRUTH)
    site.world.draw(layout)
    site.world.make_odd("brasileirao", usual().key, odd)
    return await sent(site, path)


@BOTH
@pytest.mark.parametrize("odd", list(FLAWS))
async def test_what_breaks_the_schema_is_refused_by_its_path(odd, layout):
    html = await page_of(odd, layout, usual().path)
    path, why = FLAWS[odd]

    with pytest.raises(SchemaInvalid) as refused:
        parse_match(READ_BY[layout], html, wanted=wanted_of(usual()))

    assert refused.value.path.startswith(path)
    assert why in refused.value.why
    assert path in str(refused.value)
    assert "[0]" not in refused.value.evidence()["field"]
    assert refused.value.evidence()["problems"][0] == {
        "path": refused.value.path,
        "why": refused.value.why,
    }


@BOTH
@pytest.mark.parametrize("odd", list(LACKING))
async def test_what_is_not_there_at_all_is_refused_by_its_selector(odd, layout):
    html = await page_of(odd, layout, usual().path)

    with pytest.raises(LayoutChanged) as refused:
        parse_match(READ_BY[layout], html)

    assert LACKING[odd][layout] == refused.value.selector


@BOTH
@pytest.mark.parametrize("odd", sorted(READABLE))
async def test_events_in_any_order_and_names_that_turn_the_text_are_read_as_meant(odd, layout):
    html = await page_of(odd, layout, usual().path)

    assert usual().plain() == parse_match(READ_BY[layout], html).model_dump(mode="json")


@BOTH
@pytest.mark.parametrize("odd", sorted(LEGITIMATE))
async def test_a_card_for_a_coach_no_goals_at_all_and_a_walkover_are_read_as_they_are(
    odd, layout
):
    html = await page_of(odd, layout, usual().path)

    told = parse_match(READ_BY[layout], html, wanted=wanted_of(usual()))

    assert oddly(usual(), odd).plain() == told.model_dump(mode="json")


@BOTH
@pytest.mark.parametrize("odd", list(OF_ROUNDS))
async def test_a_round_that_lies_about_its_matches_is_refused(odd, layout):
    """H-40, H-47: one too few, one twice, one that leads away."""
    html = await page_of(odd, layout, f"/brasileirao/2026/rodada/{usual().round}")
    path, why = OF_ROUNDS[odd]

    with pytest.raises(SchemaInvalid) as refused:
        parse_round(READ_BY[layout], html)

    assert refused.value.path.endswith(path)
    assert why in refused.value.why


@BOTH
def test_a_page_of_another_round_or_season_is_refused(layout):
    html = drawn_round("brasileirao", 3, layout)

    with pytest.raises(SchemaInvalid, match="league: liga-portugal was asked for"):
        parse_round(sites()["liga-portugal"].at(ORIGIN).read_by(layout), html)
    for season, number in ((2025, 3), (2026, 4)):
        with pytest.raises(SchemaInvalid, match="was asked for"):
            parse_round(READ_BY[layout], html, season=season, round_=number)


@BOTH
def test_a_team_that_nobody_knows_is_never_guessed(layout):
    """R2: one match under two names would be two."""
    match, team = usual(), usual().home
    called = team.short if layout is Layout.CLASSIC else team.long
    html = drawn(match, layout).replace(f">{called}<", ">Íbis &amp; Filhos<")

    with pytest.raises(SchemaInvalid) as refused:
        parse_match(READ_BY[layout], html)

    assert Problem("home", "no team of brasileirao is called 'Íbis & Filhos'") in (
        refused.value.problems
    )


@BOTH
@pytest.mark.parametrize("broken", ["\ufffd", "\x07", "&#0;", "&#xd800;"])
def test_characters_that_could_not_be_read_are_not_kept(layout, broken):
    html = drawn(usual(), layout).replace("Estádio", f"Estádio{broken}")

    with pytest.raises(SchemaInvalid, match=r"stadium: .*cannot be read"):
        parse_match(READ_BY[layout], html)


@BOTH
def test_half_a_character_is_none(layout):
    """It could be kept nowhere: not as evidence either."""
    with pytest.raises(SchemaInvalid, match="page: is not UTF-8"):
        parse_match(READ_BY[layout], drawn(usual(), layout) + "\ud800")


@BOTH
def test_every_flaw_of_a_page_is_told_at_once(layout):
    html = drawn(usual(), layout).replace(usual().stadium, "").replace("2026<", "26<")
    html = html.replace('data-season="2026"', 'data-season="26"')

    with pytest.raises(SchemaInvalid) as refused:
        parse_match(READ_BY[layout], html)

    assert ["season", "stadium"] == [each.path for each in refused.value.problems]
    assert "(and 1 more)" in str(refused.value)


@pytest.mark.parametrize(
    "error",
    [
        LayoutChanged(selector="#jogo", layout="classic"),
        SchemaInvalid(problems=[Problem("score", "is 2-1"), Problem("events", "none")]),
    ],
)
def test_an_error_is_the_same_when_it_comes_out_of_a_child(error):
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 — our own

    assert (type(error), str(error), error.evidence()) == (
        type(again),
        str(again),
        again.evidence(),
    )
    assert error.code in {"LAYOUT_CHANGED", "SCHEMA_INVALID"}


def test_a_site_is_the_same_in_a_child():
    again = pickle.loads(pickle.dumps(MODERN))  # noqa: S301 — our own

    assert usual().plain() == parse_match(again, drawn(usual(), Layout.MODERN)).model_dump(
        mode="json"
    )


def test_what_a_page_says_about_itself_is_kept_short():
    many = [Problem("x" * 1_000, "y" * 1_000)] * 1_000

    told = SchemaInvalid(problems=many)

    assert 20 == len(told.problems)
    assert 200 == len(told.path) == len(told.why)
    assert "(and 999 more)" in str(told)


# — whatever a page holds —


@cache
def pages() -> list[tuple[Layout, str, str]]:
    made = []
    for layout in Layout:
        made += [
            (layout, "match", drawn(each, layout)) for each in TRUTH.round("brasileirao", 2)
        ]
        made += [(layout, "round", drawn_round("brasileirao", each, layout)) for each in (1, 2)]
    return made


FRAGMENTS = some.sampled_from(
    [
        *("<div>", "</ul>", "</li><li>", "<!--", "<script>", "<table>", "<tr class=jogo>"),
        *(
            "<li data-type=goal>",
            "-1",
            "9" * 30,
            "",
            "\x00",
            "\ud800",
            '"',
            "'",
            "&#0;",
            "&amp;",
        ),
        *("ª", "'+1", "javascript:alert(1)", "http://[", "//x", " x ", "31/02/2026 99:99"),
        *("01/01/0001 00:00", "9999-12-31T23:59:59-23:59", "2026-13-01"),
    ]
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=some.data())
def test_a_mutated_page_gives_a_page_or_one_of_the_two_errors(data):
    layout, what, html = data.draw(some.sampled_from(pages()))
    for _ in range(data.draw(some.integers(1, 4))):
        start = data.draw(some.integers(0, len(html)))
        length = data.draw(some.sampled_from([0, 1, 3, 10, 200, 2_000]))
        put = data.draw(some.one_of(FRAGMENTS, some.text(max_size=5)))
        html = html[:start] + put + html[start + length :]

    read = parsed(what, html, layout)
    if isinstance(read, PageRefused):
        assert read.evidence()["code"] in {"LAYOUT_CHANGED", "SCHEMA_INVALID"}
    else:
        assert read == from_json(type(read), read.model_dump_json())


def parsed(what: str, html: str, layout: Layout) -> MatchPage | RoundPage | PageRefused:
    parse = parse_match if what == "match" else parse_round
    try:
        return parse(READ_BY[layout], html)
    except (LayoutChanged, SchemaInvalid) as refused:
        return refused


@settings(max_examples=100, deadline=None)
@given(html=some.one_of(some.text(), some.binary()), layout=some.sampled_from(list(layouts())))
def test_anything_else_is_refused(html, layout):
    for parse in (parse_match, parse_round):
        with pytest.raises(PageRefused):
            parse(CLASSIC, html, layout)
