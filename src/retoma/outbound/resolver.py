"""Resolve host names to IP addresses, once for each connection."""

import asyncio
import socket
from collections.abc import Sequence
from typing import Protocol


class Resolver(Protocol):
    """Resolves a host to addresses as text; raises OSError if the host is unknown."""

    async def resolve(self, host: str, port: int) -> Sequence[str]: ...


class SystemResolver:
    """Resolves with the operating system: its hosts file, then its name servers."""

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        loop = asyncio.get_running_loop()
        entries = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return [str(address[0]) for *_, address in entries]
