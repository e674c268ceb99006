"""Projects: a closed set of labels, and how documents are classified by it."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import Query, Response

from retoma.apps.documents import service
from retoma.apps.documents.api.wire import (
    AccuracyShown,
    ProjectId,
    ProjectShown,
    routes,
    show_project,
)
from retoma.apps.documents.bodies import ProjectSaid
from retoma.apps.documents.service.projects import Accuracy
from retoma.web import AHouse, Operator, Viewer
from retoma.web.cursor import Cursor
from retoma.web.files import ANY_FILE, saved_stream
from retoma.web.replay import asked
from retoma.web.wire import Limit, NextPage, Once, PageOf


@routes.get("/classificador/projetos")
async def list_projects(
    _: Viewer, house: AHouse, cursor: NextPage = None, limit: Limit = 50
) -> PageOf[ProjectShown]:
    """Projects, the newest first."""
    stamp = Cursor("projetos", None)
    [before] = stamp.read(cursor, int) or [None]
    page = await service.projects.list_projects(house.retoma, before=before, limit=limit)
    return PageOf(
        items=[show_project(each) for each in page.items], next=stamp.write(page.next)
    )


@routes.post(
    "/classificador/projetos", status_code=201, responses={200: {"model": ProjectShown}}
)
async def add_project(
    body: ProjectSaid, who: Operator, house: AHouse, response: Response, key: Once = None
) -> ProjectShown:
    """A project needs one label at least."""
    once = asked(key, who, "add_project", body)
    project, added = await service.projects.add_project(
        house.retoma, body.nome, body.rules(), actor=who.name, once=once
    )
    response.status_code = 201 if added else 200
    return show_project(await service.projects.get_project(house.retoma, project))


@routes.get("/classificador/projetos/{project}")
async def get_project(project: ProjectId, _: Viewer, house: AHouse) -> ProjectShown:
    """One project."""
    return show_project(await service.projects.get_project(house.retoma, project))


@routes.put("/classificador/projetos/{project}")
async def change_project(
    project: ProjectId, body: ProjectSaid, who: Operator, house: AHouse
) -> ProjectShown:
    """For executions to come: those that are there keep the rules they began with."""
    await service.projects.change_project(
        house.retoma, project, body.nome, body.rules(), actor=who.name
    )
    return show_project(await service.projects.get_project(house.retoma, project))


@routes.delete("/classificador/projetos/{project}", status_code=204)
async def remove_project(project: ProjectId, who: Operator, house: AHouse) -> None:
    """No more executions of it; what was classified stays."""
    await service.projects.remove_project(house.retoma, project, actor=who.name)


@routes.get("/classificador/projetos/{project}/acerto", response_model=list[AccuracyShown])
async def get_accuracy(project: ProjectId, _: Viewer, house: AHouse) -> Sequence[Accuracy]:
    """By the label that the model gave: how many people reviewed, and how many were right."""
    return await service.projects.measure_accuracy(house.retoma, project)


@routes.get(
    "/classificador/projetos/{project}/revisoes",
    response_class=Response,
    responses=ANY_FILE,
)
async def export_reviews(
    project: ProjectId,
    _: Viewer,
    house: AHouse,
    as_: Annotated[str, Query(alias="format", pattern="^(jsonl|csv)$")] = "jsonl",
) -> Response:
    """What people reviewed, as a labelled set: JSON Lines with the text of each, or a table without."""
    await service.projects.get_project(house.retoma, project)
    write = (
        service.projects.write_reviews_csv
        if as_ == "csv"
        else service.projects.write_reviews_jsonl
    )
    return saved_stream(f"revisoes-{project}.{as_}", None, write(house.retoma, project))
