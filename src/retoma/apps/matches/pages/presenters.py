"""What the pages of matches have in common: what moves them, how a status looks, where things stand."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from starlette.responses import RedirectResponse, Response

from retoma.apps.matches.model import DISCOVERY, MATCH, EventKind, TaskStatus
from retoma.apps.matches.store.runs import Scrape
from retoma.apps.matches.words import in_words
from retoma.web.pages.bars import parts_of
from retoma.web.pages.kit import Looker
from retoma.web.pages.live import Concern
from retoma.web.pages.view import View
from retoma.words import Said, say

T = TaskStatus

PAGE: Final = "/matches"
STORED: Final = f"{PAGE}/partidas"
REPLAY: Final = f"{PAGE}/reler"
CONCERN: Final = Concern(kinds=(DISCOVERY, MATCH), pause=0.5)

# A status is shown by its own name; this is the colour of it.
LOOKS: Final[Mapping[TaskStatus, str]] = {
    T.PENDING: "waiting",
    T.RUNNING: "running",
    T.DONE: "done",
    T.FAILED: "dead",
    T.SKIPPED: "skipped",
    T.NOT_YET: "parked",
}
CHARACTERS: Final = 300  # of what was refused that are shown

NOT_YET: Final[Mapping[str, Said]] = {
    "NOT_PUBLISHED": say("its page is not there yet"),
    "scheduled": say("it has not begun"),
    "live": say("it is being played"),
    "postponed": say("it was postponed"),
}
# What a task fails by, in words: codes of its own, and those of the house that a page can end with.
MEANINGS: Final[Mapping[str, Said]] = {
    "LAYOUT_CHANGED": say("the layout of the site has changed"),
    "SCHEMA_INVALID": say("the page holds invalid data"),
    "ROUND_SHORT": say("the page lists fewer matches than the round has"),
    "OTHER_MATCH": say("what was stored is another match"),
    "DELETED": say("a person has deleted what was stored"),
    "NOT_PUBLISHED": say("it is not published yet"),
    "NOT_FINISHED": say("the match is not over"),
    "SITE_REFUSED": say("the site refused the request"),
    "NO_PROXY": say("no proxy can be used: see matches.proxies"),
    "OFF_SITE": say("the address is not one of the site's"),
    "exception": say("an error of our own; an admin has the stack"),
    "transient": say("the site failed"),
    "timeout": say("the page took too long"),
    "throttled": say("the site asked us to wait"),
    "no_answer": say("the site did not answer"),
    "bad_answer": say("what the site sent broke off, or cannot be read"),
    "too_large": say("the page is larger than allowed"),
    "ssrf_blocked": say("the address of the site is not allowed"),
    "poison": say("three runners died while they read this match"),
}
KINDS: Final[Mapping[EventKind, Said]] = {
    EventKind.GOAL: say("Goal"),
    EventKind.OWN_GOAL: say("Own goal"),
    EventKind.PENALTY: say("Penalty"),
    EventKind.YELLOW: say("Yellow card"),
    EventKind.RED: say("Red card"),
    EventKind.SUBSTITUTION: say("Substitution"),
}
STATISTICS: Final[Mapping[str, Said]] = {
    "possession": say("Possession (%)"),
    "shots": say("Shots"),
    "shots_on_target": say("Shots on target"),
    "corners": say("Corners"),
    "fouls": say("Fouls"),
    "offsides": say("Offsides"),
    "passes": say("Passes"),
}


# — where things are —


def round_at(run: int) -> str:
    return f"{PAGE}/rodada/{run}"


def task_at(task: int) -> str:
    return f"{PAGE}/tarefa/{task}"


def match_at(partida: int) -> str:
    return f"{STORED}/{partida}"


def led(who: Looker, address: str) -> Response:
    """To where it is seen."""
    if who.htmx:
        return Response(status_code=204, headers={"HX-Redirect": address})
    return RedirectResponse(address, status_code=303)


# — how things stand —


def short(view: View, at: datetime | None) -> str:
    """Day and time without the seconds."""
    return "" if at is None else view.when(at).rpartition(":")[0]


def bar_of(scrape: Scrape) -> list[tuple[str, float, float]]:
    """Its parts: the look of each, where it begins, how wide it is."""
    if not scrape.expected:
        return []
    counted = (
        (T.DONE, scrape.stored),
        (T.FAILED, scrape.failed),
        (T.SKIPPED, scrape.left_out),
        (T.RUNNING, scrape.running),
        (T.NOT_YET, scrape.not_yet),
    )
    return parts_of(((LOOKS[status], n) for status, n in counted), scrape.expected)


def share_of(scrape: Scrape) -> float:
    return scrape.stored / scrape.expected if scrape.expected else 0.0


def why_not_yet(view: View, reason: str | None) -> str:
    return "" if reason is None else view.tell(NOT_YET.get(reason, reason))


def meaning_of(view: View, code: Any) -> str:
    """What a code means; one that no page can end with speaks for itself."""
    return view.tell(MEANINGS[code]) if code in MEANINGS else ""


def evidence_told(view: View, error: Any) -> dict[str, Any]:
    """What a try failed by, each part as it is shown; it came from outside, and is text."""
    told = error if isinstance(error, dict) else {}
    problems = told.get("problems")
    if not isinstance(problems, list):
        problems = []
    headers = told.get("headers")
    return {
        "code": _text(told.get("code")),
        "meaning": meaning_of(view, _text(told.get("code"))),
        "message": _message(view, told),
        "selector": _text(told.get("selector")),
        "layout": _text(told.get("layout")),
        "problems": [
            (_text(each.get("path")), view.tell(in_words(_text(each.get("why")))))
            for each in problems
            if isinstance(each, dict)
        ],
        "status": told.get("status"),
        "headers": sorted(headers.items()) if isinstance(headers, dict) else [],
        "attempt": told.get("attempt"),
        "generation": told.get("generation"),
    }


def _message(view: View, told: dict[str, Any]) -> str:
    """What a person has said, or what a code without a meaning of ours says for itself; programs say it by
    their code, and in English."""
    code = _text(told.get("code"))
    if code == "DELETED" or code not in MEANINGS:
        return _text(told.get("message")) or view.reason(_text(told.get("reason")))
    return ""


def field_of(error: Any) -> str:
    """The selector or the path that failed, in short."""
    told = error if isinstance(error, dict) else {}
    return _text(told.get("selector") or told.get("path"))


def _text(value: Any) -> str:
    return "" if value is None else str(value)[:CHARACTERS]
