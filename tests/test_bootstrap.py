"""What lives is built from settings in one place."""

from random import Random

from retoma import settings
from retoma.bootstrap import build_retoma


def test_a_retoma_is_built_on_the_database_the_settings_name():
    app = build_retoma(settings.read(database_url="sqlite:///there.db"), rng=Random(7))

    assert "sqlite:///there.db" == app.url
