"""`retoma documents …`: files become an execution; how it stands, what failed, go on, try again."""

import csv
import sys
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO, TypeVar

from pydantic import TypeAdapter

from retoma.apps.documents import APP, service
from retoma.apps.documents.intake import Taken
from retoma.apps.documents.model import (
    DocumentStatus,
    Label,
    ProjectRules,
    meaning_of,
)
from retoma.apps.documents.service.documents import HEADINGS
from retoma.apps.documents.service.projects import Accuracy
from retoma.apps.documents.service.status import ExecutionDetails
from retoma.apps.documents.store.documents import Result, Which
from retoma.apps.documents.store.executions import ExecutionLine, NewDocument, Stand
from retoma.console.applications import ask_in, bar, print_page, shown_cell
from retoma.console.batch_progress import watch
from retoma.console.kit import ACTOR, clean, console, print_json, table
from retoma.engine.rules.errors import BadInput
from retoma.library import Retoma
from retoma.toolkit.readers.rules import Ocr
from retoma.toolkit.tools import Tools
from retoma.web.files import cell
from retoma.words import Said, chosen, say, speak, tell
from retoma.words.recall import tell_stored

T = TypeVar("T")

MOST_PROJECTS = 1_000
MOST_EXECUTIONS = 20
LINE = ("id", "nome", "status", "progresso", "total")
FAILED = ("codigo", "arquivo", "erro_codigo", "erro_mensagem", "tentativas", "ultimo_erro_em")
STATUS = (  # of one execution, beside its holds and why it is blocked
    *("id", "projeto_id", "nome", "status", "total", "por_status", "progresso"),
    *("tentativas_retry", "max_retries", "geracao", "criado_por", "criado_em", "mensagem"),
    *("rota_origem", "ultimo_heartbeat", "ultimo_codigo_processado"),
)
SHOWN = (
    "codigo",
    "status",
    "rotulo",
    "rotulo_revisado",
    "confianca",
    "erro_codigo",
    "justificativa",
)


def call(
    database: str | None,
    verb: Callable[[Retoma], Awaitable[T]],
    *,
    interrupted: Said | None = None,
) -> T:
    """Call a verb of the service on a database that has the tables of this application."""

    async def go(tools: Tools) -> T:
        return await verb(tools.retoma)

    return ask_in(APP, database, go, interrupted=interrupted)


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

    project, _ = call(
        database, lambda retoma: service.projects.add_project(retoma, name, rules, actor=ACTOR)
    )
    if as_json:
        print_json({"id": project, "nome": name})
    else:
        print(speak("project {id}: {name}", id=project, name=clean(name)))


def _label(given: str) -> Label:
    name, _, why = given.partition(":")
    return Label(name.strip(), why.strip())


def list_projects(database: str | None, as_json: bool) -> None:
    found = call(
        database, lambda retoma: service.projects.list_projects(retoma, limit=MOST_PROJECTS)
    )
    rows = [
        {"id": each.id, "nome": each.name, "rotulos": list(each.rules.names)}
        for each in found.items
    ]
    _print_table(("id", "nome", "rotulos"), rows, as_json, none=say("no project yet"))


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
    async def go(retoma: Retoma) -> tuple[int, Taken]:
        project_id = await service.projects.find_project(retoma, project)
        with bar(speak("files kept"), quiet=as_json) as seen:
            taken = await service.files.import_paths(retoma, paths, manifest, seen)
        if not taken.incoming:
            _print_left_out(taken, sys.stderr)
        submitted = [
            NewDocument(each.codigo, each.name, each.sha256, each.size)
            for each in taken.incoming
        ]
        execution, _ = await service.executions.add_execution(
            retoma,
            project_id,
            submitted,
            name=name,
            budget=budget,
            without=without,
            actor=ACTOR,
        )
        return execution, taken

    left = say("nothing was begun; files that came in are dropped a day later")
    execution, taken = call(database, go, interrupted=left)
    n = len(taken.incoming) - len(without)
    _print_taken(execution, taken, n, as_json=as_json, wait=wait)
    if wait:
        watch(database, as_json, execution)


