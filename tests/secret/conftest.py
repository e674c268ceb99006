"""What one test made known is nothing to the next."""

import pytest


@pytest.fixture(autouse=True)
def _forgetful(forgetful: None) -> None:
    """All of them are."""
