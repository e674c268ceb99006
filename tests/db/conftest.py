"""A database of each make, opened and let go; a proxy before PostgreSQL's."""

from collections.abc import Callable, Iterator

import pytest

from retoma import db
from tests.databases import Rooms
from tests.proxy import Proxy

Opener = Callable[[str], db.Database]


@pytest.fixture
def rooms() -> Rooms:
    """None: here the schema is what is tested."""
    return ()


@pytest.fixture
def open_database() -> Iterator[Opener]:
    """Open as many as a test needs; all are closed after it."""
    opened: list[db.Database] = []

    def open_(url: str) -> db.Database:
        opened.append(db.open(url))
        return opened[-1]

    yield open_
    for each in reversed(opened):
        each.close()


@pytest.fixture
def database(database_url: str, open_database: Opener) -> db.Database:
    return open_database(database_url)


@pytest.fixture
def postgres(postgres_url: str, open_database: Opener) -> db.Database:
    return open_database(postgres_url)


@pytest.fixture
def proxy(postgres_url: str) -> Iterator[Proxy]:
    with Proxy(postgres_url) as standing:
        yield standing
