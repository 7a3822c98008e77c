// What the page shows of a network: the picture, the verdict, the busiest ports and the curves, at a moment that the
// reader chooses.

import { drawCurves, MOST_S } from "./curves.js";
import { finest } from "./fine.js";
import { HeatMap } from "./heat.js";
import { asCsv, asSvg, saveText } from "./out.js";
import { Picture } from "./picture.js";
import { Player } from "./player.js";
import { showPorts } from "./ports.js";
import { shortText, timeText, wayOf } from "./units.js";
import { Zoom } from "./zoom.js";

const MOST_ROWS = 12;
const STEP_MS = 100;

const at = (id) => document.getElementById(id);

/** Shows a text above the network; an empty one takes it away. */
export function news(text) {
  at("news").hidden = text === "";
  if (at("news").textContent !== text) at("news").textContent = text;
}

/** A tick as the player has it, from what the server or a file tells. */
export function kept({ now_s: now, elapsed_s: elapsed, ways, verdict, bands, controllers }) {
  return { now, elapsed, ways: ways.map((one, place) => wayOf(one, elapsed, bands?.[place])), verdict, controllers };
}

export class View {
  /** Shows `network`; `opener` is that of the picture. A recording is kept whole: `isWhole`. */
  constructor(network, opener = () => null, isWhole = false) {
    this.network = network;
    /** The number of the link whose curves are shown, and by their numbers the parts of the page with others. */
    this.chosen = null;
    this.keptCurves = new Map();
    /** How many seconds before the shown moment the curves begin. */
    this.seconds = MOST_S;
    /** So many are asked for. */
    this.span = Infinity;
    /** What the page has changed, which its curves mark, and who is told which link is chosen. */
    this.acts = [];
    /** The ticks of a recording that is set beside this one. */
    this.beside = null;
    /** The samples of links by their numbers, where there are some. */
    this.fine = new Map();
    /** The verdict that is shown, with all its reasons. */
    this.told = "";
    this.onChoose = () => {};
    document.title = `${network.lab} – twinnet live`;
    at("lab").textContent = network.lab;
    at("title").textContent = network.title;
    this.picture = new Picture(at("picture"), network, (number, keeps) => this.choose(number, keeps), opener);
    const zoom = new Zoom(at("picture"), (pixels) => this.picture.scale(pixels));
    this.picture.begin();
    this.picture.onBounds = (bounds) => zoom.fit(bounds);
    at("fold").hidden = this.picture.hostFolds.length === 0;
    at("fold").addEventListener("click", () => {
      const isFolded = this.picture.hostFolds.some((fold) => !fold.isFolded);
      this.picture.foldAll(isFolded);
      at("fold").textContent = isFolded ? "Unfold hosts" : "Fold hosts";
    });
    at("controls").hidden = this.picture.controllers.isEmpty;
    at("controls").addEventListener("click", () => {
      const isShown = !this.picture.controllers.isShown;
      this.picture.showControllers(isShown);
      at("controls").textContent = isShown ? "Hide controllers" : "Show controllers";
    });
    this.ports = network.links.flatMap((link, number) => [
      { port: link.a_port, to: link.b, number },
      { port: link.b_port, to: link.a, number },
    ]);
    this.heat = new HeatMap(this.ports, (number) => this.choose(number));
    this.player = new Player((shown) => this.#show(shown), isWhole ? Infinity : undefined);
    at("find").addEventListener("input", () => this.#find(at("find").value.trim()));
    at("all-reasons").addEventListener("click", () => {
      const shown = at("other-reasons").hidden;
      at("other-reasons").hidden = !shown;
      at("all-reasons").setAttribute("aria-expanded", String(shown));
    });
    // All of the page, with the verdict, and with what a click opens.
    at("full").addEventListener("click", () => {
      if (document.fullscreenElement) document.exitFullscreen();
      else document.documentElement.requestFullscreen();
    });
    document.addEventListener("fullscreenchange", () => {
      at("full").textContent = document.fullscreenElement ? "Leave full screen" : "Full screen";
    });
    at("print").addEventListener("click", () => window.print());
    at("save-data").addEventListener("click", () => this.#saveData());
    at("save-picture").addEventListener("click", () => {
      this.picture.whole(() => this.#saveSvg("picture", [[network.title, "", at("picture")]]));
    });
    at("save-curves").addEventListener("click", () => this.#saveCurves());
    at("span").addEventListener("change", () => {
      this.span = Number(at("span").value);
      this.#curves();
    });
    at("keep").addEventListener("click", () => this.choose(null, true));
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
    this.player.add(kept(tick));
    this.#place();
  }

  /** Lets the time go on or stand; from the end of what is there it begins anew where nothing more comes. */
  play(on, again = false) {
    const { player } = this;
    player.playing = on;
    at("play").textContent = on ? "Pause" : "Go on";
    if (on && again && player.span !== null && player.moment >= player.span[1]) player.put(player.span[0]);
  }

  /** The time of the last tick. */
  get now() {
    return this.player.span?.[1] ?? 0;
  }

  /** Shows samples of links in their curves. */
  showFine(samples) {
    this.fine = samples;
    this.#curves();
  }

  /** Shows the curves of a link; `null`: of none but the kept ones. If it `keeps` those that were shown, they stay. */
  choose(number, keeps = false) {
    if (keeps && this.chosen !== null && this.chosen !== number) this.#keep(this.chosen);
    if (number !== null) this.#let(number);
    this.chosen = number;
    at("curves").hidden = number === null;
    this.#chosenAnew();
    if (number !== null) at("chosen").textContent = this.#curvesOf(number);
    this.#curves();
  }

  #curvesOf(number) {
    const link = this.network.links[number];
    return `${link.a_port} → ${link.b} (solid), ${link.b_port} → ${link.a} (dashed)`;
  }

  #chosenAnew() {
    const all = [...this.keptCurves.keys(), ...(this.chosen === null ? [] : [this.chosen])];
    this.picture.mark(all);
    this.onChoose(this.chosen, all);
  }

  /** Keeps the curves of a link open, below those of the chosen one. */
  #keep(number) {
    const part = document.createElement("section");
    part.className = "curves";
    const head = Object.assign(document.createElement("h2"), { textContent: this.#curvesOf(number) });
    const close = Object.assign(document.createElement("button"), { type: "button", textContent: "Close" });
    close.addEventListener("click", () => {
      this.#let(number);
      this.#chosenAnew();
    });
    const line = document.createElement("p");
    line.append(close);
    const curves = [...at("curves").querySelectorAll(".curve")].map((one) => one.cloneNode(true));
    for (const one of curves) one.querySelector("svg").removeAttribute("id");
    part.append(head, line, ...curves);
    at("kept-curves").append(part);
    this.keptCurves.set(number, part);
  }

  /** Keeps them no longer. */
  #let(number) {
    this.keptCurves.get(number)?.remove();
    this.keptCurves.delete(number);
  }

  #show(shown) {
    const { now, ways, verdict, controllers } = this.player.ticks[shown];
    at("time").textContent = `${timeText(now, this.network.clock === "virtual")} s`;
    this.#verdict(verdict);
    this.picture.update(ways);
    if (controllers !== undefined) this.picture.controllers.update(controllers);
    this.#ports(ways);
    this.#curves();
    this.heat.draw(this.player.ticks.slice(0, shown + 1), this.seconds);
    this.#place();
  }

  #curves() {
    const { shown, ticks } = this.player;
    const parts = [...this.keptCurves, ...(this.chosen === null ? [] : [[this.chosen, at("curves")]])];
    if (shown === null || parts.length === 0) return;
    const seconds = Math.min(this.seconds, this.span);
    const until = ticks.slice(0, shown + 1);
    for (const [number, part] of parts) {
      const finer = finest(until, this.fine.get(number) ?? []);
      drawCurves(part, until, number, seconds, this.acts, this.beside, finer);
    }
  }

  #find(words) {
    const found = this.picture.find(words);
    at("found").textContent = words === "" ? "" : `${found} found`;
  }

