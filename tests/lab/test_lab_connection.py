"""The client's end of the lab protocol, against a lab that plays a script."""

from __future__ import annotations

import json
import socket
import threading

import pytest
from fake_lab import FakeLab, Refusal
from twinnet.errors import LabClosed, LabError, NotAvailable
from twinnet.lab_process.connection import connect


def test_replies_in_another_order_reach_their_askers(fake: FakeLab) -> None:
    connection = fake.lab.connection
    first = connection.submit("hold", {"what": 1})
    second = connection.submit("hold", {"what": 2})
    connection.now()
    for request in reversed(fake.held):
        fake.reply(request, request["what"])
    assert (first.result(5), second.result(5)) == (1, 2)


def test_a_refusal_keeps_its_name_and_remedy(fake: FakeLab) -> None:
    def refuse(_: object) -> None:
        raise Refusal("UnknownHost", "there is no host x", "use h1")

    fake.answers["now"] = refuse
    with pytest.raises(LabError) as caught:
        fake.lab.now()
    assert (caught.value.name, str(caught.value)) == ("UnknownHost", "there is no host x (use h1)")


def test_large_messages_travel_both_ways(fake: FakeLab) -> None:
    fake.answers["echo"] = lambda request: request["text"]
    text = "frame " * 100_000
    assert fake.lab.connection.answer("echo", {"text": text}) == text


def test_many_threads_may_ask_at_once(fake: FakeLab) -> None:
    fake.answers["echo"] = lambda request: request["number"]
    answers: dict[int, int] = {}

    def ask(number: int) -> None:
        answers[number] = fake.lab.connection.answer("echo", {"number": number})

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {n: n for n in range(32)}


def test_whoever_waits_is_told_when_the_lab_ends(fake: FakeLab) -> None:
    pending = fake.lab.connection.submit("hold", {})
    fake.far.shutdown(socket.SHUT_RDWR)
    with pytest.raises(LabClosed, match="has ended"):
        pending.result(5)
    with pytest.raises(LabClosed):
        fake.lab.now()


def test_a_lab_that_turns_a_client_away_is_heard(fake: FakeLab) -> None:
    pending = fake.lab.connection.submit("hold", {})
    refusal = {"name": "TooManyClients", "message": "the lab serves 64 clients already", "remedy": "end one"}
    fake.far.send(json.dumps({"id": None, "error": refusal}).encode())
    fake.far.shutdown(socket.SHUT_RDWR)
    with pytest.raises(LabError, match="64 clients already") as caught:
        pending.result(5)
    assert caught.value.name == "TooManyClients"


def test_an_unknown_lab_is_named() -> None:
    with pytest.raises(NotAvailable, match="no lab 'absent-lab' of this user"):
        connect("absent-lab")
