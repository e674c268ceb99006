"""The page of the ads API is what the API says of itself.

Also a program: `python -m tests.apps.ads.test_rest_page` writes the page anew.
"""

from retoma.apps.ads.api import routes
from retoma.web import reference
from tests.house.files import ROOT
from tests.web.test_sign_in import site_with

PAGE = ROOT / "docs" / "reference" / "rest-ads.md"
HEAD = """# The REST API of the ads orchestrator

`retoma serve` with `RETOMA_APPLICATIONS=ads` answers these requests too. Codes, pages of lists and keys are as in [the REST API](rest.md).
"""


def generated() -> str:
    told = site_with(routes).openapi()
    own = {route.path for route in routes.routes}  # type: ignore[attr-defined]
    paths = {path: item for path, item in told["paths"].items() if path in own}
    return reference.markdown({**told, "paths": paths}, HEAD)


def test_every_request_of_ads_is_on_its_page():
    assert generated() == PAGE.read_text(encoding="utf-8")
    assert "POST /api/missions/queue" in PAGE.read_text(encoding="utf-8")


if __name__ == "__main__":
    PAGE.write_text(generated(), encoding="utf-8")
