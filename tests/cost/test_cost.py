"""No input holds the process or eats its memory: what one costs grows with its bytes, within a bound that is said."""

import json
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from fastapi.routing import iter_route_contexts

from retoma import Retoma
from retoma.outbound import Outbound
from retoma.programs.worker import ADAPTERS, Config, build_worker
from retoma.programs.writer import Desk
from retoma.programs.writer.api import build_writer
from retoma.vault import Vault
from retoma.web import Face
from retoma.web.route import Route
from tests.cost import page, parsers, web
from tests.cost.doors import MODULES, families_of
from tests.cost.judge import flaws_of
from tests.house.files import ROOT
from tests.web.aids import ROOT_KEY, client, stories

FREE_TIMES = 10  # of which the cheapest counts


@pytest.mark.timeout(600)
def test_what_an_input_costs_grows_with_its_bytes_and_stays_under_its_bound(tmp_path):
    assert [] == flaws(MODULES, tmp_path, soak=False)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("module", MODULES)
def test_inputs_as_large_as_their_door_takes_cost_no_more_and_never_hold_the_loop(
    tmp_path, module
):
    assert [] == flaws([module], tmp_path, soak=True)


def test_the_sizes_of_the_gate_show_a_door_that_costs_the_square(tmp_path):
    [found] = flaws(["tests.cost.planted"], tmp_path, soak=False)
    assert found.startswith("a planted door: the square of its bytes: from ")


def flaws(modules: Sequence[str], folder: Path, *, soak: bool) -> list[str]:
    """What costs too much, measured in a process of its own."""
    told = folder / "costs.jsonl"
    wanted = [sys.executable, "-m", "tests.cost.measure", str(told), *modules]
    subprocess.run(
        [*wanted, *(["--soak"] if soak else [])],
        check=True,
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        timeout=3600 if soak else 600,
    )
    measured: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in told.read_text(encoding="utf-8").splitlines():
        one = json.loads(line)
        measured[one["family"]].append(one)
    families = [each for module in modules for each in families_of(module)]
    wanted_titles = {each.title for each in families if each.in_gate or soak}
    assert wanted_titles == measured.keys()
    return [
        flaw
        for family in families
        if family.title in measured
        for flaw in flaws_of(family, measured[family.title], soak=soak)
    ]


def test_what_costs_too_much_is_found():
    """The judge itself: what grows with the square, eats memory or takes long is named."""
    [family] = [each for each in web.FAMILIES if each.title == "header host: dots"]
    rows = [
        {"size": 1 << n, "cpu": 0.01 * 4**k, "memory": 0} for k, n in enumerate((20, 21, 22))
    ]
    assert ["from 0.010 to 0.160 s for four times as much"] == [
        each.partition(": dots: ")[2] for each in flaws_of(family, rows)
    ]
    assert 3 == len(
        flaws_of(
            family,
            [{"size": 1024, "cpu": 9.0, "memory": 0}] * 2
            + [{"size": 1024, "cpu": 0.0, "memory": 1 << 30}],
        )
    )
    held = [{"size": 1024, "cpu": 0.0, "memory": 0, "held": 0.2}] * 3
    assert 3 == len(flaws_of(family, held, soak=True))


# — every door has a family —


def test_every_module_that_calls_a_parser_has_a_family_or_reads_what_is_ours():
    doors = {each.door for module in MODULES for each in families_of(module)}
    ours = {path for paths in parsers.OURS.values() for path in paths}
    parsing = {path for path, _ in parsers.who_parses()}

    assert set() == parsing - parsers.COVERED.keys() - ours
    assert (
        set() == (parsers.COVERED.keys() | ours) - parsing
    )  # nor is any named that parses nothing
    assert set() == parsers.COVERED.keys() & ours
    assert set(parsers.COVERED.values()) <= doors


@pytest.mark.parametrize(
    "reads",
    [
        "from xml.etree import ElementTree\nElementTree.fromstring(raw)",
        "import bz2\nbz2.decompress(raw)",
        "import ast\nast.literal_eval(raw)",
        "from html import parser\nparser.HTMLParser()",
        "import json as j\nj.loads(raw)",
        "from csv import Sniffer\nSniffer()",
    ],
)
def test_a_parser_that_nobody_has_used_before_is_seen(tmp_path, reads):
    (tmp_path / "door.py").write_text(f"raw = b''\n{reads}\n", encoding="utf-8")

    assert {"door.py"} == {path for path, _ in parsers.who_parses(tmp_path)}


