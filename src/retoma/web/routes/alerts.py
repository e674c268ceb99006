"""`/api/alerts`: what somebody should know of, and who knows."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import Path, Query
from pydantic import Field

from retoma.services import alerts
from retoma.services.alerts import Alert, Rule, Severity, sentence
from retoma.web.cursor import Cursor
from retoma.web.house import AHouse
from retoma.web.route import router
from retoma.web.sign_in import Operator, Viewer
from retoma.web.wire import LARGEST, Body, Limit, NextPage, PageOf, Shown

routes = router("alerts")

AlertId = Annotated[
    int, Path(ge=1, le=LARGEST, description="The id of an alert.", examples=[1])
]
InForce = Annotated[bool, Query(description="Only those that are not closed.")]


class Silence(Body):
    """For how long nobody is told of it."""

    lasting: str = Field(
        min_length=1, max_length=20, description="A length of time.", examples=["2h"]
    )


class AlertShown(Shown):
    """One alert as it stands."""

    id: int
    rule: Rule
    subject: str
    severity: Severity
    text: str
    details: dict[str, Any]
    since: datetime
    closed_at: datetime | None
    acknowledged_at: datetime | None
    acknowledged_by: str | None
    silenced_until: datetime | None
    silenced_by: str | None
    silent: bool


def _shown(alert: Alert) -> AlertShown:
    fields = {name: getattr(alert, name) for name in Alert.__dataclass_fields__}
    return AlertShown(text=str(sentence(alert)), **fields)


@routes.get("/api/alerts")
async def list_alerts(
    _: Viewer,
    house: AHouse,
    in_force: InForce = False,
    cursor: NextPage = None,
    limit: Limit = 50,
) -> PageOf[AlertShown]:
    """What is in force and what was, newest first."""
    stamp = Cursor("alerts", in_force)
    [before] = stamp.read(cursor, int) or [None]
    seen = await alerts.list_alerts(
        house.retoma, every=not in_force, before=before, limit=limit
    )
    shown = [_shown(each) for each in seen]
    return PageOf(items=shown, next=stamp.write(shown[-1].id if len(shown) == limit else None))


@routes.post("/api/alerts/{alert}/acknowledge")
async def acknowledge_alert(alert: AlertId, who: Operator, house: AHouse) -> AlertShown:
    """Say that you know of it; the first who says so stays."""
    return _shown(await alerts.acknowledge_alert(house.retoma, alert, actor=who.name))


@routes.post("/api/alerts/{alert}/silence")
async def silence_alert(
    alert: AlertId, body: Silence, who: Operator, house: AHouse
) -> AlertShown:
    """Nobody is told of it for so long, nor of the next one of its rule and subject."""
    return _shown(await alerts.silence_alert(house.retoma, alert, body.lasting, actor=who.name))
