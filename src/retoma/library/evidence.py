"""`app.evidence`: what attempts have attached."""

import re
from dataclasses import dataclass
from typing import cast

from retoma.engine import query
from retoma.engine.rules.errors import BadInput
from retoma.engine.writing.evidence import Keeper
from retoma.library.checks import check_id
from retoma.library.connection import Connection
from retoma.words import say

DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class EvidenceFiles:
    """Pages, pictures and answers that attempts have kept to be looked at."""

    _connection: Connection
    _keeper: Keeper

    async def list(self, job: int) -> list[query.EvidenceSeen]:
        """What the attempts of a job have attached, the oldest first."""
        check_id("job", job)
        return await self._connection.read(lambda tx: query.job_evidence(tx, job))

    async def read(self, sha256: str) -> bytes:
        """The bytes of a piece of evidence, wherever they are stored."""
        if not isinstance(cast("object", sha256), str) or not DIGEST.fullmatch(sha256):
            raise BadInput(
                say(
                    "evidence is asked for by its sha256, 64 hex digits, not {sha256!r}",
                    sha256=sha256,
                )
            )
        return await self._keeper.get(await self._connection.ready(), sha256)
