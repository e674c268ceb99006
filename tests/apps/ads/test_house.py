"""The ads application in the house: named in the settings, it is served and run."""

import httpx2
import pytest

from retoma import Retoma, settings
from retoma.bootstrap import install_applications
from retoma.engine.rules.errors import BadInput
from tests import nursery
from tests.cli.conftest import command
from tests.web.aids import ROOT_KEY
from tests.web.test_serve import listening, process

KEYED = {"x-api-key": ROOT_KEY}


def test_named_in_the_settings_it_is_served(database_url, tmp_path):
    with process(tmp_path, database_url, "--no-link", RETOMA_APPLICATIONS="ads") as server:
        listening(server)
        found = httpx2.get(f"{server.origin}/api/orchestrator", headers=KEYED, timeout=60)
        knobs = httpx2.get(f"{server.origin}/api/settings", headers=KEYED, timeout=60).json()

    assert (200, "stopped") == (found.status_code, found.json()["wish"])
    assert 5 == next(each["value"] for each in knobs if each["name"] == "ads.session_limit")


async def test_one_that_nobody_knows_is_refused(database_url):
    async with Retoma(database_url) as app:
        with pytest.raises(BadInput, match="no application 'adds': one of ads"):
            install_applications(app, settings.read(applications="adds"))


def test_a_runner_without_anything_to_run_says_so(tmp_path):
    told = nursery.run(
        command("runner"), cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert 2 == told.returncode
    assert "RETOMA_APPLICATIONS" in told.stderr
