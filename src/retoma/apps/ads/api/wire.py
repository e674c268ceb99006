"""The routes of this API, and what all of them say on the wire."""

from typing import Annotated

from fastapi import Path

from retoma.web import router
from retoma.web.wire import Shown

routes = router("ads")

MissionId = Annotated[
    str, Path(min_length=1, max_length=100, description="The id of a mission.")
]
ThingId = Annotated[
    str, Path(alias="id", min_length=1, max_length=100, description="Of one of them.")
]


class Made(Shown):
    """The ids of what was made."""

    ids: list[str]
