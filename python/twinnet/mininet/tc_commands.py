"""The commands of ``tc`` that stand for the parameters of ``TCIntf``, for classes of scripts that change them.

Each has ``%s`` for the program and for the interface. The handles are those that Mininet's users see in ``tc qdisc
show``: 5: the rate, 6: RED, 10: netem.
"""

from __future__ import annotations

__all__ = ["delay_commands", "rate_commands"]

_TBF_MS_AT_1_MBIT = 15.0 * 8


def rate_commands(
    bw: float | None,
    use_hfsc: bool = False,
    use_tbf: bool = False,
    latency_ms: float | None = None,
    enable_ecn: bool = False,
    enable_red: bool = False,
) -> tuple[list[str], str]:
    """Return the commands that set the rate `bw` (Mbit/s), and where further disciplines go."""
    if not bw:
        return [], " root "
    rate = f"{bw:f}Mbit"
    if use_tbf:
        waiting = f"{_TBF_MS_AT_1_MBIT / bw if latency_ms is None else latency_ms:f}ms"
        commands = [f"%s qdisc add dev %s root handle 5: tbf rate {rate} burst 15000 latency {waiting}"]
    else:
        kind = "hfsc" if use_hfsc else "htb"
        share = f"sc rate {rate} ul rate {rate}" if use_hfsc else f"rate {rate} burst 15k"
        commands = [
            f"%s qdisc add dev %s root handle 5:0 {kind} default 1",
            f"%s class add dev %s parent 5:0 classid 5:1 {kind} {share}",
        ]
    if not enable_ecn and not enable_red:
        return commands, " parent 5:1 "
    words = f"limit 1000000 min 30000 max 35000 avpkt 1500 burst 20 bandwidth {bw:f}mbit probability 1"
    words += " ecn" if enable_ecn else ""
    return [*commands, f"%s qdisc add dev %s parent 5:1 handle 6: red {words}"], " parent 6: "


def delay_commands(
    parent: str,
    delay: str | float | None = None,
    jitter: str | float | None = None,
    loss: float | None = None,
    max_queue_size: float | None = None,
) -> tuple[list[str], str]:
    """Return the command that sets delay, losses (per cent) and limit below `parent`, and where further disciplines
    go."""
    words = [f"delay {delay}"] if delay else []
    words += [str(jitter)] if delay and jitter else []
    words += [f"loss {loss:.5f}"] if loss and 0 < loss <= 100 else []
    words += [f"limit {int(max_queue_size)}"] if max_queue_size is not None else []
    if not words:
        return [], parent
    return [f"%s qdisc add dev %s {parent.strip()} handle 10: netem {' '.join(words)}"], " parent 10:1 "
