// Where the numbers of lines stand, so that those of neighbours do not cover each other. Nothing here knows the page.

const TURNS = 6;
/** The room of the longest number, as `999.9 Mbit/s`, in units of the picture. */
const WIDE = 86;
const [ABOVE, BELOW] = [12, 3];
/** How far from the end that sends, as a share of the line: there a number does not meet those of neighbours at their
 * middles. Where it has no room, it is put as near to this as it has; a fan is wide at its far end. */
const BEST = 0.38;
const SHARES = Array.from({ length: 31 }, (_, step) => 0.2 + 0.02 * step).sort(
  (one, other) => Math.abs(one - BEST) - Math.abs(other - BEST),
);
/** How far a number is from its line. */
const ASIDE = 6;
/** What a share costs more than the one before, in units of area that is covered. */
const LATER = 0.02;

/** Where the number of a line can stand, the best place first: away from the line of the other direction, so that it
 * crosses neither. `from` is the end that sends. */
export function labelChoices(from, to) {
  const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
  const [right, down] = [(from.y - to.y) / length, (to.x - from.x) / length];
  return SHARES.map((share) => {
    const x = from.x + share * (to.x - from.x) + ASIDE * right;
    const y = from.y + share * (to.y - from.y) + ASIDE * down;
    if (Math.abs(down) > 0.8) return { x, y: y + (down > 0 ? 12 : -2), "text-anchor": "middle" };
    return { x, y: y + 5, "text-anchor": right > 0 ? "start" : "end" };
  });
}

/** The room that a number takes at a place: left, top, right and bottom. */
export function roomOf({ x, y, "text-anchor": anchor }) {
  const left = x - WIDE * { start: 0, middle: 0.5, end: 1 }[anchor];
  return [left, y - ABOVE, left + WIDE, y + BELOW];
}

/** The area that two rooms share. */
export function shared(one, other) {
  const wide = Math.min(one[2], other[2]) - Math.max(one[0], other[0]);
  const high = Math.min(one[3], other[3]) - Math.max(one[1], other[1]);
  return Math.max(0, wide) * Math.max(0, high);
}

/** One of each of `choices`, which are places in order of preference, such that they cover least of each other and of
 * `others`, which are rooms. */
export function chosenPlaces(choices, others) {
  const rooms = choices.map((places) => places.map(roomOf));
  const covered = (room, those) => those.reduce((sum, one) => sum + shared(room, one), 0);
  const fixed = rooms.map((ones) => ones.map((room, rank) => LATER * rank + covered(room, others)));
  const chosen = choices.map(() => 0);
  // Each in its turn makes way for the others, until there is nothing more to win.
  for (let turn = 0; turn < TURNS; turn += 1) {
    rooms.forEach((ones, number) => {
      const taken = chosen.flatMap((rank, other) => (other === number ? [] : [rooms[other][rank]]));
      const costs = ones.map((room, rank) => fixed[number][rank] + covered(room, taken));
      chosen[number] = costs.indexOf(Math.min(...costs));
    });
  }
  return chosen.map((rank, number) => choices[number][rank]);
}
