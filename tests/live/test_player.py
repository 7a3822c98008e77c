"""The moment that the page shows, tried without a browser."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import twinnet.live

NODE = shutil.which("node")
PLAYER = Path(twinnet.live.__file__).parent / "page" / "player.js"

SCRIPT = """
import assert from "node:assert/strict";
const { Player } = await import(process.argv[1]);
const shown = [];
const player = new Player((number) => shown.push(player.ticks[number].now));
const add = (now, ways = [1]) => player.add({ now, ways });
for (const now of [1, 2, 3]) add(now);
assert.deepEqual(shown, [1, 2, 3], "the newest as it comes");
player.playing = false;
add(4);
assert.deepEqual(shown, [1, 2, 3], "it stands");
player.put(2.5);
assert.equal(shown.at(-1), 2);
player.playing = true;
player.speed = 0.5;
player.goOn(1);
assert.equal(shown.at(-1), 3, "half a second further");
add(5);
assert.equal(shown.at(-1), 3, "slower than the lab, it stays behind");
player.speed = 8;
player.goOn(1);
assert.equal(shown.at(-1), 5, "not beyond what is there");
add(6);
assert.equal(shown.at(-1), 6, "it has caught up");
player.put(-1);
assert.equal(shown.at(-1), 1);
for (let now = 7; now < 1000; now += 1) add(now, new Array(1000).fill(0));
assert.equal(player.ticks.length, 240, "a minute of a large network");
assert.equal(player.ticks[player.shown].now, player.span[0], "what is shown went with the oldest");
"""


@pytest.mark.skipif(NODE is None, reason="Node is not installed")
def test_the_shown_moment_follows_stands_and_goes_on_at_its_speed() -> None:
    assert NODE is not None
    done = subprocess.run(
        [NODE, "--input-type=module", "-e", SCRIPT, PLAYER.as_uri()], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
