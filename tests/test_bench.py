"""The bench: its questions can be asked of both databases, its bars judge, its picture is one."""

import json
import re
from fnmatch import fnmatchcase
from xml.etree import ElementTree as ET

import pytest

from bench import api, history, performance
from bench.compare import AtLeast, AtMost, NoLess
from bench.comparisons import FULL, QUICK, comparisons
from bench.machines import COST, PROCESSES
from bench.page import BEGIN, END, write_page
from bench.plot import write_plot
from bench.quotes import played
from bench.table import Result, write_json
from retoma import Retoma, State, settings
from retoma.web import build_site
from tests.house.files import ROOT

ROWS = (
    Result(
        name="drain",
        unit="jobs/s",
        ours=20_000,
        floor=25_000,
        peers={"Peer & Co": 10_000, "Absent": None},
        bar="≥ 1.2 x",
        met=True,
    ),
    Result(name="memory", unit="MB", ours=None, floor=None, peers={}, bar=None, met=None),
)


async def test_a_history_written_by_sql_is_one_the_engine_could_have_left(database_url):
    await history.write_all(database_url, 2_000)

    async with Retoma(database_url) as app:
        counts = await app.insights.counts()
        assert 2_000 == sum(counts.values())
        assert {State.DONE, State.DEAD, State.SKIPPED, State.CANCELED} == set(counts)
        assert history.PAGE == len(await app.jobs(kind=history.OLD, limit=history.PAGE))
        [job] = await app.jobs(state=State.DEAD, limit=1)
        events = [event.type for event in await app.events(job.id)]
        assert ["submitted", "claimed", "buried"] == events
        batch = await app.batches.get(1)
        assert history.PER_BATCH == sum((await batch.counts()).values())


async def test_every_question_about_growth_gets_an_answer(database_url):
    await history.write_all(database_url, 2_000)

    with history.opened([database_url]) as [database]:
        await history.prepare(database, history.CLAIMED)
        asked = {
            name: await history.timed(database, question(0), writes)
            for name, (question, writes) in (await history.questions([database])).items()
        }

    assert list(history.QUESTIONS) == list(asked)
    assert all(seconds > 0 for seconds in asked.values())


# Not about jobs, or a file of all that match, or never-ending: there is nothing in them to grow.
APART = re.compile(
    r"/api/(me|keys|people|sessions|settings|stream|rates|prices|exchange|pools/.*)|.*[.]csv|/(?!api|metrics).*|.*\{sha256\}"
)


async def test_every_list_and_counter_of_the_api_is_asked_of_a_long_history(database_url):
    await history.write_all(database_url, 2_000)

    ratios = await api.ask([database_url, database_url], samples=1)

    assert api.QUESTIONS.keys() == ratios.keys()
    site = build_site(Retoma(database_url), settings.read(database_url=database_url))
    paths = {path for path, does in site.openapi()["paths"].items() if "get" in does}
    others = {"/", "/jobs", "/jobs/{job}", "/batches/{batch}"}  # pages
    asked = {path.partition("?")[0] for path in api.QUESTIONS.values()} - others
    assert {path for path in paths if not APART.fullmatch(path)} == asked | {"/api/dead/{job}"}


@pytest.mark.parametrize(
    ("bar", "met"),
    [
        (AtLeast(2, "peer"), True),
        (AtLeast(3, "peer"), False),
        (AtLeast(1, "absent"), None),
        (AtMost(10), True),
        (AtMost(9), False),
        (NoLess(10), True),
        (NoLess(11), False),
    ],
)
def test_a_bar_judges_what_was_measured_and_nothing_else(bar, met):
    assert met is bar.met(10, {"peer": 5, "absent": None})


def test_a_row_has_one_name_and_the_peers_that_take_long_are_in_the_full_run_only():
    for scale in (QUICK, FULL):
        names = [row.name for each in comparisons(scale) for row in each.rows]
        assert len(set(names)) == len(names)

    quick, full = (
        {peer for each in comparisons(scale) for peer in each.peers} for scale in (QUICK, FULL)
    )
    assert {"Procrastinate", "Absurd"} == full - quick


def test_what_was_measured_is_a_list_for_programs_and_a_picture_for_people(tmp_path):
    write_json(ROWS, tmp_path / "rows.json")
    write_plot(ROWS, tmp_path / "rows.svg")

    rows = json.loads((tmp_path / "rows.json").read_text())
    assert {"name", "unit", "ours", "floor", "peers", "bar", "met"} == set(rows[0])
    picture = ET.fromstring((tmp_path / "rows.svg").read_text())  # noqa: S314  # our own
    said = {each.text for each in picture.iter() if each.text}
    assert {"drain", "memory", "ours 20,000", "Peer & Co 10,000"} <= said