async def test_every_place_that_takes_a_body_has_a_family(tmp_path):
    async with stories(f"sqlite:///{tmp_path / 'work.db'}") as app:
        site = web.site_of(app, app.url)
        places = web.places_of(site)
        doors = set(web.doors_of(site, set(places.uploads), set(places.large_json)))
        heard = headers_of(site)

    assert web.FILES.keys() == {each.path for each in doors if each.takes == "a file"}
    assert web.FILE_SIZES == places.uploads
    assert web.MUCH_JSON == {path: size for path, (size, _) in places.large_json.items()}
    assert {"JSON", "a form", "nothing", "a file", "much JSON"} == {
        each.takes for each in doors
    }
    assert heard <= web.HEADERS.keys()


async def test_what_anybody_may_ask_for_costs_little(tmp_path):
    """A request of sixty bytes, of which anybody may send two hundred a second."""
    async with web.opened() as site:
        found = await costs_of_free_answers(site)
        for service in (writer_of(tmp_path), worker_of(tmp_path)):
            found += await costs_of_free_answers(web.Site(service, {}))

    paths = {path for path, _, _ in found}
    assert paths >= {"/openapi.json", "/docs", "/sign-in", "/livez", "/readyz", "/health"}
    assert not [path for path in paths if "{" in path], "say in FREE_PATHS what to ask for"
    assert [] == [each for each in found if each[1] > web.GIVEN_AWAY]
    assert [] == [each for each in found if each[2] > web.FREE_PIECE]


async def costs_of_free_answers(site: web.Site) -> list[tuple[str, float, int]]:
    """Of each address: seconds of CPU, and the largest piece that it is sent in."""
    found = []
    for path in web.given_away(site.app):
        piece = await site.largest_piece(path)  # what is made once is made
        times = []
        for _ in range(FREE_TIMES):
            began = time.thread_time()
            await site.ask("GET", path, {})
            times.append(time.thread_time() - began)
        found.append((path, min(times), piece))
    return found


async def test_the_services_take_nothing_that_has_no_family(tmp_path):
    for site in (writer_of(tmp_path), worker_of(tmp_path)):
        places = web.places_of(site)
        assert ({}, {}) == (places.uploads, places.large_json)
        assert {"JSON", "nothing"} >= {each.takes for each in web.doors_of(site, set(), set())}
        assert headers_of(site) <= web.HEADERS.keys()


async def test_a_service_says_what_its_addresses_take(tmp_path):
    for site, path, expected in (
        (writer_of(tmp_path), "/process", "POST"),
        (worker_of(tmp_path), "/session", "DELETE, POST"),
    ):
        async with client(site, ROOT_KEY) as asked:
            answer = await asked.put(path, headers={"Host": "127.0.0.1:8321"})
        assert (405, expected) == (answer.status_code, answer.headers["allow"])


def headers_of(site: Any) -> set[str]:
    """What routes read of the head, beside what all do."""
    found: set[str] = set()
    for each in iter_route_contexts(site.routes):
        route = each.original_route
        assert isinstance(route, Route)
        waiting = [route.dependant]
        while waiting:
            dependant = waiting.pop()
            found |= {param.alias.lower() for param in dependant.header_params}
            waiting += dependant.dependencies
    return found


def writer_of(folder: Path) -> Any:
    retoma = Retoma(f"sqlite:///{folder / 'writer.db'}")
    desk = Desk(retoma, lambda own: Vault(own, retoma.ids), Outbound())
    return build_writer(desk, Face(), api_key=ROOT_KEY)


def worker_of(folder: Path) -> Any:
    retoma = Retoma(f"sqlite:///{folder / 'worker.db'}")
    config = Config(
        site="http://127.0.0.1:1", adapter=next(iter(ADAPTERS.values())), folder=folder
    )
    return build_worker(config, retoma, Face(), api_key=ROOT_KEY)


def test_the_page_of_limits_is_what_the_code_says():
    assert page.written() == page.PAGE.read_text(encoding="utf-8"), (
        f"write it anew: {page.AGAIN}"
    )