  #saveData() {
    saveText(`${this.network.lab}.csv`, "text/csv", asCsv(this.player.ticks, this.ports));
  }

  #saveSvg(what, parts) {
    const moment = this.player.moment.toFixed(1);
    saveText(`${this.network.lab}-${what}-${moment}s.svg`, "image/svg+xml", asSvg(parts));
  }

  #saveCurves() {
    const parts = [[this.chosen, at("curves")], ...this.keptCurves].flatMap(([number, part]) =>
      [...part.querySelectorAll(".curve:not([hidden]) svg")].map((svg) => [
        `${svg.dataset.of.replace("-", ": ")}, ${this.#curvesOf(number)}`,
        "curve",
        svg,
      ]),
    );
    this.#saveSvg("curves", parts);
  }

  #place() {
    const { span, moment } = this.player;
    if (span === null) return;
    [at("moment").min, at("moment").max] = span;
    at("moment").value = moment;
  }

  #verdict({ state, reasons, covers_s: covered, by_hand: byHand = "" }) {
    at("verdict").title = `over ${shortText(covered)} s`;
    const [worst = "the lab has kept its schedule", ...others] = reasons;
    const told = [state, byHand, worst, ...others].join("\n");
    if (this.told === told) return;
    this.told = told;
    at("verdict").className = state;
    at("state").textContent = state;
    at("worst").textContent = worst;
    at("by-hand").hidden = byHand === "";
    at("by-hand").textContent = byHand.replace(/^(changed by hand (?:once|\d+ times)).*/s, "$1");
    at("by-hand").title = byHand;
    at("all-reasons").hidden = others.length === 0;
    at("all-reasons").textContent = `and ${others.length} more`;
    const rows = others.map((text) => Object.assign(document.createElement("li"), { textContent: text }));
    at("other-reasons").replaceChildren(...rows);
  }

  #ports(ways) {
    const busiest = ways
      .map((way, place) => ({ ...way, ...this.ports[place] }))
      .filter((one) => one.rate > 0 || one.queue > 0 || one.drops > 0)
      .sort((one, other) => (other.load ?? 0) - (one.load ?? 0) || other.rate - one.rate)
      .slice(0, MOST_ROWS);
    showPorts(at("ports"), busiest, (number) => this.choose(number));
  }
}
