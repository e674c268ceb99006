"""Names become addresses here, once for each connection."""

import asyncio
import socket
from collections.abc import Sequence
from typing import Protocol


class Resolver(Protocol):
    """Tells at which addresses a host is, as text; OSError where nobody knows."""

    async def resolve(self, host: str, port: int) -> Sequence[str]: ...


class SystemResolver:
    """As this machine does it: its hosts file, then its name servers."""

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return [str(address[0]) for *_, address in found]
