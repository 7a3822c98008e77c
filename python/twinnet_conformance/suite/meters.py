"""Meters: bands, rates, bursts, and what is refused (5.7, 6.6)."""

from __future__ import annotations

import struct

from twinnet_conformance import openflow13 as of
from twinnet_conformance.bench import Bench, check
from twinnet_conformance.case import case
from twinnet_conformance.frames import build

__all__: list[str] = []

DROP = "Meters: drop"
REMARK = "Meters: DSCP remark"
CHANGES = "Meters: changes"
COUNTED = "Meters: statistics"
REFUSED = "Meters: what is refused"

IP = {"eth_type": 0x0800}
ADD, MODIFY, DELETE = range(3)


def _metered(bench: Bench, flags: int, *bands: bytes) -> None:
    bench.obeyed(of.meter_mod(1, flags, *bands))
    bench.flow(IP, of.use_meter(1), of.apply_actions(of.output(bench.p2)))


def _passed(bench: Bench, count: int, seconds: float = 0.0, frame: bytes | None = None) -> int:
    """Return how many of `count` frames come out, with a pause after each."""
    came = 0
    for _ in range(count):
        came += len(bench.frame(build() if frame is None else frame))
        if seconds:
            bench.advance(seconds)
    return came


@case("5.7.1", DROP, "frames within the rate pass, in frames a second")
def _(bench: Bench) -> None:
    _metered(bench, of.PKTPS | of.BURST, of.drop_band(10, 5))
    passed = _passed(bench, 20, 0.11)
    check(passed == 20, f"{passed} of 20 passed")


@case("5.7.1", DROP, "frames beyond the rate are dropped, in frames a second")
def _(bench: Bench) -> None:
    _metered(bench, of.PKTPS | of.BURST, of.drop_band(10, 5))
    passed = _passed(bench, 40, 0.05)
    # Half of them, and the burst.
    check(20 <= passed <= 26, f"{passed} of 40 passed")


@case("5.7.1", DROP, "frames beyond the rate are dropped, in kbit/s")
def _(bench: Bench) -> None:
    frame = build().ljust(1000, b"\0")
    _metered(bench, of.KBPS | of.BURST, of.drop_band(80, 40))
    passed = _passed(bench, 60, 0.05, frame)
    # 80 kbit/s are ten of these a second: half of them, and five for the burst.
    check(28 <= passed <= 37, f"{passed} of 60 passed")


@case("5.7.1", DROP, "frames within the rate pass, in kbit/s")
def _(bench: Bench) -> None:
    frame = build().ljust(1000, b"\0")
    _metered(bench, of.KBPS | of.BURST, of.drop_band(80, 40))
    passed = _passed(bench, 20, 0.11, frame)
    check(passed == 20, f"{passed} of 20 passed")


@case("5.7.1", DROP, "a burst passes at once, and no more")
def _(bench: Bench) -> None:
    _metered(bench, of.PKTPS | of.BURST, of.drop_band(1, 7))
    passed = _passed(bench, 30)
    check(7 <= passed <= 8, f"{passed} of a burst of 7 passed")


@case("5.7.1", DROP, "of two bands the highest one that is exceeded is applied")
def _(bench: Bench) -> None:
    _metered(bench, of.PKTPS | of.BURST, of.remark_band(1, 1, 1), of.drop_band(100, 10))
    came = [out for _ in range(8) for out in bench.frame(build(ip_dscp=10))]
    check(len(came) == 8, "dropped below the rate of the drop band")
    remarked = sum(frame == build(ip_dscp=12) for _, frame in came)
    check(remarked >= 6, f"{remarked} of 8 remarked")


@case("5.7", DROP, "several flows share a meter")
def _(bench: Bench) -> None:
    _metered(bench, of.PKTPS | of.BURST, of.drop_band(1, 6))
    bench.flow({"eth_type": 0x0806}, of.use_meter(1), of.apply_actions(of.output(bench.p2)))
    passed = sum(len(bench.frame(build())) + len(bench.frame(build(arp_op=1))) for _ in range(10))
    check(6 <= passed <= 7, f"{passed} passed")


@case("5.7", DROP, "frames of flows without the meter are not held")
def _(bench: Bench) -> None:
    _metered(bench, of.PKTPS | of.BURST, of.drop_band(1, 1))
    bench.forward({"eth_type": 0x0806})
    check(_passed(bench, 10, frame=build(arp_op=1)) == 10, "some were dropped")


@case("5.9", DROP, "a metered frame that is dropped goes to no later table")
def _(bench: Bench) -> None:
    bench.obeyed(of.meter_mod(1, of.PKTPS | of.BURST, of.drop_band(1, 2)))
    bench.flow(IP, of.use_meter(1), of.goto_table(1))
    bench.forward({}, table=1)
    passed = _passed(bench, 12)
    check(2 <= passed <= 3, f"{passed} passed")
    check(bench.one_flow(table=1).packets == passed, "the next table has seen more")


