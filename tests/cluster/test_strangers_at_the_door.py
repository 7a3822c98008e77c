"""Those who connect to a scheduler and show no certificate: they have a limited time, and are few at once."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from campaign import Told, environment, twinnet_command
from twinnet.cluster.address import Address, parse_address
from twinnet.cluster.certificates import Certificates, new_certificates
from twinnet.cluster.contact import check_scheduler
from twinnet.cluster.doorkeeper import Doorkeeper

pytest.importorskip("distributed", reason="distributed is not installed: pip install .[dev]")


class Stream:
    """A connection that shows a certificate when it is told to."""

    def __init__(self) -> None:
        self.shown = asyncio.Event()
        self.closed = False

    def close(self) -> None:
        self.closed = True
        self.shown.set()


class Listener:
    """As the engine's: gives the stream after its handshake, nothing when that failed."""

    async def _prepare_stream(self, stream: Stream, _: str) -> Stream | None:
        await stream.shown.wait()
        return None if stream.closed else stream


async def at_the_door(
    keeper: Doorkeeper, addresses: list[str]
) -> tuple[list[Stream], list[asyncio.Task[Stream | None]]]:
    listener = Listener()
    keeper.watch(listener)
    streams = [Stream() for _ in addresses]
    tasks: list[asyncio.Task[Stream | None]] = []
    for number, (stream, address) in enumerate(zip(streams, addresses, strict=True)):
        # After `watch`, the engine calls what the keeper has put in this place.
        tasks.append(asyncio.ensure_future(listener._prepare_stream(stream, f"tls://{address}:{number}")))
        await asyncio.sleep(0)
    return streams, tasks


def test_the_oldest_of_an_address_goes_when_there_are_too_many() -> None:
    async def play() -> None:
        streams, tasks = await at_the_door(Doorkeeper(100, 2), ["10.0.0.1", "10.0.0.2", "10.0.0.1", "10.0.0.1"])
        assert [one.closed for one in streams] == [True, False, False, False]
        for one in streams:
            one.shown.set()
        assert [bool(await one) for one in tasks] == [False, True, True, True]

    asyncio.run(play())


def test_the_oldest_of_all_goes_when_there_are_too_many() -> None:
    async def play() -> None:
        streams, tasks = await at_the_door(Doorkeeper(3, 2), [f"10.0.0.{number}" for number in range(5)])
        assert [one.closed for one in streams] == [True, True, False, False, False]
        for one in streams:
            one.shown.set()
        await asyncio.gather(*tasks)

    asyncio.run(play())


def test_a_handshake_that_takes_too_long_is_ended() -> None:
    async def play() -> None:
        streams, tasks = await at_the_door(Doorkeeper(3, 2, patience_s=0.05), ["10.0.0.1"])
        assert await tasks[0] is None
        assert streams[0].closed

    asyncio.run(play())


def test_who_has_shown_a_certificate_counts_no_more() -> None:
    async def play() -> None:
        keeper = Doorkeeper(3, 1)
        streams, tasks = await at_the_door(keeper, ["10.0.0.1"])
        streams[0].shown.set()
        assert await tasks[0] is streams[0]
        await at_the_door(keeper, ["10.0.0.1"])
        assert not streams[0].closed

    asyncio.run(play())


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return new_certificates(tmp_path / "keys")


@pytest.fixture
def scheduler(tmp_path: Path, certificates: Certificates) -> Iterator[Told]:
    few = ["sh", "-c", 'ulimit -n 256 && exec "$@"', "sh"]
    (tmp_path / "tmp").mkdir()
    own = ["env", f"TMPDIR={tmp_path / 'tmp'}"]
    at = ["scheduler", "--at", "tls://127.0.0.1:0", "--keys", str(certificates.folder)]
    told = Told([*few, *own, *twinnet_command(*at)], tmp_path)
    yield told
    told.end()


def listening_at(told: Told) -> Address:
    return parse_address(told.line(r"Scheduler: (\S+)")[1])


@pytest.mark.alone
def test_idle_connections_do_not_stop_a_scheduler_of_few_files(scheduler: Told, certificates: Certificates) -> None:
    address = listening_at(scheduler)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    with contextlib.ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        for number in range(600):
            one = stack.enter_context(socket.create_connection((address.host, address.port), timeout=10))
            if number % 3 == 0:
                # Some say what is no TLS.
                with contextlib.suppress(OSError):
                    one.sendall(b"GET / HTTP/1.0\r\n\r\n")
        check_scheduler(address, certificates)
        begun = time.monotonic()
        for _ in range(5):
            check_scheduler(address, certificates)
        assert time.monotonic() - begun < 30
    scheduler.end()
    assert scheduler.rest() == scheduler.lines[0], "only its address was told, and no traceback"


def test_a_scheduler_leaves_no_folder_or_lock_behind(scheduler: Told, tmp_path: Path) -> None:
    listening_at(scheduler)
    assert len(list((tmp_path / "tmp").iterdir())) == 1
    scheduler.end()
    assert not list((tmp_path / "tmp").iterdir())


def test_a_scheduler_that_is_killed_leaves_what_the_next_one_removes(
    scheduler: Told, certificates: Certificates, tmp_path: Path
) -> None:
    listening_at(scheduler)
    scheduler.process.kill()
    scheduler.process.wait()
    at = ["scheduler", "--at", "tls://127.0.0.1:0", "--keys", str(certificates.folder)]
    again = Told(["env", f"TMPDIR={tmp_path / 'tmp'}", *twinnet_command(*at)], tmp_path)
    try:
        listening_at(again)
        assert len(list((tmp_path / "tmp").iterdir())) == 1
    finally:
        again.end()
    assert not list((tmp_path / "tmp").iterdir())


@pytest.mark.quiet
def test_a_worker_and_a_run_tell_in_words_that_the_scheduler_has_gone(
    scheduler: Told, certificates: Certificates, tmp_path: Path
) -> None:
    address = listening_at(scheduler)
    at = ["worker", "--at", str(address), "--slots", "1", "--keys", str(certificates.folder)]
    worker = Told(["env", f"TMPDIR={tmp_path / 'tmp'}", *twinnet_command(*at)], tmp_path)
    try:
        worker.line("has joined")
        scheduler.process.kill()
        worker.line("has lost the scheduler; it joins again")
        # A few tries to find it again.
        with contextlib.suppress(subprocess.TimeoutExpired):
            worker.process.wait(5)
    finally:
        worker.end()
    text = worker.rest()
    assert "Traceback" not in text and "distributed." not in text, text
    assert not list((tmp_path / "tmp").glob("twinnet-slot-*-*/dask-scratch-space/worker-*"))


def test_the_engine_says_nothing_in_a_client_either() -> None:
    code = (
        "from twinnet.cluster.engine import hush_engine; hush_engine(); import logging, distributed\n"
        "for name in ('distributed.client', 'distributed.scheduler', 'tornado.application', 'asyncio'):\n"
        "    logging.getLogger(name).critical('%s says something', name)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment(), timeout=60, check=True
    )
    assert done.stdout + done.stderr == ""
