// What the page shows of a network: the picture, the verdict, the busiest ports and the curves, at a moment that the
// reader chooses.

import { drawCurves } from "./curves.js";
import { Picture } from "./picture.js";
import { Player } from "./player.js";
import { rateText, shortText, wayOf } from "./units.js";

const MOST_ROWS = 12;
const STEP_MS = 100;

const at = (id) => document.getElementById(id);

/** Shows a text above the network; an empty one takes it away. */
export function news(text) {
  at("news").hidden = text === "";
  if (at("news").textContent !== text) at("news").textContent = text;
}

export class View {
  constructor(network) {
    this.network = network;
    this.chosen = null;
    document.title = `${network.lab} – twinnet live`;
    at("lab").textContent = network.lab;
    at("title").textContent = network.title;
    this.picture = new Picture(at("picture"), network, (number) => this.choose(number));
    this.ports = network.links.flatMap((link, number) => [
      { port: link.a_port, to: link.b, number },
      { port: link.b_port, to: link.a, number },
    ]);
    this.player = new Player((shown) => this.#show(shown));
    at("close").addEventListener("click", () => this.choose(null));
    at("play").addEventListener("click", () => this.play(!this.player.playing));
    at("speed").addEventListener("change", () => (this.player.speed = Number(at("speed").value)));
    at("moment").addEventListener("input", () => {
      this.play(false);
      this.player.put(Number(at("moment").value));
    });
    let before = performance.now();
    setInterval(() => {
      const now = performance.now();
      this.player.goOn((now - before) / 1000);
      before = now;
    }, STEP_MS);
  }

  /** Adds what the server or the file tells of one interval. */
  add(tick) {
    const ways = tick.ways.map((one) => wayOf(one, tick.elapsed_s));
    this.player.add({ now: tick.now_s, ways, verdict: tick.verdict });
    this.#place();
  }

  /** Lets the time go on or stand; from the end of what is there it begins anew where nothing more comes. */
  play(on, again = false) {
    const { player } = this;
    player.playing = on;
    at("play").textContent = on ? "Pause" : "Go on";
    if (on && again && player.span !== null && player.moment >= player.span[1]) player.put(player.span[0]);
  }

  choose(number) {
    this.chosen = number;
    this.picture.mark(number);
    at("curves").hidden = number === null;
    if (number === null) return;
    const link = this.network.links[number];
    at("chosen").textContent = `${link.a_port} → ${link.b} (solid), ${link.b_port} → ${link.a} (dashed)`;
    this.#curves();
  }

  #show(shown) {
    const { now, ways, verdict } = this.player.ticks[shown];
    at("time").textContent = `${now.toFixed(1)} s`;
    this.#verdict(verdict);
    this.picture.update(ways);
    this.#ports(ways);
    if (this.chosen !== null) this.#curves();
    this.#place();
  }

  #curves() {
    if (this.player.shown !== null) drawCurves(this.player.ticks.slice(0, this.player.shown + 1), this.chosen);
  }

  #place() {
    const { span, moment } = this.player;
    if (span === null) return;
    [at("moment").min, at("moment").max] = span;
    at("moment").value = moment;
  }

  #verdict({ state, reasons, covers_s: covered }) {
    const why = reasons.length > 0 ? reasons.join("; ") : "the lab has kept its schedule";
    const text = `${state}: ${why}`;
    at("verdict").title = `over ${shortText(covered)} s`;
    if (at("verdict").textContent === text) return;
    at("verdict").className = state;
    at("verdict").textContent = text;
  }

  #ports(ways) {
    const busiest = ways
      .map((way, place) => ({ ...way, ...this.ports[place] }))
      .filter((one) => one.rate > 0 || one.queue > 0 || one.drops > 0)
      .sort((one, other) => (other.load ?? 0) - (one.load ?? 0) || other.rate - one.rate)
      .slice(0, MOST_ROWS);
    at("ports").replaceChildren(
      ...busiest.map((one) => {
        const load = one.load === null ? "–" : `${shortText(100 * one.load)} %`;
        const row = document.createElement("tr");
        for (const text of [one.port, one.to, rateText(one.rate), load, String(one.queue), shortText(one.drops)]) {
          row.insertCell().textContent = text;
        }
        row.addEventListener("click", () => this.choose(one.number));
        return row;
      }),
    );
  }
}
