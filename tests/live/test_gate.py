"""Who the page lets in: strangers of every kind are refused, and the browser that was given the address is not."""

from __future__ import annotations

import base64

import pytest
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect
from twinnet.live.feed import MOST_READERS, Feed
from twinnet.live.gate import Gate
from twinnet.live.routes import routes

PORT = 40123
HOME = f"http://127.0.0.1:{PORT}"
NETWORK = {"lab": "<img src=x>", "title": "", "nodes": [], "links": []}


class Page:
    def __init__(self) -> None:
        self.feed = Feed()
        self.gate = Gate(routes(NETWORK, self.feed), PORT)

    def browser(self, home: str = HOME) -> TestClient:
        return TestClient(self.gate, base_url=home, follow_redirects=False)

    def visitor(self) -> TestClient:
        """A browser that came by the printed address."""
        browser = self.browser()
        assert browser.get("/", params={"token": self.gate.token}).status_code == 200
        return browser


@pytest.fixture
def page() -> Page:
    return Page()


def test_the_token_has_128_bits_and_opens_all(page: Page) -> None:
    assert len(base64.urlsafe_b64decode(page.gate.token + "==")) == 16
    assert page.gate.token != Page().gate.token
    browser = page.visitor()
    assert browser.get("/network").json() == NETWORK
    for path, kind in (("/", "text/html"), ("/page.js", "text/javascript"), ("/page.css", "text/css")):
        answer = browser.get(path)
        assert (answer.status_code, answer.headers["content-type"].partition(";")[0]) == (200, kind)
        assert "<img" not in answer.text


def test_the_cookie_is_strict_and_has_not_the_token(page: Page) -> None:
    answer = page.browser().get("/", params={"token": page.gate.token})
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie and "domain" not in cookie
    assert page.gate.token not in answer.headers["set-cookie"] + answer.text


@pytest.mark.parametrize("path", ["/", "/network", "/ticks", "/page.js"])
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
    assert browser.get("/network", params={"token": page.gate.token}).status_code == 403
    assert browser.get(f"/?token={page.gate.token}&token=x").status_code == 403


def test_a_cookie_of_another_page_is_refused(page: Page) -> None:
    for cookie in (f"twinnet-live-{PORT}=x", f"twinnet-live-{PORT}", f"other={page.gate.token}", "=;;=" * 100):
        assert page.browser().get("/network", headers={"cookie": cookie}).status_code == 403


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
    answer = page.visitor().get("/network", headers={"host": host})
    assert (answer.status_code, "h1" in answer.text) == (421, False)


def test_the_name_localhost_is_the_page_too(page: Page) -> None:
    browser = page.browser(f"http://localhost:{PORT}")
    assert browser.get("/", params={"token": page.gate.token}).status_code == 200
    assert browser.get("/network").status_code == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1", f"https://127.0.0.1:{PORT}"])
def test_another_origin_is_refused_and_given_no_leave_to_read(page: Page, origin: str) -> None:
    answer = page.visitor().get("/network", headers={"origin": origin})
    assert answer.status_code == 403
    assert not [name for name in answer.headers if name.startswith("access-control")]
    assert page.visitor().get("/network", headers={"origin": HOME}).status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_request_that_another_site_caused_is_refused(page: Page, site: str) -> None:
    # Pages on other ports of this machine are of the same site: they would have the cookie sent.
    assert page.visitor().get("/ticks", headers={"sec-fetch-site": site}).status_code == 403


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "NONSENSE"])
def test_nothing_can_be_written(page: Page, method: str) -> None:
    assert page.visitor().request(method, "/network").status_code == 405


def test_huge_requests_are_refused(page: Page) -> None:
    browser = page.visitor()
    assert browser.request("GET", "/network", content=b"x" * 10).status_code == 413
    assert browser.get("/" + "x" * 1000).status_code == 414
    assert browser.get("/", params={"x": "y" * 1000}).status_code == 414
    assert browser.get("/network", headers={"x-more": "y" * 10_000}).status_code == 414


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
