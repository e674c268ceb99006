"""`retoma matches …`: rounds are scraped, looked at and tried again; pages that were refused, read again."""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from retoma import settings
from retoma.apps.matches import APP, service
from retoma.apps.matches.model import SchemaInvalid
from retoma.apps.matches.schemas import MatchPage, from_json
from retoma.apps.matches.service.replays import Replay, Reread
from retoma.apps.matches.service.scrapes import check_rounds
from retoma.apps.matches.store.rows import Round
from retoma.apps.matches.store.runs import Scrape
from retoma.apps.matches.words import in_words
from retoma.console.applications import ask_in, print_page, shown_cell
from retoma.console.kit import ACTOR, clean, console, print_json, table
from retoma.engine.rules.errors import BadInput
from retoma.library import Retoma
from retoma.toolkit.tools import Tools
from retoma.words import say, speak, tell

T = TypeVar("T")

LISTED = 20  # scrapes
SCRAPE = (
    *("id", "league", "season", "round", "status", "complete", "expected", "listed", "dropped"),
    *("stored", "pending", "running", "not_yet", "failed", "left_out", "error_code", "error"),
    *("snapshot", "discovery", "batch", "created_by", "created_at", "completed_at"),
)
LINE = ("id", "league", "season", "round", "status", "stored", "expected", "failed", "not_yet")
OPEN = ("id", "match_key", "status", "attempts", "error_code", "not_yet", "look_again_at")
SHOWN = ("what", "id", "round", "key", "change")


# — rounds —


def scrape(
    database: str | None, as_json: bool, league: str, season: int, first: int, last: int | None
) -> None:
    rounds = check_rounds(league, season, first, last)
    start = partial(service.scrapes.start_rounds, rounds=rounds, actor=ACTOR)
    begun = _ask(database, lambda retoma: retoma.write(start))
    if as_json:
        print_json([{"id": run, "new": new} for run, new in begun])
        return
    for of, (run, new) in zip(rounds, begun, strict=True):
        how = {"run": run, "round": of.said}
        print(
            speak("scrape {run}: {round}", **how)
            if new
            else speak("scrape {run}: {round}, which is open already", **how)
        )


def status(database: str | None, as_json: bool, run: int | None) -> None:
    if run is None:
        found = _ask(database, partial(service.scrapes.list_scrapes, limit=LISTED))
        _print_scrapes(found, as_json)
        return
    board = _ask(database, partial(service.boards.get_round, run=run))
    scrape, tasks = _document(board.scrape), [task for task, _ in board.cells]
    if as_json:
        print_json({**scrape, "tasks": [asdict(each) for each in tasks]})
        return
    print_page(scrape, as_json)
    left = [each for each in tasks if each.partida_id is None]
    if left:
        print()
        _table(OPEN, left)


def _print_scrapes(found: Sequence[Scrape], as_json: bool) -> None:
    if as_json:
        print_json([_document(each) for each in found])
    elif found:
        _table(LINE, found)
    else:
        print(speak("No round was scraped yet."))


def _document(scrape: Scrape) -> dict[str, Any]:
    return {name: getattr(scrape, name) for name in SCRAPE}


def retry_failed(
    database: str | None,
    as_json: bool,
    run: int | None,
    *,
    league: str | None,
    season: int | None,
    round_: int | None,
) -> None:
    which: dict[str, Any] = {"run": run, "league": league, "season": season, "round_": round_}
    jobs = _ask(database, partial(service.scrapes.retry_failed, actor=ACTOR, **which))
    if as_json:
        print_json({"jobs": jobs})
    else:
        print(speak("matches tried again: {n}", n=len(jobs)))


def retry_missing(
    database: str | None, as_json: bool, league: str, season: int, round_: int
) -> None:
    of = Round(league, season, round_)
    tried = _ask(database, partial(service.scrapes.retry_missing, of=of, actor=ACTOR))
    run = tried.scrape.id
    if as_json:
        print_json(
            {
                "id": run,
                "looked_again": tried.looked_again,
                "missing": tried.missing,
                "jobs": tried.jobs,
            }
        )
        return
    print(
        speak(
            "scrape {run}: missing matches tried again: {n} of {all}",
            run=run,
            n=len(tried.jobs),
            all=len(tried.missing),
        )
    )


# — repairs —


def correct(
    database: str | None, as_json: bool, match: int, file: Path, why: str, revision: int | None
) -> None:
    """The file holds the match as JSON, as `show` prints it."""
    try:
        page = from_json(MatchPage, file.read_bytes())
    except OSError as error:
        raise BadInput(say("{file}: {error}", file=file, error=error.strerror)) from None
    except SchemaInvalid as refused:
        flaws = "; ".join(
            f"{each.path}: {tell(in_words(each.why))}" for each in refused.problems
        )
        raise BadInput(
            say("the match does not add up; nothing was changed: {flaws}", flaws=flaws)
        ) from None
    how: dict[str, Any] = {"page": page, "why": why, "actor": ACTOR, "revision": revision}
    changed = _ask(database, partial(service.repairs.correct_match, match=match, **how)).changed
    if as_json:
        print_json({"changed": changed})
    elif changed:
        told = ", ".join(changed)
        print(speak("match {match} was corrected: {changed}", match=match, changed=told))
    else:
        print(speak("match {match} already says that: nothing was changed", match=match))


