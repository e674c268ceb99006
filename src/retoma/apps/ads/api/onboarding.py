"""Proxies, workers, writers and missions by the dozen: pasted or from a file, first as a dry run that
says of each line what it would be, then all of them in one transaction."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Final

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field, StrictBool, StrictStr, ValidationError

from retoma.apps.ads import store
from retoma.apps.ads.api.how import routes, tools_of
from retoma.apps.ads.api.missions import NewMission
from retoma.apps.ads.api.things import NewProxy, NewWorker, NewWriter
from retoma.apps.ads.intake import LONGEST, Intake, Line, read
from retoma.apps.ads.store import onboarding
from retoma.apps.ads.store.rows import Sort
from retoma.engine.run.transaction import Transaction
from retoma.outbound import Blocked, Policy
from retoma.secret import Secret
from retoma.toolkit.tools import Tools
from retoma.web import Admin, AHouse, House, Operator
from retoma.web.flaws import flaws_of
from retoma.web.house import AVisit
from retoma.web.problems import Flaw, Refusal
from retoma.web.wire import Body, Shown
from retoma.words import Language, Said, say, tell

SHAPES: Final[Mapping[Intake, type[BaseModel]]] = {
    Intake.PROXIES: NewProxy,
    Intake.WORKERS: NewWorker,
    Intake.WRITERS: NewWriter,
    Intake.MISSIONS: NewMission,
}
PURPOSES: Final = {Intake.WORKERS: "ads worker", Intake.WRITERS: "ads writer"}
SECRETS: Final = ("api_key", "password")


class Verdict(StrEnum):
    """What a line is."""

    NEW = "new"
    DUPLICATE = "duplicate"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Judged:
    """A line and what it would be; of a wrong one only its number and the reasons."""

    number: int
    verdict: Verdict
    what: str = ""
    why: tuple[Said, ...] = ()
    body: Any = None


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of it all."""

    lines: Sequence[Judged]
    ids: Sequence[str]  # none in a dry run

    def count(self, verdict: Verdict) -> int:
        return sum(1 for each in self.lines if each.verdict is verdict)


async def take(
    tools: Tools,
    what: Intake,
    text: str,
    *,
    actor: str,
    dry_run: bool,
    test: bool = False,
    queue: bool = False,
) -> Taken:
    """What a text says, line by line."""
    told: dict[str, Any] = {"actor": actor, "dry_run": dry_run, "test": test, "queue": queue}
    return await take_lines(tools, what, read(what, text), **told)


async def take_lines(
    tools: Tools,
    what: Intake,
    lines: Sequence[Line],
    *,
    actor: str,
    dry_run: bool,
    test: bool = False,
    queue: bool = False,
) -> Taken:
    """Judge every line; unless this is a dry run, add what is new, all of it or nothing."""
    read_in = [await _checked(tools, what, line) for line in lines]
    sealer = None if dry_run else await (await tools.vault()).sealer()

    def add(tx: Transaction) -> Taken:
        judged = _judged(tx, what, read_in)
        if sealer is None or any(each.verdict is Verdict.WRONG for each in judged):
            return Taken(judged, [])
        new = [each.body for each in judged if each.verdict is Verdict.NEW]
        ids = _added(tx, what, new, store.Secrets(sealer, actor), actor) if new else []
        if ids:
            tx.tell("ads.imported", what, {"added": len(ids)}, actor=actor)
        if ids and test and what is not Intake.MISSIONS:
            store.ask_tests(tx, Sort(what), ids, actor=actor)
        if ids and queue and what is Intake.MISSIONS:
            store.queue_missions(tx, ids, actor=actor)
        return Taken(judged, ids)

    return await tools.retoma.write(add)


async def _checked(tools: Tools, what: Intake, line: Line) -> Judged:
    """Whether it is one at all, and leads where somebody may go."""
    if line.why is not None:
        return Judged(line.number, Verdict.WRONG, why=(line.why,))
    try:
        body = SHAPES[what].model_validate(_typed(what, line.fields))
    except ValidationError as error:
        flaws = flaws_of(RequestValidationError(error.errors()))
        why = tuple(say("{path}: {why}", path=each.path, why=each.why) for each in flaws)
        return Judged(line.number, Verdict.WRONG, why=why)
    try:
        await _may_go(tools, what, body)
    except Blocked as error:
        why = (say("{why}", why=error.args[0]),)
        return Judged(line.number, Verdict.WRONG, why=why)
    return Judged(line.number, Verdict.NEW, _called(body), body=body)


async def _may_go(tools: Tools, what: Intake, body: Any) -> None:
    """A proxy's name may be known only to those who go out by it."""
    if isinstance(body, NewWorker | NewWriter):
        await tools.out.check(Policy.toward(PURPOSES[what], body.url), body.url)
    if isinstance(body, NewProxy):
        at = f"[{body.host}]" if ":" in body.host else body.host
        url = f"http://{at}" if body.port is None else f"http://{at}:{body.port}"
        await tools.out.check(Policy.toward("ads proxy", url), url, names=False)


def _typed(what: Intake, fields: Mapping[str, str]) -> dict[str, Any]:
    told: dict[str, Any] = dict(fields)
    port = fields.get("port", "")
    if port.isascii() and port.isdigit() and len(port) <= len("65535"):
        told["port"] = int(port)
    if what is Intake.MISSIONS and "languages" in fields:
        told["languages"] = fields["languages"].replace("|", " ").replace("+", " ").split()
    return told


