"""What the page computes, tried without a browser."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import twinnet.live

NODE = shutil.which("node")
PAGE = Path(twinnet.live.__file__).parent / "page"

HEAT = """
import assert from "node:assert/strict";
const { heatCells, heatColour, heatOrder, QUANTITIES } = await import(`${process.argv[1]}/heat.js`);
assert.deepEqual(heatColour(0), [68, 1, 84]);
assert.deepEqual(heatColour(1), [253, 231, 37]);
assert.deepEqual(heatColour(0.25), [59, 82, 139]);
assert.deepEqual(heatColour(9), heatColour(1));
const way = (load, queue = 0) => ({ load, queue });
assert.equal(QUANTITIES.load(way(null)), null, "no line rate");
assert.equal(QUANTITIES.load(way(1.01)), 1);
assert.equal(QUANTITIES.queue(way(null, 0)), 0);
assert.equal(QUANTITIES.queue(way(null, 1000)), 1);
// Sixty seconds have 240 columns: four a second. News at 54, 55 and, after a gap, at 60 s.
const ticks = [54, 55, 60].map((now, place) => ({ now, ways: [way(0.5), way(null), way(place === 2 ? 1 : 0.75)] }));
const cells = heatCells(ticks, 60, QUANTITIES.load);
assert.equal(cells.length, 3 * 240);
const columns = [...Array(240).keys()];
const known = (row) => columns.filter((at) => !Number.isNaN(cells[row * 240 + at]));
assert.deepEqual(known(0), [215, 216, 217, 218, 219, 239], "what nobody has seen is empty");
assert.deepEqual(known(1), []);
assert.equal(cells[2 * 240 + 219], 0.75);
assert.equal(cells[2 * 240 + 239], 1);
assert.deepEqual(heatOrder(cells, false), [0, 1, 2]);
assert.deepEqual(heatOrder(cells, true), [2, 0, 1]);
assert.equal(heatCells([], 60, QUANTITIES.load).length, 0);
"""

CURVES = """
import assert from "node:assert/strict";
const { differencesOf, hatching, isAfterGap, ticksWithin } = await import(`${process.argv[1]}/curves.js`);
assert.equal(isAfterGap({ now: 2 }, 0.4), true);
assert.equal(isAfterGap({ now: 2, elapsed: 5 }, -4), false, "intervals of five seconds");
const at = (now, value) => ({ now, value });
const ours = [at(1, 5), at(2, 7), at(3, 9), at(30, 1)];
const theirs = [at(1.0004, 1), at(2.2, 2), at(3, null)];
const found = differencesOf(ours, theirs, ({ value }) => value);
assert.deepEqual(ours.map((one) => found.get(one)), [4, 5, undefined, undefined]);
assert.equal(differencesOf(ours, [], ({ value }) => value).size, 0);
// 1.1 - (1.1 - 0.1) is more than 0.1 by rounding: the first tick of a whole recording is drawn all the same.
assert.ok(1.1 - (1.1 - 0.1) > 0.1);
assert.equal(ticksWithin([at(0.1), at(0.7), at(1.1), at(4)], 1.1, 1.1 - 0.1).length, 3);
assert.equal(ticksWithin([at(0.4), at(2)], 3.3, 2).length, 1);
assert.equal(differencesOf([at(1, 1)], [at(9, 1)], ({ value }) => value).size, 0, "not of another time");
const points = (path) => [...path.matchAll(/[ML]([\\d.]+) ([\\d.]+)/g)].map((one) => one.slice(1, 3).map(Number));
const [first, second] = [hatching(0, 30, 26, 172), hatching(30, 31, 26, 172)].map(points);
assert.ok(first.every(([x, y]) => x >= 0 && x <= 30 && y >= 26 && y <= 172));
// All lines are slanted alike, and lie twelve apart, so that those of the second go on where the first end.
assert.ok([...first, ...second].every(([x, y]) => Math.abs(((x + y + 6) % 12) - 6) < 0.11));
assert.ok(second.length >= 24, "however narrow, it is seen");
"""

FINE = """
import assert from "node:assert/strict";
const { askedFor, finest, sampledTicks } = await import(`${process.argv[1]}/fine.js`);
const row = (now) => [now, [8, null, 2, 1, true, null], [0, null, 0, 0, true, null]];
const fine = sampledTicks([2.5, 3].map(row), 0.5, 4);
assert.deepEqual(Object.keys(fine[0].ways), ["8", "9"]);
assert.deepEqual([fine[0].elapsed, fine[1].ways[8].queue, fine[1].ways[8].drops, fine[1].ways[9].rate], [0.5, 2, 2, 0]);
const look = (now) => ({ now, elapsed: 1 });
const looks = [1, 2, 3, 3.5, 4, 5].map(look);
assert.deepEqual(finest(looks, fine).map(({ now }) => now), [1, 2, 2.5, 3, 4, 5], "what was sampled is told once");
assert.equal(finest(looks, []), looks);
// A moment that is rounded up leaves nothing out and asks for nothing twice: samples lie 20 ms apart.
assert.equal(askedFor(new Map([[4, fine], [7, []], [9, [{ now: 1.23456 }]]]), 1.5), "4=3.001&7=1.500&9=1.235");
const many = new Map(Array.from({ length: 64 }, (_, nth) => [1900 + nth, [{ now: 12345.678 }]]));
assert.ok(askedFor(many, 0).length < 1000, "no longer than the server takes");
"""

FOLLOW = """
import assert from "node:assert/strict";
const { waysOf } = await import(`${process.argv[1]}/follow.js`);
const links = [{ a_port: "h1-eth0", b_port: "s1-eth1" }, { a_port: "s1-eth2", b_port: "h2-eth0" }];
const leaves = (...names) => ({ exits: names.map((name) => ({ interface: name })) });
assert.deepEqual(waysOf([leaves("h1-eth0"), leaves("s1-eth2", "s1-eth1"), leaves()], links), [0, 1, 2]);
assert.deepEqual(waysOf([], links), []);
"""

FLOWS = """
import assert from "node:assert/strict";
const { flowChanges, flowKey, flowRow } = await import(`${process.argv[1]}/flows.js`);
const counted = "duration=8.1s, table=2, n_packets=7, n_bytes=420";
const row = flowRow(` cookie=0x1f, ${counted}, priority=9,ip,nw_dst=10.0.0.4 actions=set_queue:1,output:2`);
assert.deepEqual(row, {
  table: 2, priority: 9, match: "ip, nw_dst=10.0.0.4", actions: "set_queue:1,output:2",
  packets: 7, bytes: 420,
});
const other = flowRow("cookie=0x0, n_packets=1, n_bytes=60, idle_timeout=10, idle_age=3, actions=drop");
assert.deepEqual([other.priority, other.match, other.actions], [32768, "idle_timeout=10", "drop"]);
const before = new Map([[flowKey(row), row]]);
const [more, fresh] = flowChanges(before, [{ ...row, packets: 8 }, other]);
assert.deepEqual([more.counts, more.isNew, fresh.counts, fresh.isNew], [true, false, false, true]);
assert.equal(flowChanges(before, [row])[0].counts, false);
assert.equal(flowChanges(null, [row])[0].isNew, false, "at the first look nothing is new");
"""

GROUPS = """
import assert from "node:assert/strict";
const { groupRows } = await import(`${process.argv[1]}/groups.js`);
const none = { groups: [], meters: [] };
const counted = (frames) => ({ frames, bytes: 60 * frames });
const bucket = { actions: "output:2", weight: 0, watch_port: 2, live: false, ...counted(3) };
const group = { group: 7, kind: "fast_failover", ...counted(5), buckets: [bucket] };
const chosen = { group: 8, kind: "select", ...counted(0), buckets: [{ ...bucket, watch_port: undefined, weight: 9 }] };
const bands = [{ rate: 10, ...counted(1) }, { rate: 20, raises: 2, ...counted(0) }];
const meter = { meter: 1, unit: "pktps", ...counted(4), bands };
const first = { groups: [group, chosen], meters: [meter, { ...meter, meter: 2, unit: "kbps" }] };
const rows = groupRows(first, null);
assert.deepEqual(rows.map((row) => row.cells.slice(0, 4)), [
  ["group 7", "fast failover", "", 5],
  ["", "bucket 0, port 2 down", "output:2", 3],
  ["group 8", "select", "", 0],
  ["", "bucket 0, weight 9", "output:2", 3],
  ["meter 1", "", "measures", 4],
  ["", "above 10 frames/s", "drops", 1],
  ["", "above 20 frames/s", "raises the drop precedence by 2", 0],
  ["meter 2", "", "measures", 4],
  ["", "above 10 kbit/s", "drops", 1],
  ["", "above 20 kbit/s", "raises the drop precedence by 2", 0],
]);
assert.ok(rows.every((row) => !row.isNew && !row.counts), "at the first look nothing is new");
assert.equal(new Set(rows.map((row) => row.key)).size, rows.length);
const more = groupRows({ groups: [{ ...group, ...counted(6) }], meters: [] }, first);
assert.deepEqual(more.map((row) => row.counts), [true, false]);
assert.ok(groupRows(first, none).every((row) => row.isNew));
const live = groupRows({ groups: [{ ...group, buckets: [{ ...bucket, live: true }] }], meters: [] }, first);
assert.deepEqual(live.map((row) => row.isNew), [false, true], "a bucket that comes to life lights up");
"""

TABLES = """
import assert from "node:assert/strict";
const { controllerRows, keptRows, Lights, messageRows, trafficRows } = await import(`${process.argv[1]}/tables.js`);
const flow = {
  key: "1", host: "h2", what: "tcp sink", ends: "10.0.0.1:5001 to 10.0.0.2:5001", finished: false, bytes: 1000,
  lost: null, rtt_ms: 20.195, window: 10,
};
const first = { now_s: 1, flows: [flow], programs: [] };
const [begun] = trafficRows(first, null);
assert.deepEqual(begun.cells, ["h2", "tcp sink", flow.ends, "runs", "\u2013", "\u2013", "20.2 ms", "10"]);
assert.deepEqual([begun.counts, begun.isNew], [false, false], "at the first look nothing is new");
assert.equal(begun.follow, null);
const followed = { from: "h1", to: "10.0.0.2", protocol: "udp", port: "5001" };
assert.deepEqual(trafficRows({ ...first, flows: [{ ...flow, follow: followed }] }, null)[0].follow, followed);
const sum = { start_s: 0, end_s: 3.04, bytes: 4_560_000, mean_bps: 12e6, lost: 0, rtt_ms: 20.195, window: 44.71 };
const none = { start_s: null, end_s: null, bytes: null, mean_bps: 0, lost: null, rtt_ms: null, window: null };
assert.deepEqual(keptRows([{ ...flow, ...sum }, { ...flow, ...none }]).map(({ cells }) => cells.slice(3)), [
  ["0.0 to 3.0 s", "4.56 MB, 12 Mbit/s", "0", "20.2 ms", "44.7"], Array(5).fill("\u2013"),
]);
const program = { host: "h1", what: "ping -c 1 <b>", state: "running", job: 4 };
const later = { now_s: 3, flows: [{ ...flow, bytes: 251000, finished: true }], programs: [program] };
const [more, fresh] = trafficRows(later, first);
assert.deepEqual([more.cells[3], more.cells[4], more.counts], ["finished", "1 Mbit/s", true]);
assert.deepEqual([fresh.cells.slice(0, 4), fresh.isNew], [["h1", "program", program.what, "runs"], true]);
const lights = new Lights();
const isLit = (rows, now_ms) => lights.kept(rows, now_ms).map((one) => one.isNew);
assert.deepEqual(isLit([more, fresh], 1000), [false, true]);
assert.deepEqual(isLit(trafficRows(later, later), 1010), [false, true], "a look that follows at once leaves it lit");
assert.deepEqual(isLit(trafficRows(later, later), 3990), [false, true]);
assert.deepEqual(isLit(trafficRows(later, later), 4000), [false, false], "and after three seconds it is not new");
assert.equal(trafficRows(later, later)[0].cells[4], "\u2013", "a clock that stands has no rate");
const row = {
  switch: "s1", target: "tcp:127.0.0.1:6653", peer: "controller", version: "1.3", role: "master", messages: 4,
  packet_ins: 2, errors: 0, trouble: null,
};
const lost = { ...row, switch: "s2", version: null, role: null, trouble: "Connection refused" };
const [joined, refused] = controllerRows([{ ...row, packet_ins: 3 }, lost], [row]);
assert.deepEqual([joined.cells.slice(2), joined.counts], [["OpenFlow 1.3, master", 4, 3, 0], true]);
assert.deepEqual([refused.cells[2], refused.isNew], ["not connected: Connection refused", true]);
const message = (at, type, sent) => ({ at_ps: at, type, sent, xid: 7, bytes: 80 });
const said = (count, ...newest) => ({ target: "c0", sent: { PACKET_IN: count }, received: { HELLO: 1 }, newest });
const [early, late] = [message(1e12, "HELLO", false), message(2e12, "PACKET_IN", true)];
const [packets, hellos, newer, older] = messageRows([said(2, early, late)], [said(1, early)]);
assert.deepEqual([packets.cells, packets.counts], [["all", "c0", "to it", "PACKET_IN", "\u2013", 2], true]);
assert.deepEqual([hellos.cells[2], hellos.counts], ["from it", false]);
assert.deepEqual([newer.cells, newer.isNew], [["2.000000 s", "c0", "to it", "PACKET_IN", 80, 1], true]);
assert.deepEqual([older.cells[3], older.isNew], ["HELLO", false]);
assert.equal(messageRows([said(2, late)], null)[2].isNew, false, "at the first look nothing is new");
"""

ZOOM = """
import assert from "node:assert/strict";
const { closer, within } = await import(`${process.argv[1]}/zoom.js`);
const whole = [-70, -70, 1000, 500];
// Twice as close about a place: it stays where it was, at a quarter of the width and half of the height.
assert.deepEqual(closer(whole, 2, [180, 180], whole), [55, 55, 500, 250]);
assert.deepEqual(closer([55, 55, 500, 250], 0.1, [180, 180], whole), whole, "never farther than the whole");
assert.equal(closer(whole, 1000, [0, 0], whole)[2], 240, "never closer than two cells");
assert.deepEqual(within([-900, 900, 300, 100], whole), [-70, 330, 300, 100]);
"""

SPANS = """
import assert from "node:assert/strict";
const { spanText } = await import(`${process.argv[1]}/spans.js`);
const told = [0, 0.4, 59, 89, 90, 5399, 5400, 129_599, 129_600].map(spanText);
assert.deepEqual(told, ["0 s", "0 s", "59 s", "89 s", "2 min", "90 min", "2 h", "36 h", "2 d"]);
"""

FOLDS = """
import assert from "node:assert/strict";
const { covers, foldedWays, foldsOf, summed } = await import(`${process.argv[1]}/folds.js`);
const node = (kind) => (name) => ({ name, kind });
const nodes = [...["s1", "s2"].map(node("switch")), ...["h1", "h2", "h3", "h4"].map(node("host"))];
for (const one of nodes) one.y = one.kind === "host" ? 1 : 0;
const link = ([a, b]) => ({ a, b });
const links = [["s1", "s2"], ["h1", "s1"], ["s1", "h2"], ["h3", "s2"], ["h4", "s1"], ["h4", "s2"]].map(link);
// h3 is alone at s2, and h4 has two links: they stay.
const folds = foldsOf({ nodes, links });
assert.deepEqual(folds, [{ hub: "s1", below: ["h1", "h2"], switches: 0, links: [1, 2] }]);
// Of the link h1 to s1 the way from the switch is the second, of that of h2 the first.
assert.deepEqual(foldedWays(folds[0], links), [[3, 4], [2, 5]]);
// A tree: s1 above s2 and s3, which have two hosts each; h5 hangs at s1, and s4, which stands as high as s1, does not.
const tree = [["s1", 0], ["s4", 0], ["s2", 1], ["s3", 1], ["h1", 2], ["h2", 2], ["h3", 2], ["h4", 2], ["h5", 1]];
const ends = ["s1-s4", "s1-s2", "s3-s1", "s2-h1", "s2-h2", "s3-h3", "h4-s3", "h5-s1"];
const cables = ends.map((one) => link(one.split("-")));
const kindOf = (name) => (name[0] === "s" ? "switch" : "host");
const all = foldsOf({ nodes: tree.map(([name, y]) => ({ name, y, kind: kindOf(name) })), links: cables });
assert.deepEqual(all.map(({ hub, switches }) => [hub, switches]), [["s2", 0], ["s3", 0], ["s1", 2]]);
assert.deepEqual(all[2].below, ["s2", "h1", "h2", "s3", "h3", "h4", "h5"]);
assert.deepEqual(all[2].links, [1, 2, 3, 4, 5, 6, 7]);
assert.deepEqual(foldedWays(all[2], cables), [[2, 5, 15], [3, 4, 14]], "of its own links alone");
assert.deepEqual([covers(all[2], all[0]), covers(all[0], all[2]), covers(all[0], all[1])], [true, false, false]);
// With a link between s2 and s3 they hang together below s1, and with one to s4 they do not.
const more = (cable) => foldsOf({ nodes: tree.map(([name, y]) => ({ name, y, kind: kindOf(name) })),
  links: [...cables, link(cable)] }).filter(({ switches }) => switches > 0);
