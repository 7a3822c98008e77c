"""Groups that cannot be, and why they are refused (6.5)."""

from __future__ import annotations

from twinnet_conformance import openflow13 as of
from twinnet_conformance.bench import Bench, check
from twinnet_conformance.case import case

__all__: list[str] = []

REFUSED = "Groups: what is refused"
ADD, MODIFY, DELETE = range(3)


def _refused(title: str, code: int, *messages: of.Message) -> None:
    """Register a case: of `messages` the last one is refused with `code`."""

    @case("6.5", REFUSED, title)
    def _(bench: Bench) -> None:
        bench.obeyed(*messages[:-1])
        bench.refused(messages[-1], of.GROUP_MOD_FAILED, code)


_one = of.group_mod(1, of.GROUP_ALL)
_refused("a number that is taken: OFPGMFC_GROUP_EXISTS", 0, _one, _one)
_refused("modify of a group that is not there: OFPGMFC_UNKNOWN_GROUP", 8, of.group_mod(1, command=MODIFY))
_refused("indirect without a bucket: OFPGMFC_INVALID_GROUP", 1, of.group_mod(1, of.GROUP_INDIRECT))
_refused(
    "indirect with two buckets: OFPGMFC_INVALID_GROUP",
    1,
    of.group_mod(1, of.GROUP_INDIRECT, of.bucket(), of.bucket()),
)
_refused("a number above OFPG_MAX: OFPGMFC_INVALID_GROUP", 1, of.group_mod(of.MAX_GROUP + 1, of.GROUP_ALL))
_refused("OFPG_ALL to be added: OFPGMFC_INVALID_GROUP", 1, of.group_mod(of.ALL_GROUPS, of.GROUP_ALL))
_refused("OFPG_ANY to be added: OFPGMFC_INVALID_GROUP", 1, of.group_mod(0xFFFFFFFF, of.GROUP_ALL))
_refused("a type that does not exist: OFPGMFC_BAD_TYPE", 10, of.group_mod(1, 9))
_refused("a command that does not exist: OFPGMFC_BAD_COMMAND", 11, of.group_mod(1, command=9))
_refused(
    "a fast-failover bucket that watches nothing: OFPGMFC_BAD_WATCH",
    13,
    of.group_mod(1, of.GROUP_FAST_FAILOVER, of.bucket()),
)
_refused(
    "a bucket that watches a port that is not there: OFPGMFC_BAD_WATCH",
    13,
    of.group_mod(1, of.GROUP_FAST_FAILOVER, of.bucket(watch_port=77)),
)
_refused(
    "a bucket that watches a group that is not there: OFPGMFC_BAD_WATCH",
    13,
    of.group_mod(1, of.GROUP_FAST_FAILOVER, of.bucket(watch_group=77)),
)
_refused(
    "a group that leads to itself: OFPGMFC_LOOP",
    7,
    _one,
    of.group_mod(1, of.GROUP_ALL, of.bucket(of.group(1)), command=MODIFY),
)
for _kind, _name in ((of.GROUP_ALL, "all"), (of.GROUP_INDIRECT, "indirect"), (of.GROUP_FAST_FAILOVER, "fast failover")):
    _refused(
        f"a weight in a group that is {_name}: OFPGMFC_INVALID_GROUP",
        1,
        of.group_mod(1, _kind, of.bucket(weight=1, watch_port=2)),
    )
_refused(
    "a loop of three groups: OFPGMFC_LOOP",
    7,
    _one,
    of.group_mod(2, of.GROUP_ALL, of.bucket(of.group(1))),
    of.group_mod(3, of.GROUP_ALL, of.bucket(of.group(2))),
    of.group_mod(1, of.GROUP_ALL, of.bucket(of.group(3)), command=MODIFY),
)


@case("6.5", REFUSED, "a bucket that leads to a group that is not there: OFPBAC_BAD_OUT_GROUP")
def _(bench: Bench) -> None:
    bench.refused(of.group_mod(1, of.GROUP_ALL, of.bucket(of.group(9))), of.BAD_ACTION, 9)


@case("6.5", REFUSED, "a bucket with an output to ANY: OFPBAC_BAD_OUT_PORT")
def _(bench: Bench) -> None:
    bench.refused(of.group_mod(1, of.GROUP_ALL, of.bucket(of.output(of.ANY))), of.BAD_ACTION, 4)


@case("6.5", REFUSED, "a bucket with an action that does not exist: OFPBAC_BAD_TYPE")
def _(bench: Bench) -> None:
    bench.refused(of.group_mod(1, of.GROUP_ALL, of.bucket(of.action(99, bytes(4)))), of.BAD_ACTION, 0)


@case("6.5", REFUSED, "a bucket longer than its message is refused")
def _(bench: Bench) -> None:
    wrong = (64).to_bytes(2) + of.bucket()[2:]
    message = of.group_mod(1, of.GROUP_ALL, wrong)
    refusal = bench.refusal(message)
    check(refusal in ((of.BAD_REQUEST, 6), (of.GROUP_MOD_FAILED, 12)), f"{refusal}")
