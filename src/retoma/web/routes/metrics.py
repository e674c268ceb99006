"""`/metrics`: for Prometheus, and for whoever else asks again and again."""

from typing import Any

from fastapi import Response

from retoma.web.house import AHouse
from retoma.web.metrics import MEDIA, exposition
from retoma.web.route import router
from retoma.web.sign_in import ViewerFromAfar

routes = router("metrics")

TEXT: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Prometheus' text format.",
        "content": {"text/plain": {"schema": {"type": "string"}}},
    }
}


@routes.get("/metrics", response_class=Response, responses=TEXT)
async def metrics(_: ViewerFromAfar, house: AHouse) -> Response:
    """Everything that is counted. Where only this machine can reach us nobody need sign in."""
    meter = await house.retoma.insights.metrics()
    database = await house.retoma.database()
    return Response(exposition(meter, database.dialect), headers={"Content-Type": MEDIA})
