"""Hints go out beside whoever submits: bounded, never in the way, one warning while they do not."""

import os
import threading
from collections.abc import Iterator, Sequence

import pytest
from structlog.testing import capture_logs

from retoma.dispatch.sender import WAITING, Sender
from retoma.engine.store.hints import Hint

NOBODY_WAITS_LONGER = 60.0  # seconds


class Broker:
    """Takes what it is sent, unless it is down or does not answer."""

    def __init__(self) -> None:
        self.took: list[Hint] = []
        self.down = self.exits = False
        self.tries = 0
        self.answering = threading.Event()
        self.answering.set()
        self.asked = threading.Event()
        self._changed = threading.Condition()

    def send(self, hints: Sequence[Hint]) -> None:
        self.asked.set()
        self.answering.wait(NOBODY_WAITS_LONGER)
        with self._changed:
            self.tries += 1
            self._changed.notify_all()
            if self.exits:
                self.exits = False
                raise SystemExit("the library of the broker ends its thread")
            if self.down:
                raise ConnectionRefusedError("nobody is there")
            self.took += hints

    def wait(self, tries: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self.tries >= tries, NOBODY_WAITS_LONGER)


@pytest.fixture
def broker() -> Iterator[Broker]:
    broker = Broker()
    yield broker
    broker.answering.set()


def hints(take_warning: int, n: int) -> list[Hint]:
    return [Hint("work", take_warning + place) for place in range(n)]


def test_what_is_put_in_is_sent_in_order(broker):
    sender = Sender(broker.send)

    sender.put(hints(1, 3))
    sender.put(hints(4, 1200))
    sender.close()

    assert hints(1, 1203) == broker.took
    assert 0 == sender.dropped


def test_nobody_waits_for_a_broker_that_does_not_answer(broker):
    broker.answering.clear()
    sender = Sender(broker.send, last=0.01)

    sender.put(hints(1, 1))
    assert broker.asked.wait(NOBODY_WAITS_LONGER)
    for place in range(5):
        sender.put(hints(place, WAITING))  # returns although nothing is taken
    sender.close()

    assert [] == broker.took
    assert 4 * WAITING == sender.dropped


def test_a_dead_broker_costs_one_warning_and_what_was_sent_meanwhile(broker):
    broker.down = True
    sender = Sender(broker.send, rest=0.01)
    with capture_logs() as logs:
        for tries in range(1, 4):
            while broker.tries < tries:
                sender.put(hints(tries, 1))
        broker.down = False
        while not broker.took:
            sender.put(hints(9, 1))
        sender.close()

    events = [line["event"] for line in logs]
    assert ["hints.not_sent", "hints.sent_again"] == events
    assert "nobody is there" in logs[0]["error"]
    assert sender.dropped >= 3


def test_a_sender_that_was_closed_begins_again_when_it_is_asked(broker):
    sender = Sender(broker.send)
    sender.put(hints(1, 1))
    sender.close()
    sender.close()

    sender.put(hints(2, 1))
    sender.close()

    assert hints(1, 2) == broker.took


def test_a_broker_that_ends_its_thread_is_tried_again(broker):
    broker.exits = True
    sender = Sender(broker.send, rest=0.01)
    with capture_logs() as logs:
        sender.put(hints(1, 1))
        broker.wait(1)
        assert sender.flush(NOBODY_WAITS_LONGER)
        rested = threading.Event()  # never set
        while not broker.took:  # what comes while it rests is dropped
            sender.put(hints(2, 1))
            rested.wait(0.02)
        sender.close()

    assert ["hints.not_sent", "hints.sent_again"] == [line["event"] for line in logs]
    assert hints(2, 1) == broker.took[:1]


def test_hints_wait_for_a_thread_that_cannot_be_started_now(broker):
    sender = Sender(broker.send)
    usual = threading.stack_size(1 << 46)  # bytes: no system has them
    try:
        with capture_logs() as logs:
            sender.put(hints(1, 1))
            sender.put(hints(2, 1))
    finally:
        threading.stack_size(usual)
    sender.put(hints(3, 1))
    sender.close()

    assert hints(1, 3) == broker.took
    assert ["hints.not_sent"] == [line["event"] for line in logs]


def test_a_forked_process_has_a_thread_of_its_own(broker):
    out, in_ = os.pipe()

    def send(sent: Sequence[Hint]) -> None:
        os.write(in_, b"%d" % sent[0].job)
        broker.send(sent)

    sender = Sender(send)
    sender.put(hints(1, 1))
    broker.wait(1)
    sender._pid = -1  # as in a child: the thread and the lock are its parent's

    sender.put(hints(2, 1))
    broker.wait(2)
    sender.close()

    assert b"12" == os.read(out, 10)
    os.close(out)
    os.close(in_)
