"""A video over a line that is too slow for it: the rate that it needs, and the frames that arrive whole."""

import twinnet as tn


def network(rate: str) -> tn.Network:
    net = tn.Network(seed=4)
    s1 = net.switch("s1")
    net.link(net.host("camera"), s1, rate="100 Mbit")
    net.link(s1, net.host("screen"), rate=rate, delay="5 ms", queue=tn.qos.Fifo(limit_frames=50))
    return net


def whole_frames(rate: str) -> float:
    with network(rate).simulate() as lab:
        video = lab.start(tn.apps.rtp("camera", "screen", rate="2 Mbit", frames_per_second=25, duration="10 s"))
        lab.run_until("11 s")
        seen = video.report().rtp
        return seen.frames_complete / (seen.frames_complete + seen.frames_damaged + seen.frames_lost)


if __name__ == "__main__":
    for rate in ("4 Mbit", "1.8 Mbit"):
        print(f"over {rate}/s: {whole_frames(rate):.0%} of the frames arrive whole")
