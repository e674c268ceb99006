"""`retoma serve` as it is, but for the requests a second that it answers: `python -m tests.web.unlimited`.

Schemathesis asks faster than one client may; a 429 would hide what a request is answered with.
"""

from retoma import logs, settings
from retoma.bootstrap import build_retoma, install_applications
from retoma.cli.runner import run_on_the_quickest_loop
from retoma.cli.serve import prepare
from retoma.console.processes import on_stop
from tests.web.aids import PATIENT


async def serve() -> None:
    chosen = settings.read(serve_port=0)
    logs.configure(chosen.log_level)
    async with build_retoma(chosen) as app:
        server = await prepare(app, chosen, install_applications(app, chosen), bound=PATIENT)
        on_stop(server.stop)
        await server.run(lambda: print(f"listens on {server.origin}", flush=True))


if __name__ == "__main__":
    run_on_the_quickest_loop(serve())