def _print_taken(execution: int, taken: Taken, n: int, *, as_json: bool, wait: bool) -> None:
    if as_json:
        left = [{"arquivo": each.name, "codigo": each.code} for each in taken.left_out]
        if not wait:
            print_json({"execucao": execution, "documentos": n, "deixados": left})
        return
    print(speak("execution {execution}: {n} documents", execution=execution, n=n))
    _print_left_out(taken, sys.stdout)


def _print_left_out(taken: Taken, out: TextIO) -> None:
    for each in taken.left_out:
        line = speak("left out: {name} ({code})", name=clean(each.name), code=each.code)
        print(line, meaning_of(each.code, chosen()), file=out)


def status(database: str | None, as_json: bool, execution: int | None) -> None:
    if execution is None:
        found = call(
            database,
            lambda retoma: service.executions.list_executions(retoma, limit=MOST_EXECUTIONS),
        )
        rows = TypeAdapter(Sequence[ExecutionLine]).dump_python(found.items, mode="json")
        _print_table(LINE, rows, as_json, none=say("no execution yet"))
        return
    details = call(
        database, lambda retoma: service.status.describe_execution(retoma, execution, chosen())
    )
    print_page(_page_of(details), as_json)


def _page_of(found: ExecutionDetails) -> dict[str, Any]:
    page = {name: getattr(found, name) for name in STATUS}
    page["motivos"] = [f"{each.documentos} {each.descricao}" for each in found.motivos]
    if (blocked := found.bloqueio) is not None:
        page["bloqueio"] = blocked.mensagem
        page["palavras"] = blocked.palavras
        page["cura"] = blocked.cura
    page["rotulos"] = found.rotulos
    return page


def errors(database: str | None, as_json: bool, execution: int) -> None:
    which = Which(status=DocumentStatus.ERRO)
    rows = [
        {name: each[name] for name in FAILED} for each in _results(database, execution, which)
    ]
    if not as_json:
        rows = [{**each, "erro_mensagem": _message(each)} for each in rows]
    _print_table(FAILED, rows, as_json, none=say("no document has failed"))


def _message(failed: Mapping[str, Any]) -> str:
    return tell_stored(failed["erro_mensagem"] or "")


def results(database: str | None, as_json: bool, execution: int, *, as_csv: bool) -> None:
    rows = _results(database, execution, Which())
    if as_csv:
        writer = csv.writer(sys.stdout)
        writer.writerow(HEADINGS)
        writer.writerows([cell(each[name]) for name in HEADINGS] for each in rows)
    else:
        _print_table(SHOWN, rows, as_json, none=say("no documents"))


def _results(database: str | None, execution: int, which: Which) -> list[dict[str, Any]]:
    async def go(retoma: Retoma) -> list[dict[str, Any]]:
        pages = service.documents.read_results(retoma, execution, which)
        return [asdict(each) async for page in pages for each in page]

    return call(database, go)


# — steering —


def resume(database: str | None, as_json: bool, execution: int, *, anyway: bool) -> None:
    moved = call(
        database,
        lambda retoma: service.executions.resume_execution(
            retoma, execution, actor=ACTOR, anyway=anyway
        ),
    )
    _print_stand(execution, *moved, as_json=as_json)


def cancel(database: str | None, as_json: bool, execution: int) -> None:
    moved = call(
        database,
        lambda retoma: service.executions.cancel_execution(retoma, execution, actor=ACTOR),
    )
    _print_stand(execution, *moved, as_json=as_json)


def reprocess(
    database: str | None, as_json: bool, execution: int, *, error: str | None
) -> None:
    moved = call(
        database,
        lambda retoma: service.executions.reprocess_errors(
            retoma, execution, actor=ACTOR, code=error
        ),
    )
    _print_stand(execution, *moved, as_json=as_json)


