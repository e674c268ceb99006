"""Import proxies, workers, writers and missions from pasted lines or a file: first a dry run that says of
each line what it would be, then all new lines in one transaction."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from pydantic import ValidationError

from retoma.apps.ads import store
from retoma.apps.ads.service.connections import secrets_for, tools_of
from retoma.apps.ads.service.inputs import NEW, Entered, NewMission, NewProxy, list_flaws
from retoma.apps.ads.service.intake import Intake, Line
from retoma.apps.ads.service.resources import check_address, insert_resource
from retoma.apps.ads.store import onboarding
from retoma.apps.ads.store.rows import Sort
from retoma.engine.run.transaction import Transaction
from retoma.library import Retoma
from retoma.outbound import Blocked
from retoma.toolkit.tools import Tools
from retoma.web.problems import Flaw, Refusal
from retoma.words import Said, say

SHAPES: Final[Mapping[Intake, type[Entered | NewMission]]] = {
    Intake.MISSIONS: NewMission,
    **{Intake(sort): shape for sort, shape in NEW.items()},
}


class Verdict(StrEnum):
    """What a line is."""

    NEW = "new"
    DUPLICATE = "duplicate"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class CheckedLine:
    """A line and what it would be; of a wrong line only its number and the reasons."""

    number: int
    verdict: Verdict
    what: str = ""
    why: tuple[Said, ...] = ()
    body: Any = None


@dataclass(frozen=True, slots=True)
class Imported:
    """The checked lines, and the ids of what was added: none in a dry run."""

    lines: Sequence[CheckedLine]
    ids: Sequence[str]

    def count(self, verdict: Verdict) -> int:
        return sum(1 for each in self.lines if each.verdict is verdict)

    def refuse_wrong(self) -> None:
        """Raise a Refusal that names the wrong lines, if there are any."""
        wrong = [each for each in self.lines if each.verdict is Verdict.WRONG]
        if wrong:
            raise Refusal(
                "bad_input",
                explain_wrong(len(wrong)),
                [Flaw(f"line {each.number}", why) for each in wrong[:20] for why in each.why],
            )


def explain_wrong(lines: int) -> Said:
    if lines == 1:
        return say("1 line is wrong; nothing was added")
    return say("{n} lines are wrong; nothing was added", n=lines)


async def import_lines(
    retoma: Retoma,
    what: Intake,
    lines: Sequence[Line],
    *,
    actor: str,
    dry_run: bool,
    test: bool = False,
    queue: bool = False,
) -> Imported:
    """Check every line; unless this is a dry run or a line is wrong, add what is new, all or nothing."""
    read_in = [await _check_line(tools_of(retoma), what, line) for line in lines]
    secrets = None if dry_run else await secrets_for(retoma, actor)

    def add(tx: Transaction) -> Imported:
        checked = _mark_duplicates(tx, what, read_in)
        if secrets is None or any(each.verdict is Verdict.WRONG for each in checked):
            return Imported(checked, [])
        new = [each.body for each in checked if each.verdict is Verdict.NEW]
        ids = _insert(tx, what, new, secrets) if new else []
        if ids:
            tx.tell("ads.imported", what, {"added": len(ids)}, actor=actor)
        if ids and test and what is not Intake.MISSIONS:
            store.ask_tests(tx, Sort(what), ids, actor=actor)
        if ids and queue and what is Intake.MISSIONS:
            store.queue_missions(tx, ids, actor=actor)
        return Imported(checked, ids)

    return await retoma.write(add)


async def _check_line(tools: Tools, what: Intake, line: Line) -> CheckedLine:
    """Check the fields of a line, and whether its address may be called."""
    if line.why is not None:
        return CheckedLine(line.number, Verdict.WRONG, why=(line.why,))
    try:
        body = SHAPES[what].model_validate(_typed(what, line.fields))
    except ValidationError as error:
        why = tuple(
            say("{path}: {why}", path=each.path, why=each.why) for each in list_flaws(error)
        )
        return CheckedLine(line.number, Verdict.WRONG, why=why)
    try:
        if isinstance(body, Entered):
            await check_address(tools, body)
    except Blocked as error:
        why = (say("{why}", why=error.args[0]),)
        return CheckedLine(line.number, Verdict.WRONG, why=why)
    return CheckedLine(line.number, Verdict.NEW, _name(body), body=body)


def _typed(what: Intake, fields: Mapping[str, str]) -> dict[str, Any]:
    typed: dict[str, Any] = dict(fields)
    port = fields.get("port", "")
    if port.isascii() and port.isdigit() and len(port) <= len("65535"):
        typed["port"] = int(port)
    if what is Intake.MISSIONS and "languages" in fields:
        typed["languages"] = fields["languages"].replace("|", " ").replace("+", " ").split()
    return typed


def _name(body: Any) -> str:
    match body:
        case NewProxy():
            return body.name or (f"{body.host}:{body.port}" if body.port else body.host)
        case NewMission():
            languages = " ".join(body.languages)
            return f"{body.date_start} {body.date_end} {body.media_type} {languages}"
        case _:
            return str(body.name)


def _mark_duplicates(
    tx: Transaction, what: Intake, lines: Sequence[CheckedLine]
) -> list[CheckedLine]:
    """Mark the lines that are in the database already, or stand in an earlier line."""
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
            made.append(CheckedLine(each.number, Verdict.DUPLICATE, each.what, why))
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
            return onboarding.known_missions(tx, [each.mission for each in bodies])


def _keys(body: Any) -> onboarding.Keys:
    match body:
        case NewProxy():
            return onboarding.proxy_keys(body.name, body.host, body.port, body.username)
        case NewMission():
            days = (body.date_start, body.date_end)
            return [onboarding.mission_key(*days, body.media_type, body.languages)]
        case _:
            return [body.url]


def _insert(
    tx: Transaction, what: Intake, new: Sequence[Any], secrets: store.Secrets
) -> list[str]:
    if what is Intake.MISSIONS:
        return store.add_missions(tx, [each.mission for each in new], actor=secrets.actor)
    return [insert_resource(tx, secrets, each) for each in new]
