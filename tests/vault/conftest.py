"""Key files of these tests lie where the test is, never in anybody's home."""

from pathlib import Path

import pytest

from tests.secret.conftest import _forgetful

__all__ = ["_forgetful"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("RETOMA_SECRET_KEY", raising=False)
    return tmp_path
