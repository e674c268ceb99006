"""The rules of the orchestrator as data: codes, session states, what is said on the wire."""

import json
import re
from datetime import date

import pytest

from retoma.apps.ads.model import (
    ERRORS,
    SESSION_STATUSES,
    Action,
    Budget,
    MediaType,
    Mission,
    Phase,
    Proxy,
    SessionEdge,
    WorkerStatus,
    checked_remote_id,
    data_url,
    scrape_payload,
    session_edge,
    session_payload,
    tries_again,
    writer_payload,
)
from retoma.engine.rules.errors import ErrorClass, Permanent
from retoma.secret import Secret

pytestmark = pytest.mark.usefixtures("forgetful")  # the document's own password: "pass"

# — codes (§7.1) —

SESSION, SCRAPE, WRITER, STORAGE, SYSTEM = Phase
RETRY, FAIL, WAIT, OPERATOR = Action
T, C, L, B = ErrorClass.TRANSIENT, ErrorClass.CONFIG, ErrorClass.LOST, ErrorClass.BUG
TABLE = {
    "ERROR100": (T, SESSION, RETRY, "max_retries", "ERROR104"),
    "ERROR101": (T, SESSION, RETRY, "max_retries", "ERROR104"),
    "ERROR102": (T, SESSION, RETRY, "max_retries", "ERROR104"),
    "ERROR103": (T, SESSION, RETRY, "max_retries", "ERROR104"),
    "ERROR104": (L, SESSION, FAIL, "none", None),
    "ERROR200": (T, SCRAPE, RETRY, "max_retries", "ERROR203"),
    "ERROR201": (T, SCRAPE, RETRY, "max_retries", "ERROR203"),
    "ERROR202": (T, SCRAPE, RETRY, "max_retries", "ERROR203"),
    "ERROR203": (L, SCRAPE, FAIL, "none", None),
    "ERROR300": (T, WRITER, RETRY, "once", "ERROR304"),
    "ERROR301": (T, WRITER, WAIT, "endless", None),
    "ERROR302": (T, WRITER, WAIT, "endless", None),
    "ERROR303": (C, WRITER, OPERATOR, "none", None),
    "ERROR304": (L, WRITER, FAIL, "none", None),
    "ERROR400": (C, STORAGE, OPERATOR, "none", None),
    "ERROR401": (C, STORAGE, OPERATOR, "none", None),
    "ERROR500": (B, SYSTEM, FAIL, "none", None),
    "ERROR501": (T, SYSTEM, WAIT, "endless", None),
    "ERROR502": (T, SYSTEM, WAIT, "endless", None),
}


def test_every_code_of_the_document_has_a_class_a_phase_an_action_a_budget_and_an_end():
    told = {
        code: (each.error_class, each.phase, each.action, str(each.budget), each.exhausted)
        for code, each in ERRORS.items()
    }
    assert told == TABLE


def test_m4_a_spent_budget_ends_with_104_203_or_304_and_with_nothing_else():
    ends = {each.exhausted for each in ERRORS.values() if each.action is Action.RETRY}
    assert ends == {"ERROR104", "ERROR203", "ERROR304"}
    assert {"ERROR501", "ERROR502"} <= {
        each.code for each in ERRORS.values() if each.budget is Budget.ENDLESS
    }


@pytest.mark.parametrize(("most", "session", "writer"), [(0, 0, 0), (2, 2, 1), (7, 7, 1)])
def test_m4_each_phase_has_a_budget_of_its_own(most, session, writer):
    assert tries_again(ERRORS["ERROR101"], most) == session
    assert tries_again(ERRORS["ERROR400"], most) == 0
    assert tries_again(ERRORS["ERROR300"], most) == writer
    assert tries_again(ERRORS["ERROR303"], most) == 0


def test_only_what_a_proxy_can_be_the_cause_of_is_blamed_on_one():
    assert {code for code, each in ERRORS.items() if each.blames_proxy} == {
        *("ERROR100", "ERROR101", "ERROR102", "ERROR103"),
    }


# — nine remote states, in each of our five (§2.2.5) —

EDGES = {
    #                 idle         initializing  ready        scraping     error
    "initializing": ("reconcile", "wait", "lost 103", "lost 103", "reconcile"),
    "connecting": ("reconcile", "wait", "lost 103", "lost 103", "reconcile"),
    "authenticating": ("reconcile", "wait", "lost 103", "lost 103", "reconcile"),
    "warming_up": ("reconcile", "wait", "lost 103", "lost 103", "reconcile"),
    "ready": ("reconcile", "ready", "ready", "ready", "reconcile"),
    "scraping": ("reconcile", "reconcile", "reconcile", "ready", "reconcile"),
    "stuck": ("reconcile", "lost 102", "lost 102", "lost 102", "reconcile"),
    "disconnected": ("reconcile", "lost 103", "lost 103", "lost 103", "reconcile"),
    "terminated": ("wait", "lost 100", "lost 100", "lost 100", "wait"),
}


