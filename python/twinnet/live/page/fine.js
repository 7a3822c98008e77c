// Exact curves: what the lab samples of a link in short intervals while the curves of the link are open.

import { MOST_S } from "./curves.js";
import { wayOf } from "./units.js";

const EVERY_MS = 250;

/** The samples of the link `number` as ticks, of which each has the two ways of that link alone. */
export function sampledTicks(rows, elapsed, number) {
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

/** What is asked for of links with these ticks (by number): what ended later than the last of them. */
export function askedFor(links, first) {
  const since = ([number, ticks]) => [number, ((ticks.at(-1)?.now ?? first) + 0.0005).toFixed(3)];
  return String(new URLSearchParams([...links].map(since)));
}

export class FineCurves {
  /** Gives the samples of the links whose curves are open to `view`. */
  constructor(view) {
    this.view = view;
    this.links = new Map();
    setInterval(() => this.#ask(), EVERY_MS);
  }

  /** The curves of the links with these numbers are open. */
  choose(numbers) {
    this.links = new Map(numbers.map((number) => [number, this.links.get(number) ?? []]));
    this.#ask();
  }

  async #ask() {
    if (this.links.size === 0 || this.isAsking || document.hidden) return;
    this.isAsking = true;
    const asked = askedFor(this.links, Math.max(0, this.view.now - MOST_S));
    const answer = await fetch(`samples?${asked}`).catch(() => null);
    const { interval_s: elapsed, links } = answer?.ok ? await answer.json() : { links: {} };
    this.isAsking = false;
    const told = Object.entries(links).filter(([number, rows]) => rows.length > 0 && this.links.has(Number(number)));
    for (const [number, rows] of told) {
      const all = [...this.links.get(Number(number)), ...sampledTicks(rows, elapsed, Number(number))];
      this.links.set(Number(number), all.filter(({ now }) => now > all.at(-1).now - MOST_S));
    }
    if (told.length > 0) this.view.showFine(this.links);
  }
}
