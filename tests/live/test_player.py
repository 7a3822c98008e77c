"""The moment that the page shows, tried without a browser."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import twinnet.live

NODE = shutil.which("node")
PLAYER = Path(twinnet.live.__file__).parent / "page" / "player.js"

MOMENTS = """
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
const stopped = new Player((number) => shown.push(stopped.ticks[number].now));
stopped.playing = false;
stopped.add({ now: 70, ways: [1] });
assert.equal(stopped.shown, null);
stopped.playing = true;
stopped.goOn(0.1);
assert.equal(shown.at(-1), 70, "stopped before anything came, it shows the newest when it goes on");
"""

THINNING = """
import assert from "node:assert/strict";
const { Player } = await import(process.argv[1]);
const { merged } = await import(process.argv[1].replace("player.js", "thinning.js"));
const quiet = { at_s: 0, late_s: 0 };
const way = { known: true, rate: 0, load: 0, queue: 0, drops: 0, marks: 0, up: true, line: 8 };
// A network of 600 directions, four times a second for half an hour. The first carries a bit/s more each second.
const player = new Player(() => {});
const idle = new Array(599).fill(way);
let drops = 0;
for (let look = 1; look <= 7200; look += 1) {
  const now = look / 4;
  drops += look % 7;
  player.add({ now, elapsed: 0.25, ways: [{ ...way, rate: now, queue: look % 100, drops: 4 * (look % 7) }, ...idle],
    verdict: quiet });
}
const { ticks, span, shown } = player;
assert.equal(ticks.length, 360);
assert.equal(shown, 359, "it follows");
assert.deepEqual(span.map((one) => Math.round(one / 100)), [0, 18], "the whole run is within reach");
const newest = ticks.slice(-240);
const isWhole = ({ now, elapsed }, place) => now === 1740.25 + place / 4 && elapsed === 0.25;
assert.ok(newest.every(isWhole), "the newest minute");
const old = ticks.slice(0, -240);
const looks = old.map((one) => one.looks ?? 1);
assert.ok(looks.every((one) => Number.isInteger(Math.log2(one))));
assert.ok(looks.every((one, place) => place === 0 || one <= looks[place - 1]), "none older is finer");
// Of 6960 looks in 120 ticks, each has 58 on average: 64 or 32, but for the last few.
assert.ok(Math.max(...looks) === 64 && looks.filter((one) => one < 32).length < 7, String(looks));
assert.equal(looks.reduce((sum, one) => sum + one, 0), 7200 - 240, "none is lost");
// Each begins where the one before ends; its rate is the mean of its looks, its queue their largest.
for (const [place, { now, elapsed, ways }] of old.entries()) {
  assert.ok(Math.abs(now - elapsed - (old[place - 1]?.now ?? 0)) < 1e-9);
  assert.ok(Math.abs(ways[0].rate - (now - elapsed / 2 + 0.125)) < 1e-6);
}
assert.deepEqual(old.slice(0, 2).map(({ ways }) => ways[0].queue), [64, 99]);
const counted = ticks.reduce((sum, { elapsed, ways }) => sum + elapsed * ways[0].drops, 0);
assert.ok(Math.abs(counted - drops) < 1e-6, "drops add up");
// What is shown stays where it is while it becomes coarser, and goes on.
player.playing = false;
player.put(900);
const before = player.shown;
for (let look = 7201; look <= 9000; look += 1) {
  player.add({ now: look / 4, elapsed: 0.25, ways: [way, ...idle], verdict: quiet });
}
assert.ok(player.shown < before && Math.abs(player.ticks[player.shown].now - 900) < 64);
player.put(0);
assert.equal(player.shown, 0);
// Two unequal intervals: means by their lengths.
const tick = (now, elapsed, one, verdict = quiet) => ({ now, elapsed, ways: [{ ...way, ...one }], verdict });
const many = { rate: 8, load: null, queue: 3, classes: [3, 0], drops: 6, reasons: { early: 6 }, lossy: true };
const late = { at_s: 3, late_s: 1, state: "doubtful" };
const next = tick(4, 1, { reasons: { overlimit: 4 }, drops: 4 }, { at_s: 4, late_s: 0 });
const both = merged(tick(3, 3, many, late), next);
assert.deepEqual([both.now, both.elapsed, both.looks], [4, 4, 2]);
const [{ rate, load, queue, classes, drops: lost, reasons }] = both.ways;
assert.deepEqual([rate, load, queue, classes, lost], [6, 0, 3, [3, 0], 5.5]);
assert.deepEqual(reasons, { early: 4.5, overlimit: 1 });
assert.deepEqual(both.verdict, { at_s: 3, late_s: 1 }, "the later state, and the time for which it was late");
const twice = merged(tick(3, 1, {}, late), tick(5, 1, {}, { at_s: 5, late_s: 0.5 }));
assert.deepEqual(twice.verdict, { at_s: 5, late_s: 3 });
const unknown = merged(tick(1, 1, { known: false }), tick(2, 1, { rate: 7 }));
assert.equal(unknown.ways[0].rate, 7);
"""


@pytest.mark.skipif(NODE is None, reason="Node is not installed")
@pytest.mark.parametrize("script", [MOMENTS, THINNING], ids=["moments", "thinning"])
def test_the_shown_moment_follows_stands_and_goes_on_and_old_ones_become_means(script: str) -> None:
    assert NODE is not None
    done = subprocess.run(
        [NODE, "--input-type=module", "-e", script, PLAYER.as_uri()], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
