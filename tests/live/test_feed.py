"""A slow reader gets the newest state, and nothing is kept for it; looks that cost much are less often."""

from __future__ import annotations

import asyncio

import pytest
from twinnet.live.feed import Feed
from twinnet.live.server import span_of_look


def test_who_is_slow_misses_what_came_between() -> None:
    async def play() -> tuple[list[bytes], list[bytes]]:
        feed = Feed()
        slow, quick = feed.messages(), feed.messages()
        waiting = [asyncio.ensure_future(anext(slow)), asyncio.ensure_future(anext(quick))]
        await asyncio.sleep(0)
        await feed.publish(b"0")
        seen = [await one for one in waiting]
        quickly = [seen[1]]
        for number in range(1, 1000):
            await feed.publish(str(number).encode())
            quickly.append(await anext(quick))
        await feed.publish(b"end", last=True)
        return [seen[0], *[message async for message in slow]], quickly

    slowly, quickly = asyncio.run(play())
    assert slowly == [b"0", b"end"]
    assert quickly == [str(number).encode() for number in range(1000)]


def test_readers_are_counted_until_they_leave() -> None:
    feed = Feed()
    with feed.reader(), feed.reader():
        assert feed.readers == 2
    assert feed.readers == 0


@pytest.mark.parametrize(("took_s", "span_s"), [(0.0, 0.25), (0.0099, 0.25), (0.02, 0.5), (0.04, 1.0), (9.0, 1.25)])
def test_looks_that_cost_more_are_less_often(took_s: float, span_s: float) -> None:
    assert span_of_look(took_s) == pytest.approx(span_s)