def show(database: str | None, match: int) -> None:
    """A stored match as JSON, as `correct` reads it."""
    print_json(_ask(database, partial(service.games.get_match_page, match=match)))


def delete(database: str | None, as_json: bool, match: int, why: str) -> None:
    runs = _ask(
        database,
        partial(service.repairs.delete_match, match=match, why=why, actor=ACTOR, revision=None),
    )
    if as_json:
        print_json({"jobs": runs})
    else:
        print(speak("match {match} is stored no longer", match=match))


def refresh(database: str | None, as_json: bool, match: int, why: str) -> None:
    refresh_match = partial(service.repairs.refresh_match, match=match, why=why, actor=ACTOR)
    job = _ask(database, refresh_match)
    if as_json:
        print_json({"job": job})
    else:
        print(speak("match {match} is asked for again: job {job}", match=match, job=job))


def hurry(database: str | None, as_json: bool, task: int | None, run: int | None) -> None:
    if task is not None:
        hurried = _ask(database, partial(service.scrapes.hurry_task, task=task, actor=ACTOR))
        jobs = [] if hurried.job is None else [hurried.job]
    elif run is not None:
        jobs = _ask(database, partial(service.scrapes.hurry_scrape, run=run, actor=ACTOR))
    else:
        raise BadInput(say("name a task, or a scrape by --scrape"))
    if as_json:
        print_json({"jobs": jobs})
    else:
        print(speak("looked at now: {n}", n=len(jobs)))


def drop(database: str | None, as_json: bool, task: int, why: str) -> None:
    drop_match = partial(service.repairs.drop_match, task=task, why=why, actor=ACTOR)
    of = _ask(database, drop_match).of
    _print_round(
        as_json, of, speak("the match of task {task} is expected no longer", task=task)
    )


def restore(database: str | None, as_json: bool, task: int) -> None:
    of = _ask(database, partial(service.repairs.restore_match, task=task, actor=ACTOR)).of
    _print_round(as_json, of, speak("the match of task {task} is looked for again", task=task))


def confirm(
    database: str | None,
    as_json: bool,
    league: str,
    season: int,
    round_: int,
    *,
    matches: int,
    why: str,
) -> None:
    of = Round(league, season, round_)
    how: dict[str, Any] = {"of": of, "matches": matches, "why": why, "actor": ACTOR}
    _ask(database, partial(service.repairs.confirm_size, **how))
    _print_round(as_json, of, speak("{round}, matches: {n}", round=of.said, n=matches))


def _print_round(as_json: bool, of: Round, text: str) -> None:
    if as_json:
        print_json(of.parameters())
    else:
        print(text)


def _ask(database: str | None, verb: Callable[[Retoma], Awaitable[T]]) -> T:
    return ask_in(APP, database, lambda tools: verb(tools.retoma))


def _table(names: Sequence[str], rows: Sequence[object]) -> None:
    page = table(*names)
    for each in rows:
        page.add_row(*(shown_cell(getattr(each, name)) for name in names))
    console().print(page)


# — pages that were refused —


def replay(
    database: str | None,
    as_json: bool,
    code: str | None,
    *,
    league: str | None,
    layouts: str | None,
    apply: bool,
) -> None:
    url = settings.read(database_url=database).matches_url

    async def reread(tools: Tools) -> list[Reread]:
        how: dict[str, Any] = {"league": league, "layouts": layouts, "apply": apply}
        return await Replay(tools.retoma, url).of_code(code, actor=ACTOR, **how)

    found = ask_in(APP, database, reread)
    if as_json:
        print_json([asdict(each) for each in found])
        return
    page = table(*SHOWN, "detail")
    for each in found:
        page.add_row(*(clean(getattr(each, name)) for name in SHOWN), clean(_detail(each)))
    if found:
        console().print(page)
    print(_outcome(found, apply))


def _outcome(found: Sequence[Reread], apply: bool) -> str:
    """What was done; of a dry run, what would be."""
    n = Counter(each.change for each in found)
    left = len(found) - n["stored"] - n["discovered"]
    how = {"all": len(found), "matches": n["stored"], "rounds": n["discovered"], "left": left}
    if apply:
        promoted = sum(each.promoted for each in found)
        return speak(
            "pages read again: {all}; stored or begun: {promoted}; left as they are: {rest}",
            all=len(found),
            promoted=promoted,
            rest=len(found) - promoted,
        )
    return speak(
        "dry run, nothing was changed; pages read again: {all}; with --apply, matches that would be"
        " stored: {matches}, rounds whose matches would be looked for: {rounds}, left as they are: {left}",
        **how,
    )


def _detail(each: Reread) -> str:
    """What it would be, or what it is still refused for."""
    told = each.after or {}
    if each.change == "stored":
        score = told["score"]
        return f"{score['home']}-{score['away']}, {len(told['events'])} events"
    if each.change == "discovered":
        return f"{len(told['matches'])} matches"
    return str(told.get("path") or told.get("selector") or told.get("status") or "")
