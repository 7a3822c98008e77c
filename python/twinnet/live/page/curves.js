// The curves of one link over the minute before the moment that is shown, of one recording or of two.

import { element } from "./elements.js";
import { niceMost, rateText, REASONS, shortText } from "./units.js";

/** How many seconds the curves show where there is no reason for fewer. */
export const MOST_S = 60;
/** Longer without news is a gap in the curve: nobody knows what was there. */
const GAP_S = 1.5;
const WIDTH = 600;
const HEIGHT = 200;
const TOP = 26;
const BOTTOM = 172;
const HATCH = 12;

const CURVES = [
  ["rate", (way) => way.rate, rateText],
  ["queue", (way) => way.queue, shortText],
  ["drops", (way) => way.drops, shortText],
  ["marks", (way) => way.marks, shortText],
];
/** Shown only where something of it happened. */
const RARE = ["marks"];
/** Of the first name of a reason from above, and from one to the next. */
const FIRST_NAME = TOP + 22;
const NEXT_NAME = 22;
/** The side of the square that has a reason's colour. */
const SIGN = 14;

/** True if nothing is known of the time between a tick and the one at `before`. */
export function isAfterGap({ now, elapsed = 0 }, before) {
  return now - before > Math.max(GAP_S, 1.5 * elapsed);
}

/** Those of `ticks` that lie in the `seconds` up to `last`. The first of a recording that is drawn whole lies at the
 * edge itself, but for rounding: hence a millisecond more. */
export function ticksWithin(ticks, last, seconds) {
  return ticks.filter(({ now }) => now >= last - seconds - 0.001 && now <= last);
}

/** Draws the curves of link `number` over the `seconds` up to the last of `ticks` into the parts of `root` called rate,
 * queue, drops, marks and reasons (of drops) by their `data-of`. The times for which the lab was late are hatched, and
 * the moments of `acts` marked. The ticks `beside`, if there are any, are drawn too, and the difference into elements
 * of their own. Of `finer` ticks, if there are any, the numbers are drawn. */
export function drawCurves(root, ticks, number, seconds, acts, beside = null, finer = ticks) {
  const last = ticks.at(-1)?.now ?? 0;
  const kept = ticksWithin(finer, last, seconds);
  const others = ticksWithin(beside ?? [], last, seconds);
  const looks = ticksWithin(ticks, last, seconds);
  const ground = () => [...lateTimes(looks, last, seconds), ...actTimes(acts, last, seconds)];
  for (const [name, of, told] of CURVES) {
    const lines = [
      ["there", kept, seriesOf(of, 2 * number)],
      ["back", kept, seriesOf(of, 2 * number + 1)],
    ];
    if (beside !== null) {
      lines.push(["there beside", others, seriesOf(of, 2 * number)]);
      lines.push(["back beside", others, seriesOf(of, 2 * number + 1)]);
    }
    const edges = (place) => kept.flatMap(({ ways }) => ways[place].edges?.[name]?.[1] ?? []);
    const values = lines.flatMap(([, from, series]) => from.map(series)).filter((one) => one !== null);
    const most = niceMost(Math.max(0, ...values, ...edges(2 * number), ...edges(2 * number + 1)));
    const y = upTo(most);
    if (RARE.includes(name)) {
      const isSeen = values.some((value) => value > 0);
      showPart(root, name, isSeen);
      showPart(root, `${name}-difference`, isSeen && beside !== null);
      if (!isSeen) continue;
    }
    const below = ground();
    for (const [kind, place] of [["there", 2 * number], ["back", 2 * number + 1]]) {
      below.push(...bandsOf(kept, last, seconds, ({ ways }) => ways[place].edges?.[name], y, kind));
    }
    draw(root, name, last, seconds, below, [[TOP, told(most)]], lines, y);
    if (beside !== null) drawDifference(root, name, of, told, kept, others, number, last, seconds);
  }
  drawReasons(root, kept, number, last, seconds, ground());
}

