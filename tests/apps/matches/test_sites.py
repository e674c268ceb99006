"""Leagues, sites and layouts of other packages: found by their entry points, refused where they cannot be."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from retoma.apps.matches import layouts
from retoma.apps.matches.clients import parsers
from retoma.apps.matches.sites import read_league, site_of, sites
from retoma.engine.rules.errors import BadInput

PACKAGE = """
from retoma.apps.matches.clients.parsers import Layout, Parser
from retoma.apps.matches.sites import Site, read_league, site_of

LEAGUE = read_league('''
key = "varzea"
name = "Liga da Várzea"
aliases = ["Várzea"]
zone = "America/Sao_Paulo"
rounds = 3
[teams]
bangu = ["Bangu", "Bangu AC"]
juventus = ["Juventus"]
''')
SITE = Site(league=LEAGUE, layouts=("tabela",), origin="https://varzea.example")
LAYOUT = Layout(Parser("table", lambda page, site: {}), Parser("main", lambda page, site: {}))
"""


def package(folder: Path, name: str, *points: str) -> None:
    """As pip would leave it beside ours."""
    (folder / f"{name}.py").write_text(PACKAGE)
    about = folder / f"{name}-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Name: {name}\nVersion: 1\n")
    (about / "entry_points.txt").write_text("\n".join(points))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where packages lie; nothing that was found there is known to later tests."""
    sites()  # ours are there before
    monkeypatch.syspath_prepend(str(tmp_path))
    for each in (sites, parsers.layouts):
        each.cache_clear()
    yield tmp_path
    for each in (sites, parsers.layouts):
        each.cache_clear()


def test_a_site_and_a_layout_of_another_package_stand_beside_ours(folder):
    package(
        folder,
        "varzea",
        "[retoma.matches.sites]",
        "varzea = varzea:SITE",
        "[retoma.matches.layouts]",
        "tabela = varzea:LAYOUT",
    )

    site = site_of("varzea")
    assert ("https://varzea.example", ("tabela",)) == (site.origin, site.layouts)
    assert site == site.at("https://elsewhere.example")
    assert {"brasileirao", "liga-portugal", "varzea"} == set(sites())
    assert {"classic", "modern", "tabela"} == set(parsers.layouts())
    assert "tabela,classic" in layouts.layout_choices()
    assert ("modern", "tabela") == site.read_by("modern").layouts
    assert () == parsers.checked_layouts("site")
    assert "bangu" == site.league.team_key("BANGU AC")
    assert site.league.is_called("varzea")
    assert not site.league.is_called("Brasileirão Série A")
    assert site.league.matches is None  # then its pages alone say how many


def test_two_packages_do_not_bring_one_league(folder):
    for name in ("varzea", "outra"):
        package(folder, name, "[retoma.matches.sites]", f"{name} = {name}:SITE")

    with pytest.raises(BadInput, match=r"is brought by outra:SITE and by varzea:SITE"):
        sites()


@pytest.mark.parametrize(
    "points",
    [
        ("[retoma.matches.sites]", "x = varzea:LAYOUT.round"),
        ("[retoma.matches.sites]", "x = varzea:LEAGUE.teams"),
    ],
)
def test_what_is_no_site_is_refused(folder, points):
    package(folder, "varzea", *points)

    with pytest.raises(BadInput, match="is no Site"):
        sites()


@pytest.mark.parametrize("point", ["x = varzea:SITE", "classic = varzea:LAYOUT"])
def test_what_is_no_layout_or_has_a_name_of_ours_is_refused(folder, point):
    package(folder, "varzea", "[retoma.matches.layouts]", point)

    with pytest.raises(BadInput, match="is no Layout, or another is called"):
        parsers.layouts()


def test_ours_are_files_and_each_league_says_how_many_matches_a_round_has():
    assert {"brasileirao": 10, "liga-portugal": 9} == {
        key: each.league.matches for key, each in sites().items()
    }
    for site in sites().values():
        assert site.league.matches == len(site.league.teams) // 2
    with pytest.raises(KeyError):
        read_league('key = "x"')
