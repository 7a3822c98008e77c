// Two ticks as one: of what is long ago fewer are kept, and none of it is forgotten. Nothing here knows the page.

/** The place of the first of two neighbours among the `count` oldest of `ticks` that are to be one: of two that tell of
 * equally many looks, the fewest there are, and of those the oldest. Each tick then tells of 1, 2, 4, 8 ... looks, and
 * none of more than twice as many as one that is about as old. */
export function pairOf(ticks, count) {
  let found = 0;
  for (let place = 1; place + 1 < count; place += 1) {
    const [looks, next] = [looksOf(ticks[place]), looksOf(ticks[place + 1])];
    if (looks === next && looks < looksOf(ticks[found])) found = place;
  }
  return found;
}

function looksOf({ looks = 1 }) {
  return looks;
}

/** What `one` and `other`, the tick behind it, tell together, with the time of the later. */
export function merged(one, other) {
  const [before, after] = [one.elapsed, other.elapsed];
  const elapsed = before + after;
  const mean = (first, second) => (first * before + second * after) / elapsed;
  return {
    ...other,
    elapsed,
    looks: looksOf(one) + looksOf(other),
    ways: other.ways.map((way, place) => mergedWay(one.ways[place], way, mean)),
    verdict: mergedVerdict(one.verdict, other.verdict),
  };
}

/** Rates, drops and marks are per second, so that their means have the sums of what was counted. */
function mergedWay(one, other, mean) {
  if (one.known === false || other.known === false) return other.known === false ? one : other;
  const way = {
    known: other.known,
    up: other.up,
    line: other.line,
    rate: mean(one.rate, other.rate),
    load: one.load === null || other.load === null ? other.load : mean(one.load, other.load),
    queue: Math.max(one.queue, other.queue),
    drops: mean(one.drops, other.drops),
    marks: mean(one.marks, other.marks),
  };
  if (other.lossy) way.lossy = true;
  const { classes } = one.queue > other.queue ? one : other;
  if (classes !== undefined) way.classes = classes;
  if (one.reasons !== undefined || other.reasons !== undefined) {
    const names = Object.keys({ ...one.reasons, ...other.reasons });
    const share = ({ reasons }, name) => reasons?.[name] ?? 0;
    way.reasons = Object.fromEntries(names.map((name) => [name, mean(share(one, name), share(other, name))]));
  }
  return way;
}

/** The later verdict, which says that the lab was late from the first moment that either names to the last. */
function mergedVerdict(one, other) {
  const late = [one, other].filter(({ late_s: time }) => time > 0);
  if (late.length === 0) return other;
  const [first, last] = [late[0], late.at(-1)];
  return { ...other, at_s: last.at_s, late_s: last.at_s - (first.at_s - first.late_s) };
}
