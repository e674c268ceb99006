"""A runner as a program: `python -m tests.chaos.run_runner '{"slots": 20}'`. SIGTERM lets it leave."""

import asyncio
import json
import logging
import signal
import sys
from typing import Any

import structlog

from tests.chaos import jobs


async def main(knobs: dict[str, Any]) -> None:
    app = jobs.from_environment()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, app.stop)
    async with app:
        await app.run(**knobs)


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.INFO))
    asyncio.run(main(json.loads(sys.argv[1])))
