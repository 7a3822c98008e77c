"""Control channels over TLS, with keys made here by OpenSSL's program."""

from __future__ import annotations

import contextlib
import importlib.util
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import twinnet as tn
from twinnet.control import Tls
from twinnet.control.tls_relay import TlsFailed, TlsRelay, handshake
from twinnet.errors import BadValue, ControllerWarning, NotAvailable, TimeLimit
from twinnet.network.topology_file import parse_network

HERE = Path(__file__).parents[1] / "support"
HELLO = bytes([4, 0, 0, 8, 0, 0, 0, 1])
GREETING = HELLO + bytes([4, 5, 0, 8, 0, 0, 0, 2])
"""A hello and the question for features, by which a controller confirms the version."""
pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed: apt install openssl")
needs_os_ken = pytest.mark.skipif(
    importlib.util.find_spec("os_ken") is None, reason="os-ken is not installed: pip install os-ken"
)
needs_ovs_ofctl = pytest.mark.skipif(
    shutil.which("ovs-ofctl") is None, reason="ovs-ofctl is not installed: apt install openvswitch-common"
)


class Authority:
    """A certificate authority in a folder, and those that it has certified."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.ca_cert = folder / f"{name}.pem"
        self._key = folder / f"{name}-key.pem"
        new = ("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "3")
        self._openssl(*new, "-subj", f"/CN={name}", "-keyout", self._key, "-out", self.ca_cert)

    def _openssl(self, *arguments: object) -> None:
        subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True, timeout=60)

    def tls(self, name: str, ca_cert: Path | None = None) -> Tls:
        """A key of `name` and its certificate, beside the certificate of those it trusts (this authority)."""
        key, request, certificate = (self.folder / f"{name}{end}" for end in ("-key.pem", ".csr", "-cert.pem"))
        new = ("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}")
        self._openssl(*new, "-keyout", key, "-out", request)
        signed = ("x509", "-req", "-in", request, "-CA", self.ca_cert, "-CAkey", self._key, "-CAcreateserial")
        self._openssl(*signed, "-days", "3", "-out", certificate)
        return Tls(key, certificate, ca_cert or self.ca_cert)


class Keys:
    """Who appears here: a switch, a controller and a stranger whom another authority has certified."""

    def __init__(self, folder: Path) -> None:
        ours, other = Authority(folder, "ca"), Authority(folder, "otherca")
        self.switch, self.controller = ours.tls("switch"), ours.tls("controller")
        self.stranger = other.tls("stranger", ours.ca_cert)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return Keys(tmp_path_factory.mktemp("keys"))


def options(tls: Tls) -> list[str]:
    """The options of ``ovs-ofctl``, and of ``twinnet switch``."""
    return [
        f"--private-key={tls.private_key}",
        f"--certificate={tls.certificate}",
        f"--ca-cert={tls.ca_cert}",
    ]


class TlsController:
    """Something at a port that switches connect to; each is given to `serve`."""

    def __init__(self, serve: Callable[[socket.socket], None]) -> None:
        self._serve = serve
        self._server = socket.create_server(("127.0.0.1", 0))
        self.target = f"ssl:127.0.0.1:{self._server.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self._server.accept()
                threading.Thread(target=self._one, args=(sock,), daemon=True).start()

    def _one(self, sock: socket.socket) -> None:
        with contextlib.suppress(OSError), sock:
            self._serve(sock)

    def __enter__(self) -> TlsController:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()


def greet(context: ssl.SSLContext, heard: list[bytes]) -> Callable[[socket.socket], None]:
    """A controller that says hello, and keeps what it hears."""

    def serve(sock: socket.socket) -> None:
        with context.wrap_socket(sock, server_side=True) as secure:
            secure.sendall(GREETING)
            while piece := secure.recv(65_536):
                heard.append(piece)

    return serve


def one_switch(**settings: object) -> tn.Network:
    net = tn.Network()
    s1 = net.switch("s1", **settings)  # pyright: ignore[reportArgumentType]
    for number in (1, 2):
        net.link(net.host(f"h{number}"), s1, rate="100 Mbit")
    return net


def trouble_of(lab: tn.Lab, target: str) -> str:
    told: list[str] = []

    def is_told() -> bool:
        trouble = lab.controller_trouble("s1", target)
        told.extend([] if trouble is None else [trouble])
        return bool(told)

    eventually(is_told)
    return told[0]


def eventually(holds: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def test_a_switch_speaks_openflow_with_a_controller_that_has_the_certificate_it_trusts(keys: Keys) -> None:
    heard: list[bytes] = []
    with TlsController(greet(keys.controller.accepting(), heard)) as controller:
        with one_switch(controllers=[controller.target], tls=keys.switch).emulate() as lab:
            lab.wait_for_controllers("30 s")
            (state,) = lab.switch("s1").controller_state
            assert (state["version"], state["trouble"], state["target"]) == ("1.3", None, controller.target)
        assert heard[0].startswith(b"\x04\x00")


@pytest.mark.parametrize("clock", ["wall", "virtual"])
def test_whoever_is_not_trusted_is_refused_with_the_reason_and_the_lab_goes_on(keys: Keys, clock: str) -> None:
    def told(serving: Callable[[socket.socket], None], switch: Tls) -> str:
        with TlsController(serving) as controller:
            net = one_switch(controllers=[controller.target], tls=switch)
            if clock == "virtual":
                with pytest.warns(ControllerWarning), net.simulate() as lab:
                    ping = lab.start(tn.apps.ping("h1", "h2", count=1))
                    lab.run_until("3 s")
                    assert ping.report().lost == 0
                    return trouble_of(lab, controller.target)
            with net.emulate() as lab:
                said = trouble_of(lab, controller.target)
                with pytest.raises(TimeLimit, match="s1"):
                    lab.wait_for_controllers("10 ms")
                assert " 0% packet loss" in lab["h1"].run("ping -c 1 10.0.0.2").stdout
                return said

    assert "its certificate is not trusted" in told(greet(keys.stranger.accepting(), []), keys.switch)
    assert "refused TLS: unknown ca" in told(greet(keys.controller.accepting(), []), keys.stranger)
    assert "does not speak TLS" in told(lambda sock: sock.sendall(HELLO), keys.switch)
    assert "ended the TLS handshake" in told(lambda sock: None, keys.switch)


def test_a_controller_that_hangs_in_the_handshake_is_given_up(keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twinnet.control.tls_relay.HANDSHAKE_PATIENCE_S", 0.1)
    ended = threading.Event()
    with TlsController(lambda sock: ended.wait() and None) as controller:
        with one_switch(controllers=[controller.target], tls=keys.switch).emulate() as lab:
            assert trouble_of(lab, controller.target) == "it has not shaken hands for TLS within 0.1 s"
            assert " 0% packet loss" in lab["h1"].run("ping -c 1 10.0.0.2").stdout
        ended.set()


def test_a_connection_that_ended_is_made_again(keys: Keys) -> None:
    joined: list[int] = []

    def serve(sock: socket.socket) -> None:
        with keys.controller.accepting().wrap_socket(sock, server_side=True) as secure:
            secure.sendall(GREETING)
            joined.append(1)
            # The first is let go at once.
            while secure.recv(65_536) and len(joined) > 1:
                pass

    with (
        TlsController(serve) as controller,
        one_switch(controllers=[controller.target], tls=keys.switch).emulate() as lab,
    ):
        assert trouble_of(lab, controller.target) == "the controller closed it"
        lab.wait_for_controllers("30 s")
        assert len(joined) == 2


@needs_ovs_ofctl
def test_tools_reach_a_switch_over_tls_and_only_with_a_certificate_of_its_authority(keys: Keys) -> None:
    port = free_port()

    def ofctl(who: Tls, *words: str) -> subprocess.CompletedProcess[str]:
        command = ["ovs-ofctl", "-O", "OpenFlow13", *options(who), words[0], f"ssl:127.0.0.1:{port}", *words[1:]]
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)

    net = one_switch(fail_mode="secure", listen=f"pssl:{port}", tls=keys.switch)
    with net.emulate() as lab:
        assert ofctl(keys.controller, "add-flow", "actions=flood").returncode == 0
        assert " 0% packet loss" in lab["h1"].run("ping -c 1 10.0.0.2").stdout
        assert "actions=FLOOD" in ofctl(keys.controller, "dump-flows").stdout
        refused = r"s1 refused a tool at pssl:\d+: its certificate is not trusted"
        with pytest.warns(ControllerWarning, match=refused) as warned:
            assert ofctl(keys.stranger, "del-flows").returncode != 0
            eventually(lambda: len(warned) > 0)
        refused = r"s1 refused a tool at pssl:\d+: it does not speak TLS"
        with (
            pytest.warns(ControllerWarning, match=refused) as warned,
            socket.create_connection(("127.0.0.1", port)) as plain,
        ):
            plain.sendall(GREETING)
            eventually(lambda: len(warned) > 0)
        assert "actions=FLOOD" in ofctl(keys.controller, "dump-flows").stdout


@needs_ovs_ofctl
@pytest.mark.skipif(shutil.which("ovs-vswitchd") is None, reason="ovs-vswitchd is not installed: openvswitch-switch")
def test_open_vswitch_in_a_lab_has_its_channels_over_tls_too(keys: Keys) -> None:
    port, heard = free_port(), list[bytes]()
    shown = ["ovs-ofctl", "-O", "OpenFlow13", *options(keys.controller), "show", f"ssl:127.0.0.1:{port}"]
    with TlsController(greet(keys.controller.accepting(), heard)) as controller:
        net = one_switch(kind="ovs", controllers=[controller.target], listen=f"pssl:{port}", tls=keys.switch)
        with net.emulate() as lab:
            lab.wait_for_controllers("30 s")
            assert heard[0].startswith(b"\x04\x00")
            told = subprocess.run(shown, capture_output=True, text=True, timeout=30, check=True)
            assert "s1-eth1" in told.stdout


@needs_os_ken
def test_an_os_ken_learning_switch_over_tls_makes_hosts_reach_each_other(keys: Keys) -> None:
    program = [sys.executable, str(HERE / "controllers" / "learning_13.py"), "{port}"]
    shown = keys.controller
    net = one_switch(fail_mode="secure")
    net.controller(run=[*program, *map(str, (shown.private_key, shown.certificate, shown.ca_cert))], tls=keys.switch)
    with net.emulate() as lab:
        lab.wait_for_controllers("30 s")
        (state,) = lab.switch("s1").controller_state
        assert state["target"].startswith("ssl:127.0.0.1:")
        assert " 0% packet loss" in lab["h1"].run("ping -c 3 -i 0.2 h2").stdout


def test_on_the_virtual_clock_a_run_over_tls_is_the_run_without_it(keys: Keys) -> None:
    program = [sys.executable, str(HERE / "controllers" / "small_learning_13.py"), "{port}"]
    shown = keys.controller

    def run(*arguments: object, tls: Tls | None) -> str:
        net = one_switch(fail_mode="secure")
        net.controller(run=[*program, *map(str, arguments)], tls=tls, quiet="0 s", delay="2 ms")
        with net.simulate() as lab:
            lab.wait_for_controllers()
            ping = lab.start(tn.apps.ping("h1", "h2", count=3))
            lab.run_until("4 s")
            assert ping.report().lost == 0
            return lab.trace_hash

    over_tls = ("", shown.private_key, shown.certificate, shown.ca_cert)
    assert run(*over_tls, tls=keys.switch) == run(*over_tls, tls=keys.switch) == run(tls=None)


@pytest.mark.parametrize("tls_version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_relay_passes_on_all_of_both_ways_at_once(keys: Keys, tls_version: ssl.TLSVersion) -> None:
    ours, theirs = socket.socketpair()
    context = keys.controller.accepting()
    context.maximum_version = tls_version
    secured: list[ssl.SSLSocket] = []
    shaking = threading.Thread(target=lambda: secured.append(handshake(theirs, context, server_side=True)))
    shaking.start()
    relay = TlsRelay(handshake(ours, keys.switch.connecting()))
    shaking.join()
    (far,) = secured
    relay.start()
    inward, outward = bytes(range(256)) * 9000, bytes(reversed(range(256))) * 11_000
    # What is sent from afar waits until the near side reads; the near side reads when it has sent all of its own.
    sending = threading.Thread(target=relay.plain.sendall, args=(outward,))
    sending.start()
    assert read(far, len(outward)) == outward
    sending.join()
    answering = threading.Thread(target=far.sendall, args=(inward,))
    answering.start()
    both = threading.Thread(target=relay.plain.sendall, args=(outward,))
    both.start()
    assert read(relay.plain, len(inward)) == inward
    answering.join()
    assert read(far, len(outward)) == outward
    both.join()
    far.close()
    assert relay.plain.recv(1) == b""
    assert relay.why == "the controller closed it"
    relay.plain.close()


def read(sock: socket.socket, length: int) -> bytes:
    got = b""
    while len(got) < length:
        got += sock.recv(1 << 20)
    return got


def test_less_than_tls_1_2_is_refused(keys: Keys) -> None:
    ours, theirs = socket.socketpair()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(keys.controller.certificate, keys.controller.private_key)
    with pytest.warns(DeprecationWarning):
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")

    def shake() -> None:
        with contextlib.suppress(TlsFailed):
            handshake(theirs, context, server_side=True)

    shaking = threading.Thread(target=shake)
    shaking.start()
    with pytest.raises(TlsFailed, match=r"it speaks no TLS newer than 1\.1|refused TLS: protocol version"):
        handshake(ours, keys.switch.connecting())
    shaking.join()


def test_files_that_will_not_do_are_refused_in_one_line_before_anything_is_built(keys: Keys, tmp_path: Path) -> None:
    good = keys.switch
    encrypted, empty = tmp_path / "encrypted.pem", tmp_path / "empty.pem"
    encrypt = ("openssl", "ec", "-aes256", "-passout", "pass:secret", "-in", str(good.private_key))
    subprocess.run([*encrypt, "-out", str(encrypted)], check=True, capture_output=True, timeout=60)
    empty.write_text("")

    def refusal(tls: Tls) -> str:
        net = one_switch(listen=f"pssl:{free_port()}", tls=tls)
        with pytest.raises(NotAvailable) as raised:
            net.emulate().open()
        assert "\n" not in str(raised.value)
        return str(raised.value)

    assert "the private key '/nowhere/key.pem' cannot be read: No such" in refusal(Tls("/nowhere/key.pem", empty))
    assert "does not belong to the certificate" in refusal(Tls(keys.controller.private_key, good.certificate))
    assert f"the private key {str(encrypted)!r} is encrypted" in refusal(Tls(encrypted, good.certificate))
    assert f"there is no private key in {str(empty)!r}" in refusal(Tls(empty, good.certificate))
    assert f"there is no certificate in {str(empty)!r}" in refusal(Tls(good.private_key, empty))
    assert "the CA certificate" in refusal(Tls(good.private_key, good.certificate, empty))
    assert f"{str(tmp_path)!r} cannot be read: it is a folder" in refusal(Tls(tmp_path, good.certificate))


def test_tls_that_is_said_by_half_is_refused_where_it_is_said() -> None:
    net, tls = tn.Network(), Tls("key.pem", "cert.pem")
    with pytest.raises(BadValue, match="s1 has no key and certificate for ssl:"):
        net.switch("s1", controllers=["ssl:127.0.0.1"])
    with pytest.raises(BadValue, match="s1 has no key and certificate for pssl:6654"):
        net.switch("s1", listen="pssl:6654")
    with pytest.raises(BadValue, match="write ssl: there"):
        net.controller("tcp:127.0.0.1:6653", tls=tls)
    with pytest.raises(BadValue, match="the controller has no key and certificate"):
        net.controller("ssl:127.0.0.1:6653")
    with pytest.raises(BadValue, match="not reached over TLS"):
        net.controller(tn.control.LearningSwitch, tls=tls)
    with pytest.raises(BadValue, match="the private_key of TLS is 7"):
        Tls(7, "cert.pem")  # pyright: ignore[reportArgumentType]


def test_a_switch_has_the_keys_of_the_networks_controller_unless_it_has_its_own() -> None:
    net, own = tn.Network(), Tls("own-key.pem", "own-cert.pem", "ca.pem")
    net.switch("s1")
    net.switch("s2", tls=own)
    net.switch("s3", controllers=["tcp:127.0.0.1:6653"])
    net.controller(tls=Tls("key.pem", "cert.pem"))
    told = [(node["controllers"], node.get("tls")) for node in net.to_spec()["nodes"]]
    assert told == [
        (["ssl:127.0.0.1:6653"], {"private_key": "key.pem", "certificate": "cert.pem"}),
        (["ssl:127.0.0.1:6653"], {"private_key": "own-key.pem", "certificate": "own-cert.pem", "ca_cert": "ca.pem"}),
        (["tcp:127.0.0.1:6653"], None),
    ]


def test_a_file_says_it_in_the_same_words() -> None:
    net = parse_network(
        """
controller: {connect: "ssl:10.0.0.1", tls: {private_key: k.pem, certificate: c.pem, ca_cert: ca.pem}}
switches:
  s1:
  s2: {listen: "pssl:6654:[::1]", tls: {private_key: k2.pem, certificate: c2.pem}}
"""
    )
    s1, s2 = net.to_spec()["nodes"]
    assert s1["tls"] == {"private_key": "k.pem", "certificate": "c.pem", "ca_cert": "ca.pem"}
    assert (s2["listen"], s2["tls"]) == ("pssl:6654:[::1]", {"private_key": "k2.pem", "certificate": "c2.pem"})
