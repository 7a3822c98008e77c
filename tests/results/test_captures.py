"""Captures as the library and the command line read them; formats and damage are tested in crates/capture/tests."""

from __future__ import annotations

import gzip
import json
import random
import struct
from pathlib import Path

import numpy as np
import pytest
from capture_files import Stamped, frame, noisy_rtp, rtp, udp, write_pcap
from click.testing import CliRunner
from twinnet.cli.analyze_command import analyze
from twinnet.errors import BadFile, BadValue
from twinnet.results.capture_comparison import compare_captures, quantities_of
from twinnet.results.captures import analyze_capture, match_captures

START_NS = 1_700_000_000_000_000_000
A, B = ("10.0.0.1", 4000), ("10.0.0.2", 53)


def told(*arguments: object) -> str:
    done = CliRunner().invoke(analyze, [str(one) for one in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_both_directions_make_one_conversation(tmp_path: Path) -> None:
    packets = [(START_NS, udp(A, B, b"who?")), (START_NS + 250_000_000, udp(B, A, b"me, here"))]
    found = analyze_capture(write_pcap(tmp_path / "a.pcap", packets))
    (row,) = found.conversations.to_dicts()
    assert (row["a_address"], row["a_port"], row["b_port"], row["protocol"]) == ("10.0.0.1", 4000, 53, "udp")
    assert (row["packets_a_to_b"], row["bytes_a_to_b"], row["payload_bytes_b_to_a"]) == (1, 46, 8)
    assert (row["start_ns"], row["duration_ns"]) == (START_NS, 250_000_000)
    assert found.host_pairs["packets"].to_list() == [2] and found.notes == ()


def test_throughput_counts_every_layer_in_whole_intervals(tmp_path: Path) -> None:
    packets = [(START_NS + index * 10_000_000, udp(A, B, bytes(958))) for index in range(100)]
    found = analyze_capture(write_pcap(tmp_path / "a.pcap", packets), interval="100 ms")
    for layer, size in (("payload", 958), ("network", 986), ("link", 1000), ("wire", 1024)):
        rates = found.throughput(layer)["throughput_bps"].to_list()
        assert rates == [size * 8 * 100.0] * 9


def test_rtp_is_found_on_any_port_and_random_payload_is_not_taken_for_it(tmp_path: Path) -> None:
    chance = random.Random(3)
    packets: list[Stamped] = []
    for index in range(200):
        time = START_NS + index * 1_000_000
        packets.append((time, udp(("10.0.0.1", 7000), ("10.0.0.2", 7002), rtp(index, index * 90))))
        packets.append((time + 1000, udp(A, B, b"\x80" + chance.randbytes(199))))
    found = analyze_capture(write_pcap(tmp_path / "a.pcap", packets))
    assert found.rtp_streams.select("source_port", "packets", "lost").rows() == [(7000, 200, 0)]
    assert analyze_capture(tmp_path / "a.pcap", find_rtp=False).rtp_streams.is_empty()


def test_a_dynamic_payload_type_has_jitter_when_its_clock_rate_is_given(tmp_path: Path) -> None:
    path = write_pcap(tmp_path / "a.pcap", noisy_rtp(100, seed=1, payload_type=96, loss=0, swap=0))
    (unknown,) = analyze_capture(path).rtp_streams.to_dicts()
    assert unknown["max_jitter_ms"] is None and "--clock-rate 96=HERTZ" in unknown["notes"]
    same = write_pcap(tmp_path / "b.pcap", noisy_rtp(100, seed=1, payload_type=33, loss=0, swap=0))
    (known,) = analyze_capture(path, clock_rates={96: 90_000}).rtp_streams.to_dicts()
    assert known["max_jitter_ms"] == analyze_capture(same).rtp_streams["max_jitter_ms"][0] > 0


def tunnelled(inner: bytes) -> bytes:
    return frame("192.0.2.1", "192.0.2.2", 47, struct.pack("!HHI", 0x2000, 0x6558, 7) + inner, number=99)


def tagged(inner: bytes) -> bytes:
    return inner[:12] + b"\x81\x00\x00\x05" + inner[12:]


def test_packets_are_known_again_behind_routers_vlans_and_tunnels(tmp_path: Path) -> None:
    sent = [(START_NS + i * 1_000_000, udp(A, B, struct.pack("!Q", i) + bytes(92), number=i)) for i in range(400)]
    arrived: list[Stamped] = []
    for index, (time, _) in enumerate(sent):
        if index % 40 == 20:
            continue
        behind = udp(A, B, struct.pack("!Q", index) + bytes(92), number=index, ttl=61)
        change = (tagged, tunnelled, bytes)[index % 3]
        arrived.append((time + 5_000_000 + (index % 2) * 2_000_000, change(behind)))
    arrived.sort()
    first, second = (write_pcap(tmp_path / name, packets) for name, packets in (("1.pcap", sent), ("2.pcap", arrived)))
    matched = match_captures([first, second], every_packet=True)
    (row,) = matched.segments.to_dicts()
    assert (row["direction"], row["sent"], row["matched"], row["lost"], row["appeared"]) == ("forward", 400, 390, 10, 0)
    assert (row["min_delay_ms"], row["max_delay_ms"], matched.packets.height) == (5.0, 7.0, 390)
    (back,) = match_captures([second, first]).segments.to_dicts()
    assert (back["direction"], back["sent"], back["lost"]) == ("backward", 400, 10)
    # Only even packets were lost, those of 5 ms: 190 of them and 200 of 7 ms are left.
    assert back["mean_delay_ms"] == pytest.approx((190 * 5 + 200 * 7) / 390)


def test_what_the_other_capture_could_not_see_is_not_lost(tmp_path: Path) -> None:
    sent = [(START_NS + i * 1_000_000, udp(A, B, struct.pack("!Q", i), number=i)) for i in range(100)]
    first = write_pcap(tmp_path / "1.pcap", sent)
    second = write_pcap(tmp_path / "2.pcap", [(time + 1000, packet) for time, packet in sent[30:80]])
    (row,) = match_captures([first, second]).segments.to_dicts()
    assert (row["matched"], row["lost"], row["outside"]) == (50, 0, 50)


def test_clocks_that_differ_are_told_not_hidden(tmp_path: Path) -> None:
    def there_and_back(offset_ns: int, delay_ns: int) -> list[Stamped]:
        both = [
            packet
            for i in range(50)
            for packet in (
                (START_NS + i * 10_000_000 + offset_ns + delay_ns, udp(A, B, b"?", number=i)),
                (START_NS + i * 10_000_000 + offset_ns + 5_000_000 - delay_ns, udp(B, A, b"!", number=i)),
            )
        ]
        return sorted(both)

    first = write_pcap(tmp_path / "1.pcap", there_and_back(0, 0))
    second = write_pcap(tmp_path / "2.pcap", there_and_back(3_000_000, 1_000_000))
    (note,) = match_captures([first, second]).notes
    assert "clocks of the two captures differ, by about 3.000 ms" in note
    fair = write_pcap(tmp_path / "3.pcap", there_and_back(0, 1_000_000))
    assert match_captures([first, fair]).notes == ()


def test_two_sets_are_compared_by_their_statistics(tmp_path: Path) -> None:
    paths = [write_pcap(tmp_path / f"{n}.pcap", noisy_rtp(800, seed=n, loss=0.0, swap=0)) for n in range(3)]
    paths.append(write_pcap(tmp_path / "3.pcap", noisy_rtp(800, seed=9, loss=0.2, swap=0)))
    quantities = [quantities_of([analyze_capture(path, interval="100 ms", every_packet=True)]) for path in paths]
    alike, other = (compare_captures(quantities[0], quantities[n]) for n in (1, 3))
    assert alike["quantity"].to_list() == ["throughput", "bandwidth", "delta", "jitter"]
    (delta,) = other.filter(other["quantity"] == "delta").to_dicts()
    (same,) = alike.filter(alike["quantity"] == "delta").to_dicts()
    # A fifth of the packets missing makes the mean interval a quarter longer: 2.5 ms instead of 2.
    assert delta["welch_p"] < 1e-6 and 0.4 < delta["difference_of_means"] < 0.6 and abs(same["hedges_g"]) < 0.15
    samples = quantities[0][2].samples
    assert delta["first_samples"] == 799 and np.isclose(delta["first_variance"], samples.var(ddof=1))
    pooled = quantities_of([analyze_capture(path, interval="100 ms", every_packet=True) for path in paths[:2]])
    assert pooled[2].samples.size == 2 * 799


def test_the_command_tells_json_csv_and_figures(tmp_path: Path) -> None:
    paths = [write_pcap(tmp_path / f"{n}.pcap", noisy_rtp(300, seed=n)) for n in range(2)]
    (one,) = json.loads(told(paths[0], "--json", "--rtp-port", 5004))
    assert one["rtp_streams"][0]["payload"] == "MP2T" and one["notes"] == [] and one["whole"] is True
    assert "RTP streams\n" in told(paths[0]) and "0x000DECAF" in told(paths[0])
    told(*paths, "--csv", tmp_path / "csv")
    assert (tmp_path / "csv/0-rtp_packets.csv").read_text().startswith("stream,packet,time_ns,sequence,delta_ms")
    output = told(paths[0], "--compare", paths[1], "--labels", "real,virtual", "--out", tmp_path / "figures")
    assert "virtual - real" in output and (tmp_path / "figures/jitter.svg").stat().st_size > 1000
    matched = json.loads(told(*paths, "--match", "--json"))
    assert matched["segments"][0]["source_port"] == 40_000


def test_a_cut_and_compressed_file_is_told_beside_its_numbers(tmp_path: Path) -> None:
    whole = write_pcap(tmp_path / "a.pcap", noisy_rtp(100, seed=1, loss=0, swap=0)).read_bytes()
    cut = tmp_path / "cut.pcap.gz"
    cut.write_bytes(gzip.compress(whole[: len(whole) // 2]))
    output = told(cut)
    assert "note: the file is cut off in packet 50; the numbers are those of the packets before it" in output
    assert "49 packets" in output and "(pcap, gzip)" in output


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty or cut off within its first header"),
        (b"PK\x03\x04 something", "no capture; pcap and pcapng are read"),
        (struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 105), "link type 105 is not looked into; known are"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_name(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "it"
    path.write_bytes(content)
    with pytest.raises(BadFile, match=f"it: .*{message}"):
        analyze_capture(path)
    good = write_pcap(tmp_path / "good.pcap", noisy_rtp(10, seed=1))
    with pytest.raises(BadFile, match=f"it: .*{message}"):
        match_captures([good, path])


def test_options_out_of_range_are_refused(tmp_path: Path) -> None:
    path = write_pcap(tmp_path / "a.pcap", noisy_rtp(10, seed=1))
    with pytest.raises(BadFile, match="No such file"):
        analyze_capture(tmp_path / "absent")
    with pytest.raises(BadFile, match="not a regular file"):
        analyze_capture(tmp_path)
    for options in ({"interval": "10 ns"}, {"rtp_ports": [0]}, {"clock_rates": {200: 1}}, {"most_conversations": 0}):
        with pytest.raises(BadValue):
            analyze_capture(path, **options)  # pyright: ignore[reportArgumentType]
    with pytest.raises(BadValue, match="at least two captures"):
        match_captures([path])
    refused = CliRunner().invoke(analyze, [str(path), "--clock-rate", "video"])
    assert refused.exit_code == 2 and "PAYLOAD-TYPE=HERTZ" in refused.output


def test_every_column_is_explained(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/reference/capture-columns.md").read_text()
    path = write_pcap(tmp_path / "a.pcap", noisy_rtp(100, seed=1))
    found = analyze_capture(path, every_packet=True)
    matched = match_captures([path, path], every_packet=True)
    frames = [found.capture, found.conversations, found.host_pairs, found.intervals, found.throughput()]
    frames += [found.rtp_streams, found.rtp_packets, found.tcp, matched.segments, matched.packets]
    columns = {column for one in frames for column in one.columns}
    compared = compare_captures(quantities_of([found]), quantities_of([found])).columns
    columns |= {column.removeprefix("first_").removeprefix("second_") for column in compared}
    assert not sorted(column for column in columns if f"`{column}`" not in page)
