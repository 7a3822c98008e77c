"""Who the page lets in: strangers of every kind are refused, and the browser that was given the address is not."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import twinnet as tn
from fake_lab import FakeLab
from page_data import page_data
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect
from twinnet.live.acts import Acts
from twinnet.live.feed import MOST_READERS, Feed
from twinnet.live.gate import Gate
from twinnet.live.routes import WRITES, routes
from twinnet.network.topology_file import parse_network

PORT = 40123
HOME = f"http://127.0.0.1:{PORT}"
NETWORK = {"lab": "<img src=x>", "title": "", "nodes": [], "links": []}
ASKS = {"origin": HOME, "content-type": "application/json"}
ACT = {"act": "queue", "port": "s1-eth1", "queue": "codel"}


class Page:
    def __init__(self, control: bool = False) -> None:
        self.feed = Feed()
        self.lab = FakeLab(tn.templates.single(2))
        self.lab.answers |= {"links": lambda _: [], "flows.dump": lambda _: ["priority=1,actions=<b>"]}
        self.acts = Acts(self.lab.lab)
        network = NETWORK | ({"control": True} if control else {})
        self.gate = Gate(routes(network, self.feed, self.acts), PORT, WRITES if control else ())

    def browser(self, home: str = HOME) -> TestClient:
        return TestClient(self.gate, base_url=home, follow_redirects=False)

    def visitor(self) -> TestClient:
        """A browser that came by the printed address."""
        browser = self.browser()
        assert browser.get("/", params={"token": self.gate.token}).status_code == 200
        return browser


@pytest.fixture
def page() -> Iterator[Page]:
    page = Page()
    yield page
    page.lab.close()


@pytest.fixture
def open_page() -> Iterator[Page]:
    """A page that may change its lab, and whose acts do nothing but count."""
    page = Page(control=True)
    page.lab.answers["queues.set"] = lambda _: {}
    yield page
    page.lab.close()


def test_the_token_has_128_bits_and_opens_all(page: Page) -> None:
    assert len(base64.urlsafe_b64decode(page.gate.token + "==")) == 16
    assert page.gate.token != Gate(page.gate, PORT).token
    browser = page.visitor()
    assert page_data(browser.get("/").text, "network") == NETWORK
    for path, kind in (("/", "text/html"), ("/page.js", "text/javascript"), ("/page.css", "text/css")):
        answer = browser.get(path)
        assert (answer.status_code, answer.headers["content-type"].partition(";")[0]) == (200, kind)
        assert "<img" not in answer.text


def test_the_page_and_all_its_modules_are_three_answers(page: Page) -> None:
    browser = page.visitor()
    assert re.findall(r'<(?:link|script) .*(?:href|src)="([^"]+)"', browser.get("/").text) == [
        "icon.svg",
        "page.css",
        "page.js",
    ]
    script = browser.get("/page.js").text
    assert "class Picture" in script and not re.findall(r"^(?:import|export) ", script, re.MULTILINE)


def test_the_cookie_is_strict_and_has_not_the_token(page: Page) -> None:
    answer = page.browser().get("/", params={"token": page.gate.token})
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie and "domain" not in cookie
    assert page.gate.token not in answer.headers["set-cookie"] + answer.text


def test_who_opens_the_address_sees_the_page_at_once_and_who_follows_a_link_by_a_visit_of_the_pages_own(
    page: Page,
) -> None:
    for site, is_page in (("none", True), ("cross-site", False), ("same-site", False), ("same-origin", False)):
        browser = page.browser()
        answer = browser.get("/", params={"token": page.gate.token}, headers={"sec-fetch-site": site})
        # Strict cookies do not go along with what another site has caused, such as loading its page again.
        assert ("page.js" in answer.text, 'content="0; url=/"' in answer.text) == (is_page, not is_page)
        assert "samesite=strict" in answer.headers["set-cookie"].lower() and page.gate.token not in answer.text
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert browser.get("/acts").status_code == 200
    refused = page.browser().get("/", params={"token": "x"}, headers={"sec-fetch-site": "none"})
    assert (refused.status_code, "set-cookie" in refused.headers) == (403, False)


@pytest.mark.parametrize("path", ["/", "/acts", "/ticks", "/page.js"])
def test_without_token_and_cookie_nothing_is_told(page: Page, path: str) -> None:
    answer = page.browser().get(path)
    assert answer.status_code == 403
    assert "open the address with the token" in answer.text


@pytest.mark.parametrize("token", ["", "x", "é", "%00", "a" * 150])
def test_a_wrong_token_is_refused(page: Page, token: str) -> None:
    browser = page.browser()
    assert browser.get("/", params={"token": token}).status_code == 403
    assert not browser.cookies


def test_the_token_counts_once_and_at_the_root_only(page: Page) -> None:
    browser = page.browser()
    assert browser.get("/acts", params={"token": page.gate.token}).status_code == 403
    assert browser.get(f"/?token={page.gate.token}&token=x").status_code == 403


def test_a_cookie_of_another_page_is_refused(page: Page) -> None:
    for cookie in (f"twinnet-live-{PORT}=x", f"twinnet-live-{PORT}", f"other={page.gate.token}", "=;;=" * 100):
        assert page.browser().get("/acts", headers={"cookie": cookie}).status_code == 403


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        f"evil.example:{PORT}",
        "127.0.0.1",
        "127.0.0.1:1",
        f"127.0.0.1.nip.io:{PORT}",
        f"0.0.0.0:{PORT}",
        "",
    ],
)
def test_a_name_that_was_rebound_is_refused_even_with_the_cookie(page: Page, host: str) -> None:
    answer = page.visitor().get("/acts", headers={"host": host})
    assert (answer.status_code, "h1" in answer.text) == (421, False)


def test_the_name_localhost_is_the_page_too(page: Page) -> None:
    browser = page.browser(f"http://localhost:{PORT}")
    assert browser.get("/", params={"token": page.gate.token}).status_code == 200
    assert browser.get("/acts").status_code == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1", f"https://127.0.0.1:{PORT}"])
def test_another_origin_is_refused_and_given_no_leave_to_read(page: Page, origin: str) -> None:
    answer = page.visitor().get("/acts", headers={"origin": origin})
    assert answer.status_code == 403
    assert not [name for name in answer.headers if name.startswith("access-control")]
    assert page.visitor().get("/acts", headers={"origin": HOME}).status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_request_that_another_site_caused_is_refused(page: Page, site: str) -> None:
    # Pages on other ports of this machine are of the same site: they would have the cookie sent.
    assert page.visitor().get("/ticks", headers={"sec-fetch-site": site}).status_code == 403


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "NONSENSE"])
def test_nothing_can_be_written(page: Page, method: str) -> None:
    for path in ("/acts", "/act", "/"):
        answer = page.visitor().request(method, path, headers=ASKS)
        assert answer.status_code == 405


def test_huge_requests_are_refused(page: Page) -> None:
    browser = page.visitor()
    assert browser.request("GET", "/acts", content=b"x" * 10).status_code == 413
    assert browser.get("/" + "x" * 1000).status_code == 414
    assert browser.get("/", params={"x": "y" * 1000}).status_code == 414
    assert browser.get("/acts", headers={"x-more": "y" * 10_000}).status_code == 414


def test_samples_are_asked_for_since_a_moment(page: Page) -> None:
    for strange in ({"0": "now"}, {"first": "0"}):
        answer = page.visitor().get("/samples", params=strange)
        assert (answer.status_code, answer.json()["message"]) == (400, "what is asked for are no links with times")


@pytest.mark.parametrize("path", ["/none", "/..%2fserver.py", "/%2e%2e/routes.py", "/page/../../server.py"])
def test_there_are_no_other_files(page: Page, path: str) -> None:
    assert page.visitor().get(path).status_code == 404


def test_every_answer_forbids_the_scripts_and_frames_of_others(page: Page) -> None:
    for answer in (page.visitor().get("/"), page.browser().get("/"), page.visitor().post("/")):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"


def test_a_websocket_is_closed_at_once(page: Page) -> None:
    with pytest.raises(WebSocketDisconnect), page.browser().websocket_connect("/ticks"):
        pass


def test_the_ninth_reader_is_told_to_close_another(page: Page) -> None:
    page.feed.readers = MOST_READERS
    answer = page.visitor().get("/ticks")
    assert (answer.status_code, "close one" in answer.text) == (503, True)


def test_what_the_page_asks_for_is_done(open_page: Page) -> None:
    browser = open_page.visitor()
    answer = browser.post("/act", json=ACT, headers=ASKS)
    assert (answer.status_code, answer.json()["lines"]) == (200, ["queue s1-eth1 codel"])
    assert [act["number"] for act in browser.get("/acts").json()] == [1]
    assert len(open_page.lab.asked("queues.set")) == 1
    refused = browser.post("/act", json=ACT | {"queue": "codell"}, headers=ASKS)
    assert (refused.status_code, refused.json()["name"]) == (400, "BadValue")
    assert "did you mean 'codel'" in refused.json()["remedy"] + refused.json()["message"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": ""}, 403),
        ({"origin": f"http://127.0.0.1:{PORT + 1}"}, 403),
        ({"origin": f"http://localhost:{PORT}"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"cookie": f"twinnet-live-{PORT}=x"}, 403),
        ({"host": "evil.example"}, 421),
        # What a form of another site can send without asking before.
        ({"content-type": "text/plain"}, 415),
        ({"content-type": "application/x-www-form-urlencoded"}, 415),
        ({"content-type": "multipart/form-data"}, 415),
        ({"transfer-encoding": "chunked"}, 413),
        ({"content-length": "8193"}, 413),
        ({"content-length": "-1"}, 413),
        ({"content-length": "²"}, 413),
    ],
)
def test_what_others_ask_for_is_not_done(open_page: Page, headers: dict[str, str], status: int) -> None:
    given = {name: value.encode() for name, value in (ASKS | headers).items()}
    answer = open_page.visitor().post("/act", content=json.dumps(ACT).encode(), headers=given)
    assert answer.status_code == status
    assert open_page.lab.asked("queues.set") == [] and open_page.acts.count == 0


def test_without_an_origin_or_the_cookie_nothing_is_done(open_page: Page) -> None:
    content = {"content-type": "application/json"}
    assert open_page.visitor().post("/act", json=ACT, headers=content).status_code == 403
    assert open_page.browser().post("/act", json=ACT, headers=ASKS).status_code == 403
    # The token opens the page to a visit, and is no leave to write.
    asked = open_page.browser().post(f"/act?token={open_page.gate.token}", json=ACT, headers=ASKS)
    assert (asked.status_code, asked.cookies) == (403, {})
    assert open_page.acts.count == 0


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "GET"])
def test_acts_are_asked_for_by_post_alone(open_page: Page, method: str) -> None:
    assert open_page.visitor().request(method, "/act", headers=ASKS).status_code in (404, 405)
    assert open_page.visitor().post("/acts", json=ACT, headers=ASKS).status_code == 405


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"x",
        b"[]",
        b"1",
        b'{"act":',
        b"\xff",
        b"[" * 8000,
        b'{"act": ["link"]}',
        b'{"number":' + b"9" * 5000 + b"}",
    ],
)
def test_a_malformed_act_is_refused(open_page: Page, body: bytes) -> None:
    answer = open_page.visitor().post("/act", content=body, headers=ASKS)
    assert (answer.status_code, answer.json()["name"]) == (400, "BadValue")


def test_what_is_told_of_a_lab_is_never_markup(open_page: Page) -> None:
    browser = open_page.visitor()
    job = {"job": 1, "host": "h1", "argv": ["<b>"], "state": "running"}
    open_page.lab.answers |= {"app.report": lambda _: [], "jobs": lambda _: [job], "controllers": lambda _: []}
    running = {"now_s": 1.5, "flows": [], "programs": [{"host": "h1", "what": "'<b>'", "state": "running", "job": 1}]}
    for path, told in (
        ("/flows/s1", ["priority=1,actions=<b>"]),
        ("/traffic", running),
        ("/controllers", []),
        ("/acts", []),
    ):
        answer = browser.get(path)
        assert (answer.headers["content-type"], answer.json()) == ("application/json", told)
    for path in ("/flows/<b>", "/settings/7", "/flows/s9"):
        answer = browser.get(path)
        assert (answer.status_code, answer.headers["content-type"]) == (400, "application/json")


def test_the_network_is_saved_as_a_file_that_opens(open_page: Page) -> None:
    spec: dict[str, Any] = open_page.lab.spec
    ways = [{way: {"up": True, "config": link[way]} for way in ("ab", "ba")} for link in spec["links"]]
    open_page.lab.answers |= {"links": lambda _: ways, "flows.dump": lambda _: []}
    answer = open_page.visitor().get("/network.yaml")
    assert answer.headers["content-disposition"] == 'attachment; filename="fake.yaml"'
    assert parse_network(answer.text).to_spec()["links"] == spec["links"]


def test_programs_ask_for_metrics_with_the_token_and_for_nothing_else(page: Page) -> None:
    page.lab.answers["fidelity"] = lambda _: {"clock": "virtual"}
    bearer = {"authorization": f"Bearer {page.gate.token}"}
    answer = page.browser().get("/metrics", headers=bearer)
    assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert "# TYPE twinnet_port_frames_total counter\n" in answer.text
    assert page.browser().get("/acts", headers=bearer).status_code == 403
    for given in ({}, {"authorization": "Bearer x"}, {"authorization": page.gate.token}, {"authorization": "Bearer"}):
        assert page.browser().get("/metrics", headers=given).status_code == 403
    for more in ({"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}):
        assert page.browser().get("/metrics", headers=bearer | more).status_code == 403
