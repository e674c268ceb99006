"""What one test made known is nothing to the next."""

import pytest

from retoma.secret import known


@pytest.fixture(autouse=True)
def _forgetful():
    yield
    for value in list(known._values):
        known._forget(value)
    assert not known._index
