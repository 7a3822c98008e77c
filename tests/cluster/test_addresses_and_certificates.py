"""Where a scheduler may be, and the certificates that open its door."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from campaign import environment, twinnet_command
from click.testing import CliRunner
from cryptography import x509
from twinnet.cli.group import cli
from twinnet.cluster import certificates
from twinnet.cluster.address import Address, parse_address
from twinnet.cluster.certificates import new_certificates, read_certificates
from twinnet.errors import BadAddress, BadFile, BadValue


def test_addresses_are_read_and_written_alike() -> None:
    for text in ("tls://lab1:8786", "tls://10.0.0.1:1", "tls://[2001:db8::1]:65535"):
        assert str(parse_address(text)) == text
    assert parse_address("tls://[::1]:8786").is_loopback
    assert not parse_address("tls://10.0.0.1:8786").is_loopback


@pytest.mark.parametrize(
    ("text", "without_tls", "reason"),
    [
        ("lab1", False, "is no address of a scheduler"),
        ("http://lab1:80", False, "is no address of a scheduler"),
        ("tls://lab1:0", False, "ports are 1 to 65535"),
        ("tls://lab1:65536", False, "ports are 1 to 65535"),
        ("tls://lab 1:8786", False, "is no address of a scheduler"),
        ("tls://lab1:8786", True, "is given with --without-tls"),
        ("tcp://lab1:8786", False, "anybody on the network could run programs there"),
        ("tcp://lab1:8786", True, "anybody on the network could run programs there"),
        ("tcp://0.0.0.0:8786", True, "anybody on the network could run programs there"),
        ("tcp://127.0.0.1:8786", False, "add --without-tls if nobody else uses this machine"),
    ],
)
def test_an_address_that_is_wrong_or_without_tls_is_refused(text: str, without_tls: bool, reason: str) -> None:
    with pytest.raises(BadAddress, match=reason):
        parse_address(text, without_tls)


def test_loopback_goes_without_tls_when_that_is_asked_for() -> None:
    assert not parse_address("tcp://127.0.0.1:8786", without_tls=True).encrypted


def test_new_certificates_are_for_their_owner_alone_and_the_authority_signs_no_more(tmp_path: Path) -> None:
    made = new_certificates(tmp_path / "a" / "keys", days=30)
    assert made.folder.stat().st_mode & 0o777 == 0o700
    files = sorted(made.folder.iterdir())
    assert [path.name for path in files] == ["ca.pem", "certificate.pem", "key.pem"]
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    certificate = x509.load_pem_x509_certificate(made.certificate.read_bytes())
    certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(made.authority.read_bytes()))
    left = certificate.not_valid_after_utc - datetime.now(UTC)
    assert timedelta(days=29, hours=23) < left <= timedelta(days=30)
    assert read_certificates(made.folder) == made
    with pytest.raises(BadValue, match="is not empty"):
        new_certificates(made.folder)


def test_certificates_that_cannot_be_used_are_refused_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match=r"ca.pem cannot be read: .* \(make them with `twinnet cluster new`"):
        read_certificates(tmp_path / "none")
    made = new_certificates(tmp_path / "keys")
    made.key.chmod(0o644)
    with pytest.raises(BadFile, match="others may read the key"):
        read_certificates(made.folder)
    made.key.chmod(0o600)
    other = new_certificates(tmp_path / "other")
    made.key.write_bytes(other.key.read_bytes())
    with pytest.raises(BadFile, match="cannot be used"):
        read_certificates(made.folder)


@pytest.mark.parametrize(("moved", "reason"), [(31, "has expired on"), (-2, "set this machine's clock")])
def test_certificates_out_of_their_time_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moved: int, reason: str
) -> None:
    made = new_certificates(tmp_path / "keys", days=30)

    class Later(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) + timedelta(days=moved)

    monkeypatch.setattr(certificates, "datetime", Later)
    with pytest.raises(BadFile, match=reason):
        read_certificates(made.folder)


def test_without_the_extra_the_remedy_is_told(tmp_path: Path) -> None:
    lacking = "import sys; sys.modules['distributed'] = None"
    for arguments in (
        ["worker", "--at", "tls://127.0.0.1:8786"],
        ["scheduler", "--at", "tls://127.0.0.1:8786"],
        ["run", "tcp-udp-queues", "--preset", "tiny", "--clock", "virtual", "--on", "tls://127.0.0.1:8786"],
    ):
        done = subprocess.run(
            twinnet_command(*arguments, before=lacking), cwd=tmp_path, env=environment(), capture_output=True, text=True
        )
        assert done.returncode == 1
        assert (
            "distributed, which is not installed (install twinnet with its extra: pip install 'twinnet[cluster]')"
            in (done.stderr)
        )


def test_the_engine_is_imported_only_when_it_is_needed() -> None:
    program = (
        "import sys, twinnet, twinnet.cli.study_commands, twinnet.cli.cluster_commands; print('dask' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"


def test_a_run_waits_for_a_scheduler_that_was_just_started(monkeypatch: pytest.MonkeyPatch) -> None:
    from twinnet.cluster import contact

    asked: list[Address] = []

    def there_at_the_third_time(address: Address, certificates: object) -> None:
        asked.append(address)
        if len(asked) < 3:
            raise contact.NobodyThere("nobody")

    monkeypatch.setattr(contact, "check_scheduler", there_at_the_third_time)
    monkeypatch.setattr(contact, "_TRY_AGAIN_S", 0.0)
    contact.wait_for_scheduler(parse_address("tls://127.0.0.1:9"), None)
    assert len(asked) == 3
    with pytest.raises(contact.NobodyThere):
        asked.clear()
        contact.wait_for_scheduler(parse_address("tls://127.0.0.1:9"), None, patience_s=0.0)


def test_a_scheduler_that_is_not_there_is_named_with_the_remedy(tmp_path: Path) -> None:
    made = new_certificates(tmp_path / "keys")
    run = ["run", "tcp-udp-queues", "--preset", "tiny", "--clock", "virtual", "--keys", str(made.folder)]
    refused = CliRunner().invoke(cli, [*run, "--on", "tls://127.0.0.1:9"], standalone_mode=False)
    assert "no scheduler answers at tls://127.0.0.1:9: Connection refused (start it there: twinnet scheduler" in str(
        refused.exception
    )
    unknown = CliRunner().invoke(cli, [*run, "--on", "tls://nowhere.invalid:9"], standalone_mode=False)
    assert "the name 'nowhere.invalid' of the scheduler is not known" in str(unknown.exception)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--keys", "k"], "add --on tls://HOST:PORT"),
        (["--without-tls"], "add --on tls://HOST:PORT"),
        (["--on", "tls://a:1", "--jobs", "2"], "--jobs is given with --on"),
        (["--on", "tls://a:1", "--shard", "1/2"], "--shard is given with --on"),
        (["--on", "tcp://127.0.0.1:1", "--without-tls", "--keys", "k"], "--keys is given with --without-tls"),
    ],
)
def test_options_that_contradict_each_other_are_refused(arguments: list[str], reason: str) -> None:
    run = ["run", "tcp-udp-queues", "--preset", "tiny", "--clock", "virtual"]
    assert reason in str(CliRunner().invoke(cli, [*run, *arguments], standalone_mode=False).exception)
