"""The stories of chaos for `retoma runner --app tests.chaos.app:app`."""

from tests.chaos import jobs

app = jobs.from_environment()
