"""Pages at an address that other machines reach: TLS, the fingerprint, and who is refused."""

from __future__ import annotations

import hashlib
import http.client
import json
import signal
import ssl
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
import twinnet as tn
from cryptography.x509 import IPAddress, SubjectAlternativeName, load_pem_x509_certificate
from labs_here import needs_a_lab
from live_browser import expect, launched, needs_a_browser
from live_command import started
from starlette.testclient import TestClient
from twinnet.cli import run
from twinnet.errors import BadAddress
from twinnet.live import listening_at
from twinnet.live.gate import Gate
from twinnet.live.listening import Listening

ADDRESS = "127.0.0.2"
"""Of loopback, and as unlike the usual one as that of a network."""


class Served:
    """The page of `lab` at `ADDRESS` with TLS, by the command."""

    def __init__(self, lab: tn.Lab, *options: str) -> None:
        self.process, line = started(lab.name, "--json", "--listen", ADDRESS, "--tls", *options)
        self.told = json.loads(line)
        self.where = urlsplit(self.told["address"])

    def context(self) -> ssl.SSLContext:
        # The fingerprint is what is compared, not who has signed.
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context

    def end(self) -> str:
        self.process.send_signal(signal.SIGINT)
        return self.process.communicate(timeout=20)[1]


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with tn.templates.single(2).emulate() as lab:
        served = Served(lab, "--control")
        yield served
        served.end()


@needs_a_lab
def test_the_printed_fingerprint_is_that_of_the_certificate(served: Served) -> None:
    shown = ssl.get_server_certificate((ADDRESS, served.where.port or 0))
    digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(shown)).hexdigest().upper()
    assert served.told["fingerprint"].replace(":", "") == digest and len(digest) == 64
    assert (served.where.scheme, served.where.hostname) == ("https", ADDRESS)


@needs_a_lab
def test_hosts_and_origins_follow_the_address(served: Served) -> None:
    port = served.where.port

    def asked(path: str, **headers: str) -> http.client.HTTPResponse:
        page = http.client.HTTPSConnection(ADDRESS, port, timeout=20, context=served.context())
        page.request("GET", path, headers=headers)
        answer = page.getresponse()
        answer.read()
        return answer

    visit = asked(f"/?{served.where.query}")
    assert visit.status == 200 and "secure" in (visit.headers["set-cookie"] or "").lower()
    cookie = {"Cookie": (visit.headers["set-cookie"] or "").partition(";")[0]}
    assert asked("/acts", **cookie).status == 200
    assert asked("/acts", **cookie, Origin=f"https://{ADDRESS}:{port}").status == 200
    for origin in (f"http://{ADDRESS}:{port}", f"https://127.0.0.1:{port}", f"https://localhost:{port}"):
        assert asked("/acts", **cookie, Origin=origin).status == 403
    for host in (f"127.0.0.1:{port}", f"localhost:{port}", "evil.example"):
        assert asked("/acts", **cookie, Host=host).status == 421


@needs_a_lab
def test_without_tls_nobody_is_answered(served: Served) -> None:
    page = http.client.HTTPConnection(ADDRESS, served.where.port, timeout=20)
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        page.request("GET", "/")
        page.getresponse()


@needs_a_lab
@needs_a_browser
def test_a_browser_that_trusts_the_certificate_sees_the_lab_and_opens_a_console(served: Served) -> None:
    for browser in launched():
        page = browser.new_context(ignore_https_errors=True).new_page()
        page.goto(served.told["address"])
        page.locator(".node", has_text="h1").dblclick()
        expect(page.locator("#consoles .xterm-rows")).to_contain_text("#")
        page.context.close()


def test_others_are_warned_of_and_need_tls(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["live", "nowhere", "--listen", "192.0.2.5"]) == 2
    assert "add --tls" in capsys.readouterr().err
    assert run(["live", "nowhere", "--listen", "192.0.2.5", "--tls", "--control"]) == 1
    assert "other machines reach this page" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "lab1", "0.0.0.0", "::", "[::]", "224.0.0.1", "192.0.2.5:", "192.0.2.5:99999"])
def test_what_is_no_address_of_one_machine_is_refused(text: str) -> None:
    with pytest.raises(BadAddress):
        listening_at(text, tls=True)


def test_addresses_of_version_6_have_brackets_where_browsers_write_them() -> None:
    listening = listening_at("[2001:DB8::5]:8443", tls=True)
    assert (listening.address, listening.port) == ("2001:db8::5", 8443)
    assert listening.hosts(8443) == ["[2001:db8::5]:8443"]
    assert listening.hosts(443) == ["[2001:db8::5]:443", "[2001:db8::5]"]


def test_a_page_at_another_address_is_not_that_of_loopback() -> None:
    async def nothing(*_: object) -> None:
        raise AssertionError("nobody is let in")

    gate = Gate(nothing, 40123, listening=Listening("192.0.2.5", 40123))
    for home in ("http://127.0.0.1:40123", "http://localhost:40123"):
        assert TestClient(gate, base_url=home).get("/").status_code == 421
    assert TestClient(gate, base_url="http://192.0.2.5:40123").get("/").status_code == 403


def test_the_certificate_names_the_address() -> None:
    made = listening_at("192.0.2.5", tls=True).certificate
    assert made is not None
    names = load_pem_x509_certificate(made.certificate).extensions.get_extension_for_class(SubjectAlternativeName).value
    assert [str(one) for one in names.get_values_for_type(IPAddress)] == ["192.0.2.5"]
