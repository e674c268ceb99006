"""What every server of the tests needs: a free port, and an end with the process that started it."""

import ctypes
import signal
import socket
import sys
import threading
from collections.abc import Callable

START_SECONDS = 30.0  # a slow disk recovers from an immediate stop in a few
STOP_SECONDS = 30.0


def die_with_parent() -> Callable[[], None] | None:
    """For the child between fork and exec: the kernel ends it if its parent is killed. Linux only.

    The kernel watches the thread that forked, not the process, so only the main one will do.
    """
    if sys.platform != "linux" or threading.current_thread() is not threading.main_thread():
        return None
    prctl, set_death_signal = ctypes.CDLL(None).prctl, 1
    return lambda: prctl(set_death_signal, signal.SIGQUIT)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
