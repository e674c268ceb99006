"""Alerts: what somebody should know of, and who knows."""

from retoma.engine.ops.alerts import sentence
from retoma.engine.store.alerts import Alert, Rule, Severity
from retoma.library import Retoma

__all__ = ["Alert", "Rule", "Severity", "sentence"]


async def list_alerts(
    app: Retoma, *, every: bool = False, before: int | None = None, limit: int = 50
) -> list[Alert]:
    """Alerts in force, newest first."""
    return await app.alerts.list(in_force=not every, before=before, limit=limit)


async def acknowledge_alert(app: Retoma, alert: int, *, actor: str) -> Alert:
    """Say that you know of it; the first who says so stays."""
    return await app.alerts.acknowledge(alert, actor=actor)


async def silence_alert(app: Retoma, alert: int, lasting: str, *, actor: str) -> Alert:
    """Nobody is told of it for so long, nor of the next one of its rule and subject."""
    return await app.alerts.silence(alert, lasting, actor=actor)
