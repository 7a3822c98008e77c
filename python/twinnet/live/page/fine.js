// Exact curves: what the lab samples of a link in short intervals while the curves of the link are open.

import { MOST_S } from "./curves.js";
import { wayOf } from "./units.js";

const EVERY_MS = 250;

/** The samples of the link `number` as ticks, of which each has the two ways of that link alone. */
export function sampledTicks({ interval_s: elapsed, rows }, number) {
  return rows.map(([now, ...ways]) => {
    const [there, back] = ways.map((told) => wayOf(told, elapsed));
    return { now, elapsed, ways: { [2 * number]: there, [2 * number + 1]: back } };
  });
}

/** The ticks that tell most of each moment: the samples `fine`, and `ticks` where there are none. */
export function finest(ticks, fine) {
  if (fine.length === 0) return ticks;
  const [begin, end] = [fine[0].now - fine[0].elapsed, fine.at(-1).now];
  const before = ticks.filter(({ now }) => now <= begin);
  return [...before, ...fine, ...ticks.filter(({ now, elapsed }) => now - elapsed >= end)];
}

export class FineCurves {
  /** Gives the samples of the link that is chosen to `view`. */
  constructor(view) {
    this.view = view;
    this.chosen = null;
    setInterval(() => this.#ask(), EVERY_MS);
  }

  /** The curves of the link `number` are open; `null`: none are. */
  choose(number) {
    this.chosen = number;
    this.ticks = [];
    this.view.showFine(this.ticks);
    this.#ask();
  }

  async #ask() {
    const { chosen: number, ticks: asked } = this;
    if (number === null || this.isAsking || document.hidden) return;
    this.isAsking = true;
    const since = asked.at(-1)?.now ?? Math.max(0, this.view.now - MOST_S);
    const answer = await fetch(`samples/${number}?${new URLSearchParams({ since })}`).catch(() => null);
    const told = answer?.ok ? await answer.json() : { rows: [] };
    this.isAsking = false;
    if (told.rows.length === 0 || asked !== this.ticks) return;
    const all = [...asked, ...sampledTicks(told, number)];
    this.ticks = all.filter(({ now }) => now > all.at(-1).now - MOST_S);
    this.view.showFine(this.ticks);
  }
}
