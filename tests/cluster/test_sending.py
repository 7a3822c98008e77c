"""Requests to one slot: those that wait for it go together, and each has its own answer."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from twinnet.cluster.sending import MOST_TOGETHER, Request, SlotSender
from twinnet.study.runner import Interrupted, PlaceLost, Progress

_LIMIT_S = 20.0


class Slot:
    """A slot that answers with what it was asked, and waits before it answers the first time."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.has_begun, self.go_on = threading.Event(), threading.Event()
        self.lost: set[str] = set()

    def send(self, requests: Sequence[Request]) -> list[bytes]:
        self.asked.append([one.run_id for one in requests])
        self.has_begun.set()
        assert self.go_on.wait(_LIMIT_S)
        if self.lost & set(self.asked[-1]):
            raise PlaceLost
        return [one.content for one in requests]


def request(name: str, with_study: bool = False, alone: bool = False, stop: threading.Event | None = None) -> Request:
    return Request(name, name.encode(), with_study, alone, Progress(stop or threading.Event()))


def asked_together(slot: Slot, requests: Sequence[Request]) -> list[bytes | BaseException]:
    """The answers to `requests`, all but the first of which come while the slot answers that one."""
    sender = SlotSender(slot.send)
    with ThreadPoolExecutor(len(requests)) as pool:
        going = [pool.submit(sender.ask, requests[0])]
        assert slot.has_begun.wait(_LIMIT_S)
        for one in requests[1:]:
            going.append(pool.submit(sender.ask, one))
            # They come in this order.
            time.sleep(0.02)
        slot.go_on.set()
        answers = [one.exception(_LIMIT_S) or one.result() for one in going]
    sender.close()
    return answers


def test_requests_that_wait_go_together_and_each_has_its_own_answer() -> None:
    slot = Slot()
    names = [f"run-{number}" for number in range(5)]
    assert asked_together(slot, [request(name) for name in names]) == [name.encode() for name in names]
    assert slot.asked == [names[:1], names[1:]]


def test_no_more_than_so_many_go_together() -> None:
    slot = Slot()
    names = [f"run-{number}" for number in range(MOST_TOGETHER + 3)]
    asked_together(slot, [request(name) for name in names])
    assert [len(one) for one in slot.asked] == [1, MOST_TOGETHER, 2]


def test_what_may_have_ended_a_worker_and_what_needs_the_study_go_apart() -> None:
    slot = Slot()
    requests = [request("a"), request("b"), request("c", alone=True), request("d"), request("e", with_study=True)]
    assert asked_together(slot, requests) == [b"a", b"b", b"c", b"d", b"e"]
    assert slot.asked == [["a"], ["b"], ["c"], ["d"], ["e"]]


def test_all_that_went_together_to_a_slot_that_has_gone_are_lost() -> None:
    slot = Slot()
    slot.lost = {"c"}
    answers = asked_together(slot, [request(name) for name in "abcd"])
    assert answers[0] == b"a"
    assert all(isinstance(one, PlaceLost) for one in answers[1:])


def test_what_is_to_stop_is_not_sent() -> None:
    slot, stop = Slot(), threading.Event()
    sender = SlotSender(slot.send)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(sender.ask, request("a"))
        assert slot.has_begun.wait(_LIMIT_S)
        second = pool.submit(sender.ask, request("b", stop=stop))
        time.sleep(0.05)
        stop.set()
        with pytest.raises(Interrupted):
            second.result(_LIMIT_S)
        slot.go_on.set()
        assert first.result(_LIMIT_S) == b"a"
    sender.close()
    assert slot.asked == [["a"]]