@case("5.7", DROP, "a flow may pass two meters, each in its table")
def _(bench: Bench) -> None:
    bench.obeyed(of.meter_mod(1, of.PKTPS | of.BURST, of.drop_band(1000, 1000)))
    bench.obeyed(of.meter_mod(2, of.PKTPS | of.BURST, of.drop_band(1, 3)))
    bench.flow(IP, of.use_meter(1), of.goto_table(1))
    bench.flow({}, of.use_meter(2), of.apply_actions(of.output(bench.p2)), table=1)
    passed = _passed(bench, 12)
    check(3 <= passed <= 4, f"{passed} passed")


for _dscp, _steps, _after in ((10, 1, 12), (10, 2, 14), (12, 1, 14), (26, 1, 28), (34, 2, 38)):

    @case("5.7.1", REMARK, f"DSCP {_dscp} rises its drop precedence by {_steps}: {_after}")
    def _(bench: Bench, dscp: int = _dscp, steps: int = _steps, after: int = _after) -> None:
        _metered(bench, of.PKTPS | of.BURST, of.remark_band(1, 1, steps))
        _passed(bench, 3)
        bench.passes(build(ip_dscp=dscp), build(ip_dscp=after))


@case("5.7.1", REMARK, "within the rate the DSCP stays")
def _(bench: Bench) -> None:
    _metered(bench, of.PKTPS | of.BURST, of.remark_band(100, 10, 1))
    bench.passes(build(ip_dscp=10))


@case("5.7.1", REMARK, "DSCP of IPv6")
def _(bench: Bench) -> None:
    six = {"eth_type": 0x86DD}
    bench.obeyed(of.meter_mod(1, of.PKTPS | of.BURST, of.remark_band(1, 1, 1)))
    bench.flow(six, of.use_meter(1), of.apply_actions(of.output(bench.p2)))
    for _ in range(3):
        bench.frame(build(**six))
    bench.passes(build(**six, ip_dscp=10), build(**six, ip_dscp=12))


@case("5.7.1", REMARK, "a frame that is not IP passes unchanged")
def _(bench: Bench) -> None:
    bench.obeyed(of.meter_mod(1, of.PKTPS | of.BURST, of.remark_band(1, 1, 1)))
    bench.flow({}, of.use_meter(1), of.apply_actions(of.output(bench.p2)))
    for _ in range(3):
        bench.passes(build(arp_op=1))


@case("6.6", CHANGES, "modify changes the rate")
def _(bench: Bench) -> None:
    _metered(bench, of.PKTPS | of.BURST, of.drop_band(1, 1))
    _passed(bench, 5)
    bench.obeyed(of.meter_mod(1, of.PKTPS | of.BURST, of.drop_band(1000, 1000), command=MODIFY))
    bench.advance(1)
    check(_passed(bench, 10) == 10, "some were dropped")


@case("6.6", CHANGES, "delete takes the flows that use the meter")
def _(bench: Bench) -> None:
    _metered(bench, of.KBPS, of.drop_band(1000))
    bench.forward({"eth_type": 0x0806})
    bench.obeyed(of.meter_mod(1, command=DELETE))
    check(len(bench.flows()) == 1, f"{len(bench.flows())} flows")


@case("6.6", CHANGES, "delete of OFPM_ALL takes every meter")
def _(bench: Bench) -> None:
    for number in (1, 2, 3):
        bench.obeyed(of.meter_mod(number, of.KBPS, of.drop_band(1000)))
    bench.obeyed(of.meter_mod(of.ALL_METERS, command=DELETE))
    check(bench.multipart(of.MP_METER_CONFIG, of.ALL_METERS.to_bytes(4) + bytes(4)) == b"", "meters are left")


@case("6.6", CHANGES, "delete of a meter that is not there is no error")
def _(bench: Bench) -> None:
    bench.obeyed(of.meter_mod(7, command=DELETE))


@case("6.6", CHANGES, "a meter without bands lets everything pass")
def _(bench: Bench) -> None:
    _metered(bench, of.KBPS)
    check(_passed(bench, 5) == 5, "some were dropped")


def _statistics(bench: Bench, number: int) -> tuple[int, int, int, int, list[tuple[int, int]]]:
    """Return flows, frames, bytes and age of a meter, and frames and bytes of its bands."""
    body = bench.multipart(of.MP_METER, number.to_bytes(4) + bytes(4))
    found, length, flows, frames, count, seconds, _ = struct.unpack_from("!IH6xIQQII", body)
    check(found == number and length == len(body), f"meter {found}, {length} of {len(body)} bytes")
    bands = [struct.unpack_from("!QQ", body, at) for at in range(40, length, 16)]
    return flows, frames, count, seconds, [(int(one[0]), int(one[1])) for one in bands]


@case("7.3.5.12", COUNTED, "frames and bytes that came to the meter, and those of its band")
def _(bench: Bench) -> None:
    _metered(bench, of.PKTPS | of.BURST, of.drop_band(1, 4))
    passed = _passed(bench, 10)
    _, frames, count, _, bands = _statistics(bench, 1)
    size = len(build())
    check((frames, count) == (10, 10 * size), f"{frames} frames, {count} bytes")
    check(bands == [(10 - passed, (10 - passed) * size)], f"bands {bands}")


