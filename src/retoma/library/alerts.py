"""`app.alerts`: what is wrong, and who knows of it."""

from dataclasses import dataclass
from typing import Any

from retoma.engine import query, store
from retoma.engine.ops.alerts import silence
from retoma.engine.run.submission import ACTOR
from retoma.engine.store.alerts import Alert
from retoma.library.checks import check_id
from retoma.library.connection import Connection


@dataclass(frozen=True, slots=True)
class Alerts:
    """Alerts of the engine and of the applications."""

    _connection: Connection

    async def list(
        self, *, in_force: bool = True, before: int | None = None, limit: int = 50
    ) -> list[Alert]:
        """Newest first: those in force, or all there ever were."""
        most = query.page_of(limit, "alerts")
        return await self._connection.read(
            lambda tx: store.alerts.list_alerts(
                tx, in_force=in_force, before=before, limit=most
            )
        )

    async def get(self, alert: int) -> Alert:
        check_id("alert", alert)
        return await self._connection.read(lambda tx: store.alerts.get_alert(tx, alert))

    async def acknowledge(self, alert: int, *, actor: str = ACTOR) -> Alert:
        """Say that somebody knows of it; the first who says so stays."""
        check_id("alert", alert)
        return await self._connection.write(
            lambda tx: store.alerts.acknowledge_alert(tx, alert, actor=actor),
            verb="acknowledge_alert",
        )

    async def silence(self, alert: int, lasting: Any, *, actor: str = ACTOR) -> Alert:
        """Notify nobody of it for so long, nor of the next alert of its rule and subject."""
        check_id("alert", alert)
        length = silence(lasting)
        return await self._connection.write(
            lambda tx: store.alerts.silence_alert(tx, alert, length, actor=actor),
            verb="silence_alert",
        )
