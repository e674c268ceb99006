"""`retoma matches …`: rounds are scraped, looked at and tried again; pages that were refused, read again."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from retoma import settings
from retoma.apps.matches import APP, store
from retoma.apps.matches.api.how import checked_round, checked_rounds
from retoma.apps.matches.api.scrapes import scrape_told, task_told
from retoma.apps.matches.model import SchemaInvalid
from retoma.apps.matches.replay import Replay, Reread
from retoma.apps.matches.schemas import MatchPage, from_json
from retoma.apps.matches.store.rows import Round
from retoma.apps.matches.store.runs import Tried
from retoma.apps.matches.words import in_words
from retoma.console.applications import ask_in, print_page, shown_cell
from retoma.console.kit import ACTOR, clean, console, print_json, table
from retoma.db import Transaction as Reading
from retoma.engine.rules.errors import BadInput
from retoma.engine.run.transaction import Transaction
from retoma.toolkit.tools import Tools
from retoma.words import say, speak, tell

T = TypeVar("T")

LISTED = 20  # scrapes
TASKS = 1_000  # of one scrape: more than a round has matches
LINE = ("id", "league", "season", "round", "status", "stored", "expected", "failed", "not_yet")
OPEN = ("id", "match_key", "status", "attempts", "error_code", "not_yet", "look_again_at")
SHOWN = ("what", "id", "round", "key", "change")


# — rounds —


def scrape(
    database: str | None, as_json: bool, league: str, season: int, first: int, last: int | None
) -> None:
    rounds = checked_rounds(league, season, first, first if last is None else last)

    def start(tx: Transaction) -> list[tuple[int, bool]]:
        return [store.runs.start(tx, each, actor=ACTOR) for each in rounds]

    begun = _written(database, start)
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
        _newest(_read(database, partial(store.runs.list_jobs, before=None, n=LISTED)), as_json)
        return
    told, tasks = _read(database, lambda tx: _standing(tx, run))
    if as_json:
        print_json({**told, "tasks": tasks})
        return
    print_page(told, as_json)
    left = [each for each in tasks if each["partida_id"] is None]
    if left:
        print()
        _table(OPEN, left)


def _newest(found: Sequence[dict[str, Any]], as_json: bool) -> None:
    told = [scrape_told(each).model_dump() for each in found]
    if as_json:
        print_json(told)
    elif told:
        _table(LINE, told)
    else:
        print(speak("No round was scraped yet."))


def _standing(tx: Reading, run: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    told = scrape_told(store.runs.job_seen(tx, run)).model_dump()
    tasks = store.tasks.list_tasks(tx, run, after=0, n=TASKS)
    return told, [task_told(each).model_dump() for each in tasks]


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
    jobs = _written(database, partial(store.runs.retry_failed, **which, actor=ACTOR))
    if as_json:
        print_json({"jobs": jobs})
    else:
        print(speak("matches tried again: {n}", n=len(jobs)))


def retry_missing(
    database: str | None, as_json: bool, league: str, season: int, round_: int
) -> None:
    of = checked_round(league, season, round_)
    tried: Tried = _written(database, partial(store.runs.retry_missing, of=of, actor=ACTOR))
    if as_json:
        told = {"id": tried.run, "looked_again": tried.new}
        print_json({**told, "missing": list(tried.missing), "jobs": list(tried.again)})
        return
    print(
        speak(
            "scrape {run}: missing matches tried again: {n} of {all}",
            run=tried.run,
            n=len(tried.again),
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

    def put_right(tx: Transaction) -> list[str]:
        seen = store.games.match_seen(tx, match)["revision"] if revision is None else revision
        return store.repairs.correct(tx, match, seen, page, why, actor=ACTOR)

    changed = _written(database, put_right)
    if as_json:
        print_json({"changed": changed})
    elif changed:
        told = ", ".join(changed)
        print(speak("match {match} was corrected: {changed}", match=match, changed=told))
    else:
        print(speak("match {match} already says that: nothing was changed", match=match))


def show(database: str | None, match: int) -> None:
    """A stored match as JSON, as `correct` reads it."""
    print_json(_read(database, lambda tx: store.games.page_of(tx, match)))


def delete(database: str | None, as_json: bool, match: int, why: str) -> None:
    def remove(tx: Transaction) -> list[int]:
        seen = store.games.match_seen(tx, match)["revision"]
        return store.repairs.delete(tx, match, seen, why, actor=ACTOR)

    runs = _written(database, remove)
    if as_json:
        print_json({"jobs": runs})
    else:
        print(speak("match {match} is stored no longer", match=match))


def refresh(database: str | None, as_json: bool, match: int, why: str) -> None:
    job = _written(database, lambda tx: store.repairs.refresh(tx, match, why, actor=ACTOR))
    if as_json:
        print_json({"job": job})
    else:
        print(speak("match {match} is asked for again: job {job}", match=match, job=job))


def hurry(database: str | None, as_json: bool, task: int | None, run: int | None) -> None:
    def look(tx: Transaction) -> list[int]:
        if task is not None:
            return [store.repairs.hurry(tx, task, actor=ACTOR)]
        if run is None:
            raise BadInput(say("name a task, or a scrape by --scrape"))
        return store.repairs.hurry_round(tx, run, actor=ACTOR)

    jobs = _written(database, look)
    if as_json:
        print_json({"jobs": jobs})
    else:
        print(speak("looked at now: {n}", n=len(jobs)))


def drop(database: str | None, as_json: bool, task: int, why: str) -> None:
    of = _written(database, lambda tx: store.repairs.drop(tx, task, why, actor=ACTOR))
    _told_of(as_json, of, speak("the match of task {task} is expected no longer", task=task))


def restore(database: str | None, as_json: bool, task: int) -> None:
    of = _written(database, lambda tx: store.repairs.restore(tx, task, actor=ACTOR))
    _told_of(as_json, of, speak("the match of task {task} is looked for again", task=task))


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
    of = checked_round(league, season, round_)
    _written(database, lambda tx: store.repairs.confirm(tx, of, matches, why, actor=ACTOR))
    _told_of(as_json, of, speak("{round}, matches: {n}", round=of.said, n=matches))


def _told_of(as_json: bool, of: Round, text: str) -> None:
    if as_json:
        print_json(of.parameters())
    else:
        print(text)


def _written(database: str | None, verb: Callable[[Transaction], T]) -> T:
    async def go(tools: Tools) -> T:
        return await tools.retoma.write(verb)

    return ask_in(APP, database, go)


def _read(database: str | None, look: Callable[[Reading], T]) -> T:
    """What is read in one transaction: it adds up."""

    async def go(tools: Tools) -> T:
        return await (await tools.retoma.database()).read(look)

    return ask_in(APP, database, go)


def _table(names: Sequence[str], told: Sequence[Mapping[str, Any]]) -> None:
    page = table(*names)
    for each in told:
        page.add_row(*(shown_cell(each[name]) for name in names))
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
