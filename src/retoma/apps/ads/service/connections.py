"""What the verbs of this application reach: its tools, its secrets, a reading transaction."""

from collections.abc import Callable
from typing import TypeVar

from retoma.apps.ads import store
from retoma.db import Transaction
from retoma.library import Retoma
from retoma.toolkit.tools import Tools

T = TypeVar("T")


def tools_of(retoma: Retoma) -> Tools:
    tools: Tools = retoma.tools["ads"]
    return tools


async def secrets_for(retoma: Retoma, actor: str) -> store.Secrets:
    """The vault of this application, opened to write secrets in the name of an actor."""
    return store.Secrets(await (await tools_of(retoma).vault()).sealer(), actor)


async def read(retoma: Retoma, fn: Callable[[Transaction], T]) -> T:
    return await (await retoma.database()).read(fn)