def _print_stand(execution: int, stand: Stand, changed: bool, *, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "id": execution,
                "status": stand.status,
                "alterada": changed,
                "geracao": stand.generation,
                "reprocessados": stand.reprocessed,
            }
        )
        return
    line = speak("execution {execution} is {status}", execution=execution, status=stand.status)
    print(line if changed else f"{line}; {speak('nothing was to be changed')}")


# — one document —


def retry(database: str | None, as_json: bool, execution: int, code: str) -> None:
    async def go(retoma: Retoma) -> None:
        document = await service.documents.find_document(retoma, execution, code)
        await service.documents.retry_document(retoma, execution, document, actor=ACTOR)

    call(database, go)
    _print_document(database, execution, code, speak("is tried again"), as_json=as_json)


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

    async def go(retoma: Retoma) -> int:
        if error is not None:
            return await service.executions.skip_errors(
                retoma, execution, error, why, actor=ACTOR
            )
        one = await service.documents.find_document(retoma, execution, document or "")
        await service.documents.skip_document(retoma, execution, one, why, actor=ACTOR)
        return 1

    skipped = call(database, go)
    if as_json:
        print_json({"id": execution, "pulados": skipped})
    else:
        print(speak("documents skipped: {n}", n=skipped))


def review(database: str | None, as_json: bool, execution: int, code: str, label: str) -> None:
    async def go(retoma: Retoma) -> bool:
        document = await service.documents.find_document(retoma, execution, code)
        return await service.documents.review_document(
            retoma, execution, document, label, actor=ACTOR
        )

    right = call(database, go)
    done = speak("label confirmed") if right else speak("label corrected")
    _print_document(database, execution, code, done, as_json=as_json)


def original(database: str | None, execution: int, code: str, to: Path) -> None:
    async def go(retoma: Retoma) -> int:
        document = await service.documents.find_document(retoma, execution, code)
        _, size, pieces = await service.documents.open_original(retoma, execution, document)
        with to.open("xb") as file:
            async for piece in pieces:
                file.write(piece)
        return size

    try:
        size = call(database, go)
    except OSError as error:
        raise BadInput(
            say("{file} cannot be written: {why}", file=to, why=error.strerror or "")
        ) from None
    print(speak("{file}: {n} bytes", file=to, n=size))


def _print_document(
    database: str | None, execution: int, code: str, done: str, *, as_json: bool
) -> None:
    if not as_json:
        print(f"{clean(code)}: {done}")
        return

    async def go(retoma: Retoma) -> Result:
        document = await service.documents.find_document(retoma, execution, code)
        return await service.documents.get_document(retoma, execution, document)

    print_json(TypeAdapter(Result).dump_python(call(database, go), mode="json"))


# — what people said of labels —


def reviews(database: str | None, project: str, *, as_csv: bool) -> None:
    async def go(retoma: Retoma) -> None:
        write = (
            service.projects.write_reviews_csv
            if as_csv
            else service.projects.write_reviews_jsonl
        )
        async for line in write(retoma, await service.projects.find_project(retoma, project)):
            sys.stdout.write(line.decode())

    call(database, go)


def accuracy(database: str | None, as_json: bool, project: str) -> None:
    async def go(retoma: Retoma) -> Sequence[Accuracy]:
        found = await service.projects.find_project(retoma, project)
        return await service.projects.measure_accuracy(retoma, found)

    rows = [asdict(each) for each in call(database, go)]
    names = ("rotulo", "revisados", "corretos", "acerto", "outros")
    _print_table(
        names, rows, as_json, none=say("nobody has reviewed a label of this project yet")
    )


# — answering —


def _print_table(
    names: Sequence[str], rows: Sequence[Mapping[str, Any]], as_json: bool, *, none: Said
) -> None:
    if as_json:
        print_json(rows)
    elif not rows:
        print(tell(none))
    else:
        page = table(*names)
        for each in rows:
            page.add_row(*(shown_cell(each[name]) for name in names))
        console().print(page)
