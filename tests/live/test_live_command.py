"""``twinnet live`` and ``lab.live()``: how they begin, what they refuse, and that nothing is left of them."""

from __future__ import annotations

import http.client
import json
import os
import re
import select
import signal
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import twinnet as tn
from labs_here import needs_a_lab
from live_command import started
from twinnet.cli import run
from twinnet.cli.prompt.session import Session
from twinnet.lab import live_page


def asked(address: str, path: str, host: str | None = None) -> int:
    """The status of the answer to a request without token and cookie."""
    where = urlsplit(address)
    connection = http.client.HTTPConnection("127.0.0.1", where.port, timeout=5)
    connection.request("GET", path, headers={"Host": host or where.netloc})
    return connection.getresponse().status


@needs_a_lab
def test_ctrl_c_ends_the_page_and_not_the_lab() -> None:
    with tn.templates.single(2).emulate() as lab:
        server, line = started(lab.name, "--json")
        told = json.loads(line)
        assert told["lab"] == lab.name and urlsplit(told["address"]).hostname == "127.0.0.1"
        assert asked(told["address"], "/") == 403
        assert asked(told["address"], "/", host="evil.example") == 421
        server.send_signal(signal.SIGINT)
        assert server.communicate(timeout=10) == ("", "")
        assert server.returncode == 0
        assert lab.now() > 0
        with pytest.raises(ConnectionRefusedError):
            asked(told["address"], "/")


@needs_a_lab
def test_the_page_changes_its_lab_only_with_control() -> None:
    with tn.templates.single(2, rate="10 Mbit").emulate() as lab:
        for options, status, rate_bps in (((), 405, 10_000_000), (("--control",), 200, 2_000_000)):
            server, line = started(lab.name, "--json", *options)
            address = json.loads(line)["address"]
            where = urlsplit(address)
            page = http.client.HTTPConnection("127.0.0.1", where.port, timeout=5)
            page.request("GET", f"/?{where.query}")
            visit = page.getresponse()
            visit.read()
            cookie = (visit.headers["set-cookie"] or "").partition(";")[0]
            asks = {"Cookie": cookie, "Origin": f"http://{where.netloc}", "Content-Type": "application/json"}
            act = {"act": "link", "link": 0, "direction": "both", "set": {"rate": "2 Mbit"}}
            page.request("POST", "/act", json.dumps(act), asks)
            assert page.getresponse().status == status
            assert (lab.links()[0]["ab"]["config"] or {})["rate_bps"] == rate_bps
            server.send_signal(signal.SIGINT)
            server.communicate(timeout=10)


@needs_a_lab
def test_the_page_ends_with_its_lab_and_says_no_word() -> None:
    with tn.templates.single(2).emulate() as lab:
        server, line = started(lab.name)
        assert line.startswith(f"{lab.name}: open http://127.0.0.1:") and "?token=" in line
    _, errors = server.communicate(timeout=10)
    assert (server.returncode, errors) == (0, "")


@needs_a_lab
def test_the_page_of_a_program_ends_when_the_program_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "owner.py"
    script.write_text(
        "import twinnet as tn, time\n"
        "with tn.templates.single(2).emulate() as lab:\n"
        "    page = lab.live()\n"
        "    print(page._server.pid, flush=True)\n"
        "    time.sleep(60)\n"
    )
    owner = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    page = os.pidfd_open(int(owner.stdout.readline()))
    owner.kill()
    owner.communicate()
    # The descriptor of a process can be read when it has ended.

    assert select.select([page], [], [], 10)[0] == [page]
    os.close(page)


@needs_a_lab
def test_a_page_that_is_stopped_leaves_the_lab_and_leaving_the_lab_stops_pages() -> None:
    with tn.templates.single(2).emulate() as lab:
        with lab.live() as first:
            assert first.running and "running" in repr(first)
        second = lab.live()
        assert (first.running, second.running, lab.running) == (False, True, True)
        assert first.address != second.address
    assert not second.running