assert.deepEqual(more(["s2", "s3"]).map(({ hub, below }) => [hub, below.length]), [["s1", 7]]);
assert.deepEqual(more(["s2", "s4"]).map(({ hub, below }) => [hub, below.length]), [["s1", 4]]);
const way = { known: true, rate: 4, load: 0.5, queue: 2, drops: 1, marks: 3, up: true, line: 8 };
const sum = summed([way, { ...way, load: 0.75, lossy: true, up: false }, { ...way, known: false }]);
const shares = { rate: 8, load: 0.75, queue: 4, drops: 2, marks: 6, lossy: true };
assert.deepEqual(sum, { known: true, ...shares, up: true, line: null });
assert.deepEqual([summed([]).known, summed([{ ...way, load: null }]).load], [false, null]);
"""

BARS = """
import assert from "node:assert/strict";
const { barParts, isLosing, REASONS, timeText, wayOf } = await import(`${process.argv[1]}/units.js`);
const way = wayOf([0, 0, 4, 0, true, 1, { classes: [3, 0, 1] }], 1);
assert.deepEqual(barParts(way, 20), [{ from: 0, tall: 15, number: 0 }, { from: 15, tall: 5, number: 2 }]);
// The port and its classes are looked at one after the other: the bar is as high as the port says.
assert.deepEqual(barParts({ ...way, queue: 0 }, 0).map(({ tall }) => tall), [0, 0]);
assert.deepEqual(barParts({ ...way, classes: [0, 0] }, 20), [{ from: 0, tall: 20, number: null }]);
assert.deepEqual(barParts(wayOf(null, 1), 0), []);
assert.deepEqual(barParts(wayOf([0, 0, 4, 0, true, 1], 1), 20), [{ from: 0, tall: 20, number: null }]);
const plain = wayOf([0, 0, 4, 0, true, 1], 1);
const drops = wayOf([0, 0, 4, 6, true, 1, { drops: { early: 6 }, marks: 4 }], 2);
assert.deepEqual([plain.marks, plain.reasons, drops.marks, drops.reasons], [0, undefined, 2, { early: 3 }]);
const several = [plain, drops, { ...plain, lossy: true }, { ...drops, up: false }];
assert.deepEqual(several.map(isLosing), [false, true, true, false]);
assert.equal(new Set(Object.values(REASONS)).size, 7);
assert.deepEqual([1, 12.345678901, 0.25].map((now) => timeText(now, true)), ["1.0", "12.345678901", "0.25"]);
assert.equal(timeText(12.345678901, false), "12.3");
"""


@pytest.mark.skipif(NODE is None, reason="Node is not installed")
@pytest.mark.parametrize(
    "script",
    [HEAT, CURVES, FINE, FOLLOW, FLOWS, GROUPS, TABLES, ZOOM, SPANS, FOLDS, BARS],
    ids=["heat", "curves", "fine", "follow", "flows", "groups", "tables", "zoom", "spans", "folds", "bars"],
)
def test_the_functions_of_the_page(script: str) -> None:
    assert NODE is not None
    done = subprocess.run(
        [NODE, "--input-type=module", "-e", script, PAGE.as_uri()], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
