"""The owner's part of control channels: what it does when the lab does not take a connection."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from twinnet.control import Dialling
from twinnet.control.owner_sockets import Admitted
from twinnet.errors import BadValue, LabClosed, LabError


class Pending:
    def __init__(self, reply: threading.Event) -> None:
        self._reply = reply

    def result(self) -> dict[str, Any]:
        assert self._reply.wait(20)
        return {"ended": "the connection was closed"}


class FullLab:
    """A lab that refuses the first connections, as one without a free descriptor does."""

    def __init__(self, refusals: Sequence[Exception]) -> None:
        self.refusals = list(refusals)
        self.attached = 0
        self.closed = False
        self.over = threading.Event()

    def controller_attach_later(self, *, descriptors: Sequence[int], **fields: Any) -> Pending:
        assert len(descriptors) == 1 and fields["switch"] == "s1"
        if self.refusals:
            raise self.refusals.pop(0)
        self.attached += 1
        return Pending(self.over)


def eventually(is_so: Callable[[], bool]) -> bool:
    deadline_s = time.monotonic() + 15
    while not is_so():
        if time.monotonic() > deadline_s:
            return False
        time.sleep(0.01)
    return True


def dialling(lab: FullLab, port: int) -> tuple[Dialling, str]:
    target = f"tcp:127.0.0.1:{port}"
    return Dialling(lab, [{"name": "s1", "kind": "switch", "controllers": [target]}]), target  # pyright: ignore


@pytest.fixture
def controller() -> Any:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def test_a_connection_that_the_lab_cannot_take_is_told_and_made_again(controller: socket.socket) -> None:
    lab = FullLab([LabError("the lab has no descriptor left", "raise the limit of open files"), OSError(24, "none")])
    connections, target = dialling(lab, controller.getsockname()[1])
    assert eventually(lambda: "no descriptor left" in (connections.troubles.get(("s1", target), "")))
    assert eventually(lambda: lab.attached == 1)
    assert ("s1", target) not in connections.troubles
    connections.end()
    lab.over.set()


def test_no_connection_is_made_for_a_lab_that_has_ended(controller: socket.socket) -> None:
    lab = FullLab([LabClosed("the lab has ended", "start a new one")] * 9)
    lab.closed = True
    connections, _ = dialling(lab, controller.getsockname()[1])
    assert eventually(lambda: not any(thread.name == "twinnet-control" for thread in threading.enumerate()))
    assert len(lab.refusals) == 8
    connections.end()


def test_of_more_tools_than_may_be_the_oldest_ends_and_who_has_left_counts_no_more() -> None:
    admitted, pairs = Admitted(2), [socket.socketpair() for _ in range(4)]
    with contextlib.ExitStack() as kept:
        for pair in pairs:
            for sock in pair:
                kept.enter_context(sock).settimeout(5)
        with admitted.one(pairs[0][0]), admitted.one(pairs[1][0]):
            with admitted.one(pairs[2][0]):
                assert pairs[0][1].recv(1) == b""
                # The other two go on.
                for mine, theirs in pairs[1:3]:
                    mine.sendall(b"x")
                    assert theirs.recv(1) == b"x"
            with admitted.one(pairs[3][0]):
                pairs[1][0].sendall(b"y")
                assert pairs[1][1].recv(1) == b"y"


def test_a_switch_that_is_given_another_controller_leaves_the_first_and_dials_it_no_more() -> None:
    lab = FullLab([])
    with socket.create_server(("127.0.0.1", 0)) as first, socket.create_server(("127.0.0.1", 0)) as second:
        dials, target = dialling(lab, first.getsockname()[1])
        connected, _ = first.accept()
        with connected:
            assert eventually(lambda: lab.attached == 1)
            # One that stays is left alone.
            other = f"tcp:127.0.0.1:{second.getsockname()[1]}"
            dials.dial("s1", [target, other])
            assert eventually(lambda: lab.attached == 2)
            dials.dial("s1", [other])
            connected.settimeout(15)
            assert connected.recv(1) == b""
        lab.over.set()
        first.settimeout(1.5)
        with pytest.raises(TimeoutError):
            # It would have been dialled again after a second.
            first.accept()
        assert (("s1", target) in dials.troubles, lab.attached >= 2) == (False, True)
        dials.end()


def test_an_address_that_is_none_leaves_a_switch_with_the_controllers_that_it_has() -> None:
    lab = FullLab([])
    with socket.create_server(("127.0.0.1", 0)) as server:
        dials, target = dialling(lab, server.getsockname()[1])
        assert eventually(lambda: lab.attached == 1)
        for wrong in ("nonsense", "ssl:127.0.0.1:6653"):
            with pytest.raises(BadValue):
                dials.dial("s1", [wrong, target])
        connected, _ = server.accept()
        with connected, pytest.raises(BlockingIOError):
            connected.setblocking(False)
            connected.recv(1)
        lab.over.set()
        dials.end()