def test_m2_every_status_of_a_session_has_one_edge_in_each_of_our_states():
    told = {
        remote: tuple(_edge(local, remote) for local in WorkerStatus)
        for remote in SESSION_STATUSES
    }
    assert told == EDGES
    assert sum(map(len, told.values())) == 45


def _edge(local: WorkerStatus, remote: str) -> str:
    edge, code = session_edge(local, remote)
    return str(edge) if code is None else f"{edge} {code.removeprefix('ERROR')}"


@pytest.mark.parametrize("local", [*WorkerStatus][1:4])
@pytest.mark.parametrize("said", ["", "READY", "resting"])
def test_row_32_a_status_that_is_in_no_table_ends_nothing(local, said):
    assert session_edge(local, said) == (SessionEdge.WAIT, None)


# — what is said: the document's own examples, from its text —

SESSION_EXAMPLE = """
{
  "force_refresh": true,
  "proxy": {
    "server": "proxy.example.com:8080",
    "username": "user",
    "password": "pass"
  }
}
"""
SCRAPE_EXAMPLE = """
{
  "filters": {
    "date_range": { "start": "2025-01-15", "end": "2025-01-15" },
    "format": "video",
    "sort_by": "qtd_ads",
    "languages": ["pt"]
  },
  "options": {
    "max_ads": "all",
    "batch_size": 150
  }
}
"""
SCRAPE_TEMPLATE = """
{
  "filters": {
    "date_range": {
      "start": mission.date_start,  // formato: YYYY-MM-DD
      "end": mission.date_end       // formato: YYYY-MM-DD
    },
    "format": mission.media_type,   // 'all'|'video'|'image'
    "sort_by": "qtd_ads",           // fixo
    "languages": mission.languages  // array: ["pt", "en"]
  },
  "options": {
    "max_ads": "all",               // fixo
    "batch_size": 150               // fixo
  }
}
"""
WRITER_TEMPLATE = """
{
  "config": {
    "table": "ads",
    "schema": "public",
    "operation": "upsert",
    "conflict_key": "id"
  },
  "source": {
    "type": "url",
    "url": mission.worker_data_url,
    "json_path": "ads"
  }
}
"""
MISSION = Mission("MIS-1", date(2025, 1, 15), date(2025, 1, 15), MediaType.VIDEO, ("pt",))


def filled(template: str, **values: object) -> object:
    """The document's template, with a mission's values where it names them."""
    text = re.sub(r"//.*", "", template)
    return json.loads(
        re.sub(r"mission\.(\w+)", lambda found: json.dumps(values[found[1]]), text)
    )


def test_a_session_is_asked_for_as_the_document_does():
    proxy = Proxy("PRX-1", "one", "proxy.example.com", 8080, "user", Secret("pass"))
    said = session_payload(proxy)
    said["proxy"]["password"] = said["proxy"]["password"].reveal()

    assert said == json.loads(SESSION_EXAMPLE)
    assert list(said["proxy"]) == list(json.loads(SESSION_EXAMPLE)["proxy"])


def test_a_proxy_without_a_port_is_its_host_alone():
    bare = Proxy("PRX-1", "one", "proxy.example.com", None, None, None)

    assert session_payload(bare) == {
        "force_refresh": True,
        "proxy": {"server": "proxy.example.com"},
    }


@pytest.mark.parametrize("media", MediaType)
@pytest.mark.parametrize("languages", [("pt",), ("pt", "en")])
def test_a_scrape_is_asked_for_as_the_document_does(media, languages):
    mission = Mission("MIS-1", date(2025, 1, 15), date(2025, 2, 3), media, languages)

    assert scrape_payload(mission) == filled(
        SCRAPE_TEMPLATE,
        date_start="2025-01-15",
        date_end="2025-02-03",
        media_type=str(media),
        languages=list(languages),
    )
    assert scrape_payload(MISSION) == json.loads(SCRAPE_EXAMPLE)


def test_a_writer_is_asked_as_the_document_does_and_given_the_job_id_it_offers():
    url = "https://storage.meusite.com/scrape_3c434995/scrape_3c434995_results.json"
    said = writer_payload("key-1", url)

    assert said.pop("job_id") == "key-1"
    assert said == filled(WRITER_TEMPLATE, worker_data_url=url)


def test_where_a_worker_leaves_its_ads_is_the_documents_formula():
    assert data_url("storage.meusite.com", "scrape_3c434995") == (
        "https://storage.meusite.com/scrape_3c434995/scrape_3c434995_results.json"
    )


@pytest.mark.parametrize(
    "hostile",
    [
        "../../x",
        "a/b",
        "%2e%2e",
        "x" * 10_000,
        "ação",
        "",
        7,
        None,
        "a\n",
        "@evil",
        ["x"],
        True,
    ],
)
def test_row_19_an_id_that_could_lead_elsewhere_is_refused(hostile):
    with pytest.raises(Permanent) as refused:
        checked_remote_id(hostile)

    assert refused.value.code == "ERROR200"
    assert "invalid_remote_id" in str(refused.value)
    assert len(str(refused.value)) < 150