/** The height of a value in a curve whose greatest is `most`. */
function upTo(most) {
  return (value) => BOTTOM - ((BOTTOM - TOP) * value) / most;
}

function partOf(root, name) {
  return root.querySelector(`[data-of="${name}"]`);
}

function showPart(root, name, isShown) {
  partOf(root, name).parentElement.hidden = !isShown;
}

/** Draws how many frames are dropped for each reason, as far as there are any, above `ground`. */
function drawReasons(root, kept, number, last, seconds, ground) {
  const both = [2 * number, 2 * number + 1];
  const found = Object.keys(REASONS).filter((reason) =>
    kept.some(({ ways }) => both.some((place) => ways[place].reasons?.[reason] > 0)),
  );
  showPart(root, "reasons", found.length > 0);
  if (found.length === 0) return;
  const kind = (reason) => `reason reason-${Object.keys(REASONS).indexOf(reason)}`;
  const lines = found.flatMap((reason) => {
    const of = (way) => way.reasons?.[reason] ?? 0;
    return both.map((place, turned) => [`${turned ? "back" : "there"} ${kind(reason)}`, kept, seriesOf(of, place)]);
  });
  const values = lines.flatMap(([, from, series]) => from.map(series)).filter((one) => one !== null);
  const most = niceMost(Math.max(0, ...values));
  // Beside each name its colour, in which text could not be read.
  const names = found.flatMap((reason, nth) => {
    const y = FIRST_NAME + NEXT_NAME * nth;
    const sign = { x: WIDTH - SIGN, y: y - SIGN, width: SIGN, height: SIGN };
    const name = element("text", { x: WIDTH - 1.5 * SIGN, y, "text-anchor": "end" }, REASONS[reason]);
    return [element("rect", { class: kind(reason), ...sign }), name];
  });
  draw(root, "reasons", last, seconds, [...ground, ...names], [[TOP, shortText(most)]], lines, upTo(most));
}

/** Draws what the first recording has more than the one beside it. */
function drawDifference(root, name, of, told, kept, others, number, last, seconds) {
  const lines = ["there", "back"].map((kind, turned) => {
    const differences = differencesOf(kept, others, seriesOf(of, 2 * number + turned));
    return [kind, kept, (tick) => differences.get(tick) ?? null];
  });
  const values = lines.flatMap(([, from, series]) => from.map(series)).filter((one) => one !== null);
  const most = niceMost(Math.max(0, ...values.map(Math.abs)));
  const middle = (TOP + BOTTOM) / 2;
  const y = (value) => middle - ((BOTTOM - TOP) * value) / (2 * most);
  const axis = element("line", { class: "axis", x1: 0, x2: WIDTH, y1: middle, y2: middle });
  const scale = [[TOP, `+${told(most)}`], [BOTTOM, `−${told(most)}`]];
  draw(root, `${name}-difference`, last, seconds, [axis], scale, lines, y);
}

/** What `series` has at each tick of `kept`, minus what it had in the interval of `others` in which that tick ends. */
export function differencesOf(kept, others, series) {
  const found = new Map();
  let place = 0;
  for (const tick of kept) {
    // A millisecond is less than any difference between two intervals that are one.
    while (place < others.length && others[place].now < tick.now - 0.001) place += 1;
    const other = others[place];
    const [ours, theirs] = [series(tick), other === undefined ? null : series(other)];
    const known = ours !== null && theirs !== null && !isAfterGap(other, tick.now);
    if (known) found.set(tick, ours - theirs);
  }
  return found;
}

/** What a quantity was at a tick; `null` where nothing was counted. */
function seriesOf(of, place) {
  return ({ ways }) => (ways[place].known === false ? null : of(ways[place]));
}