def test_no_lab_and_no_such_lab_are_told(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(["live", "lab-nowhere"]) == 1
    assert "lab-nowhere" in capsys.readouterr().err
    monkeypatch.setattr("twinnet.lab.labs", list)
    assert run(["live"]) == 2
    assert "start one with: twinnet lab" in capsys.readouterr().err
    monkeypatch.setattr("twinnet.lab.labs", lambda: [tn.lab.LabInfo("a"), tn.lab.LabInfo("b")])
    assert run(["live"]) == 2
    assert "name one: twinnet live a" in capsys.readouterr().err


@needs_a_lab
def test_without_the_extra_it_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with tn.templates.single(2).emulate() as lab:
        with monkeypatch.context() as without:
            without.setattr(live_page, "find_spec", lambda name: None)
            with pytest.raises(tn.errors.NotAvailable, match=r"pip install 'twinnet\[live\]'"):
                lab.live()
        monkeypatch.setitem(sys.modules, "uvicorn", None)
        assert run(["live", lab.name]) == 1
        assert "pip install 'twinnet[live]'" in capsys.readouterr().err


def test_on_the_virtual_clock_a_page_needs_a_name_of_the_lab() -> None:
    with tn.templates.single(2).simulate() as lab, pytest.raises(tn.errors.NotAvailable, match="has no name"):
        lab.live()


def test_neither_help_nor_the_package_loads_the_server() -> None:
    look = "import sys, twinnet, twinnet.lab.lab; from twinnet.cli import run; run(['live', '--help'])"
    look += "; print([one for one in ('starlette', 'uvicorn', 'twinnet.live') if one in sys.modules])"
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@needs_a_lab
def test_the_page_of_a_network_file_takes_the_places_beside_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "net.yaml"
    file.write_text("{hosts: {h1: , h2: }, links: [{between: [h1, h2]}]}")
    assert run(["lab", str(file), "-c", "live", "-c", "live stop"]) == 0
    assert "open http://127.0.0.1:" in capfd.readouterr().out
    places = tmp_path / "net.positions.json"
    places.write_text("[]")
    assert run(["lab", str(file), "-c", "live"]) == 1
    assert f"{places} holds no places of nodes" in capfd.readouterr().err
    assert places.read_text() == "[]"


@needs_a_lab
@pytest.mark.parametrize("clock", ["wall", "virtual"])
def test_a_lab_is_started_with_its_page(clock: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["lab", "single:2", "--clock", clock, "--live", "-c", "nodes"]) == 0
    out = capfd.readouterr().out
    assert re.match(r"open http://127\.0\.0\.1:\d+/\?token=\S+\n", out) and "s1" in out
    assert run(["lab", "single:2", "--clock", clock, "--live", "--json", "-c", "nodes"]) == 0
    first, *_ = capfd.readouterr().out.splitlines()
    assert json.loads(first)["result"]["address"].startswith("http://127.0.0.1:")


@needs_a_lab
def test_a_word_at_the_prompt_opens_the_page_and_another_ends_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with tn.templates.single(2).emulate() as lab:
        session = Session(lab)
        assert session.execute("live lesson.html")
        address = capfd.readouterr().out.split()[1]
        assert asked(address, "/") == 403
        assert session.execute("live") and capfd.readouterr().out.split()[1] == address
        assert not session.execute("live other.html")
        assert "end it first: live stop" in capfd.readouterr().err
        assert not Path("lesson.html").exists()
        assert session.execute("live stop") and capfd.readouterr().out == "wrote lesson.html\n"
        assert Path("lesson.html").stat().st_size > 10_000
        assert not session.execute("live stop") and not session.execute("live a b")
        assert not session.execute("live control stop")
        assert session.execute("live control") and session.execute("live")
        assert not session.execute("live control") and session.execute("live stop")
        capfd.readouterr()
        assert not Session(lab, lasts=False).execute("live")
        assert f"write: twinnet live {lab.name}" in capfd.readouterr().err
