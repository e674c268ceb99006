"""The router of this API, and the parameters that its routes share."""

from typing import Annotated

from fastapi import Path

from retoma.access import Person
from retoma.apps.embeddings.model import Origin
from retoma.web import router
from retoma.web.visit import Visit
from retoma.web.wire import LARGEST

routes = router("embeddings")

CollectionName = Annotated[str, Path(max_length=100, description="The name of a collection.")]
DocumentId = Annotated[int, Path(ge=1, le=LARGEST, description="The number of a document.")]
JobId = Annotated[int, Path(ge=1, le=LARGEST, description="The number of a job.")]


def origin_of(person: Person, visit: Visit) -> Origin:
    """Let the jobs of a request carry its correlation and trace on."""
    return Origin(
        actor=person.name, correlation=visit.correlation, traceparent=visit.traceparent
    )
