"""What a form says before work is started: whether the services of an application take our keys and know our models."""

from starlette.responses import HTMLResponse, Response

from retoma.engine.errors import NotFound
from retoma.manifest import Standing, load
from retoma.web.pages.kit import ALooker
from retoma.web.pages.route import page_router
from retoma.web.sign_in import Operator
from retoma.words import say

routes = page_router()


@routes.get("/checks/{application}")
async def show(_: Operator, who: ALooker, application: str) -> Response:
    """Nothing where all is well."""
    found = next((each for each in who.house.applications if each.name == application), None)
    if found is None or found.checks is None:
        raise NotFound(say("there is nothing to check for {name!r}", name=application[:100]))
    tools = who.house.retoma.tools[application]
    checks = [
        each for each in await load(found.checks)(tools) if each.standing is not Standing.READY
    ]
    html = who.pages.render("checks.html", who.view, checks=checks)
    return HTMLResponse(html, headers={"Cache-Control": "no-store"})
