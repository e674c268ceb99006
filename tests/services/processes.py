"""What every server of the tests needs: time, and an end with the process that started it."""

import ctypes
import signal
import sys
import threading
from collections.abc import Callable

HOST = "127.0.0.1"
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