def test_what_many_machines_cost_is_put_into_its_page_and_nothing_else_is_touched(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    names = [f"machines_{n}" for n in (*PROCESSES, "step")]
    names += [f"{name}_{cost}" for name in names for cost, _ in COST]
    figures = [
        Result(name=name, unit="", ours=0.5, floor=None, peers={}, bar=None, met=None)
        for name in names
    ]

    write_page(figures, page, "PostgreSQL 15")

    text = page.read_text()
    assert ("before", "after") == (text.split()[0], text.split()[-1])
    assert "old" not in text
    assert "| 4 | 0 | 0.500 | 0.500 |" in text  # processes, jobs/s, cores of both
    assert "| 2 cores | 2,800 |" in text  # 2 cores to 70 %, half a second for 1,000


@pytest.mark.parametrize("text", ["no marks", BEGIN])
def test_a_page_without_a_place_for_figures_is_refused(tmp_path, text):
    page = tmp_path / "page.md"
    page.write_text(text)

    with pytest.raises(SystemExit, match="write between"):
        write_page([], page, "PostgreSQL 15")
    assert text == page.read_text()


def test_the_page_on_many_machines_has_a_place_for_figures():
    text = (ROOT / "docs" / "howto" / "many-machines.md").read_text()

    assert 1 == text.count(BEGIN) == text.count(END)


def test_what_is_ideal_is_played_over_the_slots_in_order():
    assert 3.0 == played([3.0, 1.0, 1.0, 1.0], 2)
    assert 4.0 == played([1.0, 1.0, 1.0, 3.0], 2)
    assert 6.0 == played([3.0, 1.0, 1.0, 1.0], 1)


PERFORMANCE = ROOT / "docs" / "performance.md"


def row(name, ours, *, met=None):
    return Result(
        name=name,
        unit="jobs/s",
        ours=ours,
        floor=None,
        peers={"PgQueuer": 10_000.0},
        bar="a bar",
        met=met,
    )


def test_a_run_brings_its_rows_to_the_page_and_leaves_those_of_other_runs(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{performance.BEGIN}\nold\n{performance.END}\nafter\n")

    performance.write_performance(
        [row("drain_postgres_1", 9_000.0, met=False), row("drain_postgres_2", 30_000.0)],
        page,
        "./run bench --only drain_postgres",
        "PostgreSQL 15",
    )
    performance.write_performance(
        [row("drain_postgres_1", 15_000.0, met=True)], page, "./run bench", "PostgreSQL 15"
    )

    text = page.read_text()
    assert ("before", "after") == (text.split()[0], text.split()[-1])
    assert "old" not in text.split()
    assert "9,000" not in text
    one = next(line for line in text.splitlines() if "`drain_postgres_1`" in line)
    assert "15,000 jobs/s | PgQueuer 10,000 | 1.50 \N{MULTIPLICATION SIGN} PgQueuer" in one
    assert one.endswith("| met | 1 |")
    assert "30,000 jobs/s" in text  # of the first run
    assert "| 2 | `./run bench --only drain_postgres` |" in text
    assert "not measured" in text  # every other bar
    ET.fromstring((tmp_path / "images" / "performance-throughput.svg").read_text())  # noqa: S314  # our own


def test_of_many_rows_under_one_bar_the_worst_is_shown_and_one_that_fails_fails_it(tmp_path):
    names = [f"growth_{question}_sqlite" for question in history.QUESTIONS]
    results = [row(name, 1.0, met=True) for name in names]
    results[3] = row(names[3], 1.7, met=False)
    known = {
        each.name: (each, performance.Run(command="", date="", where="")) for each in results
    }

    [bar] = [each for each in performance.BARS if "growth_*_sqlite" in each.rows]
    lines = {line.row: line.met for line in performance.bar_lines(bar, known)}

    assert {"growth_*_postgres": None, names[3]: False} == lines


def test_every_bar_of_the_page_is_measured_by_a_row():
    names = list(performance.rows_by_name())

    for bar in performance.BARS:
        for wanted in bar.rows:
            found = [name for name in names if fnmatchcase(name, wanted)]
            assert found, wanted
            assert all(performance.rows_by_name()[name].bars for name in found), wanted


def test_the_page_on_performance_is_what_was_measured():
    known = performance.read_known(performance.facts_of(PERFORMANCE))

    again = "python -m bench.performance docs/performance.md"
    assert performance.page_with(PERFORMANCE.read_text(), known) == PERFORMANCE.read_text(), (
        again
    )
    for name, picture in performance.pictures(known).items():
        assert picture == (PERFORMANCE.parent / name).read_text(), again
