// Numbers as text, and what follows from them. Nothing here knows the page.

const PREFIXES = ["", "k", "M", "G", "T"];

/** A rate in bit/s with three digits and a unit. */
export function rateText(bps) {
  let scaled = bps;
  let step = 0;
  while (scaled >= 999.5 && step < PREFIXES.length - 1) {
    scaled /= 1000;
    step += 1;
  }
  return `${shortText(scaled)} ${PREFIXES[step]}bit/s`;
}

/** A number with three digits. */
export function shortText(value) {
  if (value === 0 || value >= 100) return String(Math.round(value));
  return String(Number(value.toPrecision(3)));
}

/** The class of a way's colour: by the share of the time for which its line is busy. */
export function loadClass(way) {
  if (!way.up) return "down";
  if (way.rate === 0) return "idle";
  if (way.load === null) return "open";
  if (way.load < 0.01) return "idle";
  if (way.load < 0.5) return "some";
  return way.load < 0.95 ? "busy" : "full";
}

/** The least of 1, 1.5, 2, 3, 5, 7.5, 10, 15 ... that is not below a value. */
export function niceMost(value) {
  if (value <= 1) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 1.5, 2, 3, 5, 7.5, 10].map((one) => one * power).find((one) => one >= value * (1 - 1e-9));
}

/** The height of a queue's bar: by the logarithm, so that one frame and a thousand can both be seen. */
export function barHeight(frames) {
  return frames === 0 ? 0 : Math.min(46, 4 + 14 * Math.log10(1 + frames));
}

/** One direction of a link, from the list that the server sends (way_told in watch.py). */
export function wayOf([rate, load, queue, dropped, up, line], elapsed) {
  return { rate, load, queue, drops: dropped / elapsed, up, line };
}
