"""The audit reports of the document (§10.3): failures, workers, proxies."""

from datetime import datetime

from retoma.apps.ads.service.connections import read
from retoma.apps.ads.store import reports
from retoma.library import Retoma


async def list_failures(
    retoma: Retoma, hours: int, code: str | None = None
) -> list[reports.Failure]:
    """List the missions that failed in the last hours, the newest first; with `code` only of that error."""
    return await read(retoma, lambda tx: reports.failures(tx, hours * reports.HOUR, code))


async def list_worker_results(retoma: Retoma, days: int) -> list[reports.Performance]:
    """List what each worker completed in the last days."""
    return await read(retoma, lambda tx: reports.performance(tx, days * reports.DAY))


async def list_proxy_failures(retoma: Retoma, days: int) -> list[reports.Trouble]:
    """List how each proxy failed in the last days, the worst first."""
    return await read(retoma, lambda tx: reports.proxies(tx, days * reports.DAY))


async def get_database_time(retoma: Retoma) -> datetime:
    return await read(retoma, reports.now)
