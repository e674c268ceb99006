"""What somebody says to an alert where it is shown: that they know, or that nobody need be told."""

from typing import Final

from fastapi import Request
from starlette.responses import Response

from retoma.library import Retoma
from retoma.services import alerts
from retoma.web.pages.kit import ALooker
from retoma.web.pages.route import did, form_of, page_router
from retoma.web.problems import Refusal
from retoma.web.sign_in import Operator
from retoma.web.wire import LARGEST
from retoma.words import Said, say

routes = page_router()

SILENCED: Final = "2h"  # by the button; the command line and the API take any length
BACK: Final = "/"


@routes.post("/alerts/{verb}")
async def answer(verb: str, actor: Operator, who: ALooker, request: Request) -> Response:
    given = (await form_of(request)).one("alert") or ""
    if not (given.isascii() and given.isdigit() and 0 < int(given[:20]) <= LARGEST):
        raise Refusal("bad_input", say("no alert is named; nothing was changed"))
    said = await _answered(who.house.retoma, verb, int(given), actor.name)
    return did(who, who.view.tell(said), BACK)


async def _answered(retoma: Retoma, verb: str, alert: int, actor: str) -> Said:
    match verb:
        case "acknowledge":
            known = await alerts.acknowledge_alert(retoma, alert, actor=actor)
            return say(
                "{rule}: {name} knows of it", rule=known.rule, name=known.acknowledged_by
            )
        case "silence":
            silent = await alerts.silence_alert(retoma, alert, SILENCED, actor=actor)
            return say(
                "{rule}: nobody is told of it for {lasting}", rule=silent.rule, lasting=SILENCED
            )
        case _:
            raise Refusal("not_found", say("there is nothing at this address"))
