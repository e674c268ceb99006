"""`retoma documents …`: files become an execution; how it stands, what failed, go on, try again."""

import csv
import sys
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO, TypeVar

from retoma.access import Role
from retoma.apps.documents import APP, service, store
from retoma.apps.documents.api.execucoes import HEADINGS, line_told, result_told
from retoma.apps.documents.api.how import time_told
from retoma.apps.documents.api.projetos import reviews_csv, reviews_jsonl
from retoma.apps.documents.api.recuperacao import blocked_told, described, message_of
from retoma.apps.documents.contents import Contents
from retoma.apps.documents.intake import Intake, Taken
from retoma.apps.documents.model import (
    ROUTE,
    DocumentStatus,
    Label,
    ProjectRules,
    meaning_of,
    message_in,
)
from retoma.apps.documents.store.documents import Which
from retoma.apps.documents.store.executions import NewDocument, Stand
from retoma.apps.readers.rules import Ocr
from retoma.apps.tools import Tools
from retoma.cli.apps import ask_in, bar, print_page, shown_cell
from retoma.cli.batches import watch
from retoma.cli.desk import ACTOR, clean, console, print_json, table
from retoma.db import Transaction
from retoma.engine.errors import BadInput
from retoma.web.files import cell
from retoma.words import Said, chosen, say, speak, tell

T = TypeVar("T")

PAGE = 1_000  # documents read at a time
LISTED = 20  # executions
LINE = ("id", "nome", "status", "progresso", "total")
FAILED = ("codigo", "arquivo", "erro_codigo", "erro_mensagem", "tentativas", "ultimo_erro_em")
SHOWN = (
    "codigo",
    "status",
    "rotulo",
    "rotulo_revisado",
    "confianca",
    "erro_codigo",
    "justificativa",
)


def documents(
    database: str | None,
    verb: Callable[[Tools], Awaitable[T]],
    *,
    interrupted: Said | None = None,
) -> T:
    """One verb on a database that has the documents application in it."""
    return ask_in(APP, database, verb, interrupted=interrupted)


def looked(database: str | None, look: Callable[[Transaction], T]) -> T:
    """What is read in one transaction: it adds up."""

    async def go(tools: Tools) -> T:
        return await (await tools.retoma.database()).read(look)

    return documents(database, go)


# — projects —


def add_project(
    database: str | None,
    as_json: bool,
    name: str,
    labels: Sequence[str],
    *,
    document_retries: int,
    execution_retries: int,
    ocr: Ocr,
) -> None:
    rules = ProjectRules(
        labels=tuple(_label(each) for each in labels),
        max_retries_documento=document_retries,
        max_retries_execucao=execution_retries,
        ocr=ocr,
    )

    async def go(tools: Tools) -> int:
        return await tools.retoma.write(
            lambda tx: store.projects.add_project(tx, name, rules, actor=ACTOR)
        )

    made = documents(database, go)
    if as_json:
        print_json({"id": made, "nome": name})
    else:
        print(speak("project {id}: {name}", id=made, name=clean(name)))


def _label(told: str) -> Label:
    name, _, why = told.partition(":")
    return Label(name.strip(), why.strip())


def list_projects(database: str | None, as_json: bool) -> None:
    found = looked(database, lambda tx: store.projects.list_projects(tx, before=None, n=PAGE))
    told = [
        {"id": each.id, "nome": each.name, "rotulos": list(each.rules.names)} for each in found
    ]
    _table(("id", "nome", "rotulos"), told, as_json, none=say("no project yet"))


# — executions —


def classify(
    database: str | None,
    as_json: bool,
    paths: Sequence[Path],
    *,
    project: str,
    name: str | None,
    budget: str | None,
    manifest: Path | None,
    without: Collection[str],
    wait: bool,
) -> None:
    async def go(tools: Tools) -> tuple[int, Taken]:
        opened = await tools.retoma.database()
        wanted = await opened.read(lambda tx: store.projects.find_project(tx, project))
        with bar(speak("files kept"), quiet=as_json) as seen:
            taken = await Intake(Contents(tools.retoma)).paths(paths, manifest, seen)
        if not taken.incoming:
            _tell_left_out(taken, sys.stderr)
        papers = [
            NewDocument(each.codigo, each.name, each.sha256, each.size)
            for each in taken.incoming
        ]
        how: dict[str, Any] = {
            "name": name,
            "budget": budget,
            "actor": ACTOR,
            "without": without,
        }
        made = await tools.retoma.write(
            lambda tx: store.executions.add_execution(tx, wanted, papers, **how)
        )
        return made, taken

    left = say("nothing was begun; files that came in are dropped a day later")
    execution, taken = documents(database, go, interrupted=left)
    n = len(taken.incoming) - len(without)
    _tell_taken(execution, taken, n, as_json=as_json, wait=wait)
    if wait:
        watch(database, as_json, execution)


