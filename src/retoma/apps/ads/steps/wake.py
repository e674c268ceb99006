"""Sessions are opened by who queues, starts, activates or ends one; this is for all other ways.

A parked mission that is let go on by the verb of every job, or a dead one that is tried again, is
waiting work of which nobody of ours hears: without a session it would wait for the next of those.
"""

from retoma.apps.ads import store
from retoma.toolkit.tools import Tools


async def wake(tools: Tools) -> None:
    """Sessions for missions that wait while workers have none; most looks only read."""
    if await (await tools.retoma.database()).read(store.lacks_sessions):
        await tools.retoma.write(store.open_sessions)