@case("7.3.5.12", COUNTED, "how many flows use the meter")
def _(bench: Bench) -> None:
    _metered(bench, of.KBPS, of.drop_band(1000))
    bench.flow({"eth_type": 0x0806}, of.use_meter(1))
    check(_statistics(bench, 1)[0] == 2, f"{_statistics(bench, 1)[0]} flows")


@case("7.3.5.12", COUNTED, "how long the meter has been there")
def _(bench: Bench) -> None:
    bench.obeyed(of.meter_mod(1, of.KBPS, of.drop_band(1000)))
    bench.advance(3)
    check(_statistics(bench, 1)[3] == 3, f"{_statistics(bench, 1)[3]} s")


@case("7.3.5.12", COUNTED, "all meters are reported for OFPM_ALL")
def _(bench: Bench) -> None:
    for number in (5, 6):
        bench.obeyed(of.meter_mod(number, of.KBPS, of.drop_band(1000)))
    body = bench.multipart(of.MP_METER, of.ALL_METERS.to_bytes(4) + bytes(4))
    check(len(body) == 2 * 56, f"{len(body)} bytes")


@case("7.3.5.12", COUNTED, "a meter that is not there is OFPMMFC_UNKNOWN_METER")
def _(bench: Bench) -> None:
    bench.refused(of.multipart(of.MP_METER, (7).to_bytes(4) + bytes(4)), of.METER_MOD_FAILED, 3)


@case("7.3.5.13", COUNTED, "the configuration is reported as it was made")
def _(bench: Bench) -> None:
    band = of.drop_band(1234, 56)
    bench.obeyed(of.meter_mod(9, of.PKTPS | of.BURST | of.METER_STATS, band))
    body = bench.multipart(of.MP_METER_CONFIG, (9).to_bytes(4) + bytes(4))
    length, flags, number = struct.unpack_from("!HHI", body)
    reported = (length, flags, number, body[8:])
    check(reported == (24, of.PKTPS | of.BURST | of.METER_STATS, 9, band), f"{reported}")


@case("7.3.5.13", COUNTED, "the configuration of a remark band is reported as it was made")
def _(bench: Bench) -> None:
    band = of.remark_band(1234, 56, 2)
    bench.obeyed(of.meter_mod(9, of.KBPS | of.BURST, band))
    body = bench.multipart(of.MP_METER_CONFIG, (9).to_bytes(4) + bytes(4))
    check(body[8:] == band, f"{body[8:].hex()}")


@case("7.3.5.14", COUNTED, "the features report drop and DSCP remark")
def _(bench: Bench) -> None:
    most, kinds, capabilities = struct.unpack_from("!III", bench.multipart(of.MP_METER_FEATURES))
    check(most > 0, "no meters")
    check(kinds & 0b110 == 0b110, f"kinds of bands {kinds:#b}")
    check(capabilities & 0b1111 == 0b1111, f"capabilities {capabilities:#b}")


def _refused(title: str, code: int, *messages: of.Message) -> None:
    @case("6.6", REFUSED, title)
    def _(bench: Bench) -> None:
        bench.obeyed(*messages[:-1])
        bench.refused(messages[-1], of.METER_MOD_FAILED, code)


_band = of.drop_band(1000, 100)
_one = of.meter_mod(1, of.KBPS, _band)
_refused("a number that is taken: OFPMMFC_METER_EXISTS", 1, _one, _one)
_refused("modify of a meter that is not there: OFPMMFC_UNKNOWN_METER", 3, of.meter_mod(1, of.KBPS, command=MODIFY))
_refused("number 0: OFPMMFC_INVALID_METER", 2, of.meter_mod(0, of.KBPS, _band))
_refused("a number above OFPM_MAX: OFPMMFC_INVALID_METER", 2, of.meter_mod(of.MAX_METER + 1, of.KBPS, _band))
_refused("OFPM_ALL to be added: OFPMMFC_INVALID_METER", 2, of.meter_mod(of.ALL_METERS, of.KBPS, _band))
_refused("a command that does not exist: OFPMMFC_BAD_COMMAND", 4, of.meter_mod(1, of.KBPS, _band, command=9))
_refused("both units: OFPMMFC_BAD_FLAGS", 5, of.meter_mod(1, of.KBPS | of.PKTPS, _band))
_refused("flags that do not exist: OFPMMFC_BAD_FLAGS", 5, of.meter_mod(1, of.KBPS | 0x8000, _band))
_refused(
    "a band of a type that does not exist: OFPMMFC_BAD_BAND",
    8,
    of.meter_mod(1, of.KBPS, b"\0\x09" + _band[2:]),
)
_refused("a band of rate 0: OFPMMFC_BAD_RATE", 6, of.meter_mod(1, of.KBPS, of.drop_band(0)))