def _tell_taken(execution: int, taken: Taken, n: int, *, as_json: bool, wait: bool) -> None:
    if as_json:
        left = [{"arquivo": each.name, "codigo": each.code} for each in taken.left_out]
        if not wait:
            print_json({"execucao": execution, "documentos": n, "deixados": left})
        return
    print(speak("execution {execution}: {n} documents", execution=execution, n=n))
    _tell_left_out(taken, sys.stdout)


def _tell_left_out(taken: Taken, out: TextIO) -> None:
    for each in taken.left_out:
        told = speak("left out: {name} ({code})", name=clean(each.name), code=each.code)
        print(told, meaning_of(each.code, chosen()), file=out)


def status(database: str | None, as_json: bool, execution: int | None) -> None:
    if execution is None:
        lines = looked(database, _newest)
        _table(LINE, lines, as_json, none=say("no execution yet"))
    else:
        print_page(looked(database, lambda tx: _standing(tx, execution)), as_json)


def _newest(tx: Transaction) -> list[dict[str, Any]]:
    found = store.executions.list_executions(tx, before=None, n=LISTED)
    return [line_told(tx, each).model_dump(mode="json") for each in found]


def _standing(tx: Transaction, execution: int) -> dict[str, Any]:
    told = store.executions.execution_seen(tx, execution)
    line = line_told(tx, told)
    holds = store.executions.holds_of(tx, execution)
    return {
        **line.model_dump(),
        "mensagem": tell(message_of(line)),
        "rota_origem": ROUTE,
        "ultimo_heartbeat": time_told(told["ultimo_heartbeat"]),
        "ultimo_codigo_processado": told["ultimo_codigo_processado"],
        "motivos": [f"{n} {tell(described(why))}" for why, n, _ in holds],
        **_blocked(told),
        "rotulos": store.documents.count_labels(tx, execution),
    }


def _blocked(told: Mapping[str, Any]) -> dict[str, Any]:
    """Why the service rejects it, in its own words, and what to do about it."""
    blocked = blocked_told(told, chosen())
    if blocked is None:
        return {}
    return {"bloqueio": blocked.mensagem, "palavras": blocked.palavras, "cura": blocked.cura}


def errors(database: str | None, as_json: bool, execution: int) -> None:
    which = Which(status=DocumentStatus.ERRO)
    told = [
        {name: each[name] for name in FAILED} for each in _results(database, execution, which)
    ]
    if not as_json:
        told = [{**each, "erro_mensagem": _message(each)} for each in told]
    _table(FAILED, told, as_json, none=say("no document has failed"))


def _message(failed: Mapping[str, Any]) -> str:
    return message_in(chosen(), failed["erro_codigo"], failed["erro_mensagem"])


def results(database: str | None, as_json: bool, execution: int, *, as_csv: bool) -> None:
    told = _results(database, execution, Which())
    if as_csv:
        writer = csv.writer(sys.stdout)
        writer.writerow(HEADINGS)
        writer.writerows([cell(each[name]) for name in HEADINGS] for each in told)
    else:
        _table(SHOWN, told, as_json, none=say("no documents"))


def _results(database: str | None, execution: int, which: Which) -> list[dict[str, Any]]:
    """All of them, as the API shows them to anybody."""

    def look(tx: Transaction) -> list[dict[str, Any]]:
        store.executions.stand_of(tx, execution)
        told: list[dict[str, Any]] = []
        rows: list[dict[str, Any]] | None = None
        while rows is None or len(rows) == PAGE:
            after = told[-1]["id"] if told else 0
            rows = store.documents.list_results(tx, execution, which, after=after, n=PAGE)
            told += rows
        return [result_told(each, Role.VIEWER).model_dump() for each in told]

    return looked(database, look)


# — steering —


def resume(database: str | None, as_json: bool, execution: int, *, anyway: bool) -> None:
    async def go(tools: Tools) -> tuple[Stand, bool]:
        return await service.resume(tools.retoma, execution, actor=ACTOR, anyway=anyway)

    _tell_stand(execution, *documents(database, go), as_json=as_json)


def cancel(database: str | None, as_json: bool, execution: int) -> None:
    async def go(tools: Tools) -> tuple[Stand, bool]:
        return await service.cancel(tools.retoma, execution, actor=ACTOR)

    _tell_stand(execution, *documents(database, go), as_json=as_json)


def reprocess(
    database: str | None, as_json: bool, execution: int, *, error: str | None
) -> None:
    async def go(tools: Tools) -> tuple[Stand, bool]:
        return await service.reprocess(tools.retoma, execution, actor=ACTOR, code=error)

    _tell_stand(execution, *documents(database, go), as_json=as_json)


