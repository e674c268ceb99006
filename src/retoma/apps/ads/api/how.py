"""What all the rooms of this API need."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, TypeVar

from retoma.apps.ads import store
from retoma.db import Row, Transaction
from retoma.outbound import Policy
from retoma.toolkit.tools import Tools
from retoma.web import House, router
from retoma.web.wire import Shown

T = TypeVar("T")
routes = router("ads")


class Made(Shown):
    """The ids of what was made."""

    ids: list[str]


def tools_of(house: House) -> Tools:
    tools: Tools = house.retoma.tools["ads"]
    return tools


async def secrets_of(house: House, actor: str) -> store.Secrets:
    return await secrets_by(tools_of(house), actor)


async def secrets_by(tools: Tools, actor: str) -> store.Secrets:
    return store.Secrets(await (await tools.vault()).sealer(), actor)


async def may_go(tools: Tools, purpose: str, url: str) -> None:
    """An address nobody may call is refused when it is saved, and again whenever it is called."""
    await tools.out.check(Policy.toward(purpose, url), url)


async def may_stand(tools: Tools, host: str, port: int | None) -> None:
    """A proxy where nobody may go is refused when it is saved; its name may be known only to those
    who go out by it, so that is looked up when the proxy is tested."""
    at = f"[{host}]" if ":" in host else host
    url = f"http://{at}" if port is None else f"http://{at}:{port}"
    await tools.out.check(Policy.toward("ads proxy", url), url, names=False)


async def read(house: House | Tools, fn: Callable[[Transaction], T]) -> T:
    return await (await house.retoma.database()).read(fn)


def named(names: Iterable[str], row: Row) -> dict[str, Any]:
    return dict(zip(names, row, strict=True))


def time_told(at: Any) -> datetime | None:
    return None if at is None else at_told(at)


def at_told(at: Any) -> datetime:
    """A time, as either database gives it; a view of SQLite's tells it as text."""
    if isinstance(at, datetime):
        return at
    if isinstance(at, str):
        return datetime.fromisoformat(at).replace(tzinfo=UTC)
    return datetime.fromtimestamp(at / store.MICROSECONDS, UTC)