def _called(body: Any) -> str:
    match body:
        case NewProxy():
            return body.name or (f"{body.host}:{body.port}" if body.port else body.host)
        case NewMission():
            languages = " ".join(body.languages)
            return f"{body.date_start} {body.date_end} {body.media_type} {languages}"
        case _:
            return str(body.name)


def _judged(tx: Transaction, what: Intake, lines: Sequence[Judged]) -> list[Judged]:
    """Which of them are there already, or stand in an earlier line."""
    bodies = [each.body for each in lines if each.body is not None]
    known: dict[Hashable, str | Said] = dict(_known(tx, what, bodies))
    made = []
    for each in lines:
        keys = [] if each.body is None else _keys(each.body)
        same = next((known[key] for key in keys if key in known), None)
        if same is None:
            known |= dict.fromkeys(keys, say("line {n}", n=each.number))
            made.append(each)
        else:
            why = (say("is the same as {other}", other=same),)
            made.append(Judged(each.number, Verdict.DUPLICATE, each.what, why))
    return made


def _known(tx: Transaction, what: Intake, bodies: Sequence[Any]) -> dict[Hashable, str]:
    match what:
        case Intake.PROXIES:
            return onboarding.known_proxies(tx)
        case Intake.WORKERS:
            return onboarding.known_workers(tx)
        case Intake.WRITERS:
            return onboarding.known_writers(tx)
        case Intake.MISSIONS:
            return onboarding.known_missions(tx, [_mission(each) for each in bodies])


def _keys(body: Any) -> onboarding.Keys:
    match body:
        case NewProxy():
            return onboarding.proxy_keys(body.name, body.host, body.port, body.username)
        case NewMission():
            days = (body.date_start, body.date_end)
            return [onboarding.mission_key(*days, body.media_type, body.languages)]
        case _:
            return [body.url]


def _added(
    tx: Transaction, what: Intake, new: Sequence[Any], secrets: store.Secrets, actor: str
) -> list[str]:
    if what is Intake.MISSIONS:
        return store.add_missions(tx, [_mission(each) for each in new], actor=actor)
    adds: dict[Intake, Callable[..., str]] = {
        Intake.PROXIES: store.add_proxy,
        Intake.WORKERS: store.add_worker,
        Intake.WRITERS: store.add_writer,
    }
    return [adds[what](tx, secrets, **_sealed(each)) for each in new]


def _sealed(body: BaseModel) -> dict[str, Any]:
    told = body.model_dump()
    hidden = {name: Secret(told[name]) for name in SECRETS if told.get(name) is not None}
    return {**told, **hidden}


def _mission(body: NewMission) -> store.NewMission:
    return store.NewMission(
        body.date_start, body.date_end, body.media_type, tuple(body.languages)
    )


# — over the API —


class Pasted(Body):
    """Lines, as a table or in the forms vendors use."""

    text: Annotated[StrictStr, Field(min_length=1, max_length=LONGEST)]
    dry_run: StrictBool = True
    test: Annotated[StrictBool, Field(description="Test what was added.")] = False
    queue: Annotated[StrictBool, Field(description="Queue the missions that were added.")] = (
        False
    )


class LineShown(Shown):
    """What a line is; of a wrong one only its number and the reasons."""

    line: int
    verdict: Verdict
    what: str
    why: list[str]


class Imported(Shown):
    """What was added, or would be."""

    dry_run: bool
    new: int
    duplicate: int
    wrong: int
    ids: list[str]
    lines: list[LineShown]


@routes.post("/api/ads/import/missions")
async def import_missions(
    body: Pasted, who: Operator, house: AHouse, visit: AVisit
) -> Imported:
    """Missions into the Banco by lines: date_start, date_end, media_type, languages."""
    return await imported(house, Intake.MISSIONS, body, who.name, visit.language)


@routes.post("/api/ads/import/{what}")
async def import_things(
    what: Sort, body: Pasted, who: Admin, house: AHouse, visit: AVisit
) -> Imported:
    """Proxies, workers or writers by lines; a dry run unless told otherwise."""
    return await imported(house, Intake(what), body, who.name, visit.language)


async def imported(
    house: House, what: Intake, body: Pasted, actor: str, language: Language
) -> Imported:
    told = {"actor": actor, "dry_run": body.dry_run, "test": body.test, "queue": body.queue}
    taken = await take(tools_of(house), what, body.text, **told)  # type: ignore[arg-type]
    if not body.dry_run:
        refuse_wrong(taken)
    return Imported(
        dry_run=body.dry_run,
        new=taken.count(Verdict.NEW),
        duplicate=taken.count(Verdict.DUPLICATE),
        wrong=taken.count(Verdict.WRONG),
        ids=list(taken.ids),
        lines=[
            LineShown(
                line=each.number,
                verdict=each.verdict,
                what=each.what,
                why=[tell(why, language) for why in each.why],
            )
            for each in taken.lines
        ],
    )


def refuse_wrong(taken: Taken) -> None:
    """Not by half: whoever pasted it looks at the lines that are wrong first."""
    wrong = [each for each in taken.lines if each.verdict is Verdict.WRONG]
    if wrong:
        raise Refusal(
            "bad_input",
            say("1 line is wrong; nothing was added")
            if len(wrong) == 1
            else say("{n} lines are wrong; nothing was added", n=len(wrong)),
            [Flaw(f"line {each.number}", why) for each in wrong[:20] for why in each.why],
        )