# — one document —


def retry(database: str | None, as_json: bool, execution: int, code: str) -> None:
    async def go(tools: Tools) -> None:
        document = await _document(tools, execution, code)
        await service.retry(tools.retoma, execution, document, actor=ACTOR)

    documents(database, go)
    _tell_document(database, execution, code, speak("is tried again"), as_json=as_json)


def skip(
    database: str | None,
    as_json: bool,
    execution: int,
    *,
    why: str,
    document: str | None,
    error: str | None,
) -> None:
    if (document is None) == (error is None):
        raise BadInput(say("say what to skip: one document, or the code of those that failed"))

    async def go(tools: Tools) -> int:
        if error is not None:
            return await service.skip_failed(tools.retoma, execution, error, why, actor=ACTOR)
        one = await _document(tools, execution, document or "")
        await service.skip(tools.retoma, execution, one, why, actor=ACTOR)
        return 1

    skipped = documents(database, go)
    if as_json:
        print_json({"id": execution, "pulados": skipped})
    else:
        print(speak("documents skipped: {n}", n=skipped))


def review(database: str | None, as_json: bool, execution: int, code: str, label: str) -> None:
    async def go(tools: Tools) -> bool:
        document = await _document(tools, execution, code)
        return await service.review(tools.retoma, execution, document, label, actor=ACTOR)

    right = documents(database, go)
    said = speak("label confirmed") if right else speak("label corrected")
    _tell_document(database, execution, code, said, as_json=as_json)


def original(database: str | None, execution: int, code: str, to: Path) -> None:
    async def go(tools: Tools) -> int:
        document = await _document(tools, execution, code)
        _, size, pieces = await service.original(tools.retoma, execution, document)
        with to.open("xb") as file:
            async for piece in pieces:
                file.write(piece)
        return size

    try:
        size = documents(database, go)
    except OSError as error:
        raise BadInput(
            say("{file} cannot be written: {why}", file=to, why=error.strerror or "")
        ) from None
    print(speak("{file}: {n} bytes", file=to, n=size))


async def _document(tools: Tools, execution: int, code: str) -> int:
    database = await tools.retoma.database()
    return await database.read(lambda tx: store.documents.find_document(tx, execution, code))


def _tell_document(
    database: str | None, execution: int, code: str, said: str, *, as_json: bool
) -> None:
    if as_json:
        found = looked(
            database,
            lambda tx: store.documents.result_of(
                tx, execution, store.documents.find_document(tx, execution, code)
            ),
        )
        print_json(result_told(found, Role.VIEWER).model_dump(mode="json"))
    else:
        print(f"{clean(code)}: {said}")


# — what people said of labels —


def reviews(database: str | None, project: str, *, as_csv: bool) -> None:
    async def go(tools: Tools) -> None:
        which = await _project(tools, project)
        lines = reviews_csv if as_csv else reviews_jsonl
        async for line in lines(tools.retoma, which):
            sys.stdout.write(line.decode())

    documents(database, go)


def accuracy(database: str | None, as_json: bool, project: str) -> None:
    async def go(tools: Tools) -> Sequence[service.Accuracy]:
        return await service.accuracy(tools.retoma, await _project(tools, project))

    told = [
        {
            "rotulo": each.label,
            "revisados": each.reviewed,
            "corretos": each.right,
            "acerto": round(each.share, 4),
            "outros": dict(each.instead),
        }
        for each in documents(database, go)
    ]
    names = ("rotulo", "revisados", "corretos", "acerto", "outros")
    _table(names, told, as_json, none=say("nobody has reviewed a label of this project yet"))


async def _project(tools: Tools, name: str) -> int:
    database = await tools.retoma.database()
    return await database.read(lambda tx: store.projects.find_project(tx, name))


def _tell_stand(execution: int, stand: Stand, changed: bool, *, as_json: bool) -> None:
    if as_json:
        told = {"id": execution, "status": stand.status, "alterada": changed}
        print_json({**told, "geracao": stand.generation, "reprocessados": stand.reprocessed})
        return
    how = {"execution": execution, "status": stand.status}
    said = speak("execution {execution} is {status}", **how)
    print(said if changed else f"{said}; {speak('nothing was to be changed')}")


# — answering —


def _table(
    names: Sequence[str], told: Sequence[Mapping[str, Any]], as_json: bool, *, none: Said
) -> None:
    if as_json:
        print_json(told)
    elif not told:
        print(tell(none))
    else:
        page = table(*names)
        for each in told:
            page.add_row(*(shown_cell(each[name]) for name in names))
        console().print(page)
