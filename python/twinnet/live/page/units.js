// Numbers as text, and what follows from them. Nothing here knows the page.

const PREFIXES = ["", "k", "M", "G", "T"];

/** A rate in bit/s with three digits and a unit. */
export const rateText = (bps) => scaledText(bps, "bit/s");

/** A number of bytes with three digits and a unit. */
export const sizeText = (bytes) => scaledText(bytes, "B");

function scaledText(value, unit) {
  let scaled = value;
  let step = 0;
  while (scaled >= 999.5 && step < PREFIXES.length - 1) {
    scaled /= 1000;
    step += 1;
  }
  return `${shortText(scaled)} ${PREFIXES[step]}${unit}`;
}

/** A number with three digits. */
export function shortText(value) {
  if (value === 0 || value >= 100) return String(Math.round(value));
  return String(Number(value.toPrecision(3)));
}

/** A moment in seconds, to a tenth; where it is exact, with as many digits as it has, to nanoseconds. */
export function timeText(now, isExact) {
  return isExact ? now.toFixed(9).replace(/(\.\d+?)0+$/, "$1") : now.toFixed(1);
}

/** The class of a way's colour: by the share of the time for which its line is busy. */
export function loadClass(way) {
  if (way.known === false) return "unknown";
  if (!way.up) return "down";
  if (way.rate === 0) return "idle";
  if (way.load === null) return "open";
  if (way.load < 0.01) return "idle";
  if (way.load < 0.5) return "some";
  return way.load < 0.95 ? "busy" : "full";
}

/** True if a way loses frames, by its settings or since the look before. */
export function isLosing(way) {
  return way.up && (way.lossy === true || way.drops > 0);
}

/** What becomes of frames that a port was to send and that do not arrive, by the names of the server. */
export const REASONS = {
  overlimit: "queue full",
  early: "early, by the queue",
  unclassified: "no class",
  down: "link down",
  oversize: "too large",
  unfragmentable: "not to be fragmented",
  loss: "lost on the line",
};

/** The least of 1, 1.5, 2, 3, 5, 7.5, 10, 15 ... that is not below a value. */
export function niceMost(value) {
  if (value <= 1) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 1.5, 2, 3, 5, 7.5, 10].map((one) => one * power).find((one) => one >= value * (1 - 1e-9));
}

/** Classes have so many colours, in turn. */
export const CLASS_COLOURS = 4;

/** The height of a queue's bar: by the logarithm, so that one frame and a thousand can both be seen. */
export function barHeight(frames) {
  return frames === 0 ? 0 : Math.min(46, 4 + 14 * Math.log10(1 + frames));
}

/** A bar of the height `tall`, divided by what waits in each class: from where, how high, and the number of the class,
 * those of the first at the foot; one part where there are no classes. */
export function barParts({ queue, classes = [] }, tall) {
  const total = classes.reduce((sum, one) => sum + one, 0);
  if (total === 0) return queue > 0 ? [{ from: 0, tall, number: null }] : [];
  let from = 0;
  return classes.flatMap((frames, number) => {
    const part = { from, tall: (tall * frames) / total, number };
    from += part.tall;
    return frames > 0 ? [part] : [];
  });
}

/** A direction of which nothing was counted. */
const UNKNOWN = { known: false, rate: 0, load: null, queue: 0, drops: 0, marks: 0, up: true, line: null };

/** One direction of a link, from the list that the server sends (way_record in watch.py); `null`: nothing is known. Of
 * a mean over repetitions, `band` has the low and high edges of rate, queue and drops. */
export function wayOf(told, elapsed, band) {
  if (told === null) return UNKNOWN;
  const [rate, load, queue, dropped, up, line, { drops: reasons, marks = 0, lossy, classes } = {}] = told;
  const way = { rate, load, queue, drops: dropped / elapsed, marks: marks / elapsed, up, line };
  if (lossy) way.lossy = true;
  if (classes !== undefined) way.classes = classes;
  if (reasons !== undefined) {
    way.reasons = Object.fromEntries(Object.entries(reasons).map(([reason, count]) => [reason, count / elapsed]));
  }
  if (!band) return way;
  const edges = { rate: band.slice(0, 2), queue: band.slice(2, 4), drops: band.slice(4).map((one) => one / elapsed) };
  return { ...way, edges };
}