function draw(root, name, last, seconds, ground, labels, lines, y) {
  const svg = partOf(root, name);
  svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  svg.replaceChildren(
    ...ground,
    element("line", { class: "axis", x1: 0, x2: WIDTH, y1: TOP, y2: TOP }),
    element("line", { class: "axis", x1: 0, x2: WIDTH, y1: BOTTOM, y2: BOTTOM }),
    ...labels.map(([at, text]) => element("text", { x: 0, y: at - 7 }, text)),
    element("text", { x: 0, y: HEIGHT - 8 }, `${shortText(seconds)} s before`),
    element("text", { x: WIDTH, y: HEIGHT - 8, "text-anchor": "end" }, `${last.toFixed(seconds < 10 ? 3 : 1)} s`),
    ...lines.map(([kind, ticks, series]) => element("path", { class: kind, d: path(ticks, last, seconds, series, y) })),
  );
}

/** The times for which the lab was late, hatched: each judgement says it of the time since the one before. */
function lateTimes(ticks, last, seconds) {
  const x = (now) => WIDTH * (1 - (last - now) / seconds);
  return ticks.flatMap(({ verdict }, place) => {
    if (verdict.late_s === 0 || verdict.at_s === ticks[place - 1]?.verdict.at_s) return [];
    const d = hatching(Math.max(0, x(verdict.at_s - verdict.late_s)), x(verdict.at_s), TOP, BOTTOM);
    const hatched = element("path", { class: "late", d });
    hatched.append(element("title", {}, "the lab was late"));
    return [hatched];
  });
}

/** Slanted lines from `left` to `right` as a path; those of two that meet go on in each other. */
export function hatching(left, right, top, bottom) {
  const lines = [];
  for (let sum = HATCH * Math.ceil((left + top) / HATCH); sum <= right + bottom; sum += HATCH) {
    const [from, to] = [Math.max(left, sum - bottom), Math.min(right, sum - top)];
    lines.push([from, sum - from, to, sum - to].map((one) => one.toFixed(1)));
  }
  return lines.map(([x, y, ...end]) => `M${x} ${y}L${end.join(" ")}`).join("");
}

/** The moments at which the page has changed something. */
function actTimes(acts, last, seconds) {
  return acts
    .map((act) => [act, WIDTH * (1 - (last - act.at_s) / seconds)])
    .filter(([, x]) => x >= 0 && x <= WIDTH)
    .map(([act, x]) => {
      const mark = element("line", { class: "act", x1: x.toFixed(1), x2: x.toFixed(1), y1: TOP, y2: BOTTOM });
      mark.append(element("title", {}, `change ${act.number}`));
      return mark;
    });
}

/** What lies between the edges of means: an area for each part of the time in which they are known. */
function bandsOf(ticks, last, seconds, edgesOf, y, kind) {
  const parts = [[]];
  let before = -Infinity;
  for (const tick of ticks) {
    const edges = edgesOf(tick);
    if (edges === undefined || isAfterGap(tick, before)) parts.push([]);
    if (edges === undefined) continue;
    parts.at(-1).push([WIDTH * (1 - (last - tick.now) / seconds), ...edges.map(y)]);
    before = tick.now;
  }
  return parts
    .filter((part) => part.length > 1)
    .map((part) => {
      const corners = [...part.map(([x, , high]) => [x, high]), ...part.toReversed().map(([x, low]) => [x, low])];
      const d = `M${corners.map((corner) => corner.map((one) => one.toFixed(1)).join(" ")).join("L")}Z`;
      return element("path", { class: `band ${kind}`, d });
    });
}

function path(ticks, last, seconds, series, y) {
  let before = -Infinity;
  return ticks
    .map((tick) => {
      const value = series(tick);
      if (value === null) {
        before = -Infinity;
        return "";
      }
      const x = WIDTH * (1 - (last - tick.now) / seconds);
      const step = isAfterGap(tick, before) ? "M" : "L";
      before = tick.now;
      return `${step}${x.toFixed(1)} ${y(value).toFixed(1)}`;
    })
    .join("");
}
