// The page: the network once, then what the server tells several times a second.

import { drawCurves, History } from "./curves.js";
import { Picture } from "./picture.js";
import { rateText, shortText, wayOf } from "./units.js";

const MOST_ROWS = 12;
const STALE_MS = 2000;

const at = (id) => document.getElementById(id);
const network = await (await fetch("network")).json();
const history = new History();
let chosen = null;
let lastNews = performance.now();
let ended = false;

document.title = `${network.lab} – twinnet live`;
at("lab").textContent = network.lab;
at("title").textContent = network.title;
const picture = new Picture(at("picture"), network, choose);
const ports = network.links.flatMap((link, number) => [
  { port: link.a_port, to: link.b, number },
  { port: link.b_port, to: link.a, number },
]);

function choose(number) {
  chosen = number;
  picture.mark(number);
  at("curves").hidden = number === null;
  if (number === null) return;
  const link = network.links[number];
  at("chosen").textContent = `${link.a_port} → ${link.b} (solid), ${link.b_port} → ${link.a} (dashed)`;
  drawCurves(history, number);
}

function news(text) {
  at("news").hidden = text === "";
  if (at("news").textContent !== text) at("news").textContent = text;
}

function showVerdict({ state, reasons, covers_s: covered }) {
  const why = reasons.length > 0 ? reasons.join("; ") : "the lab has kept its schedule";
  const text = `${state}: ${why}`;
  at("verdict").title = `over ${shortText(covered)} s`;
  if (at("verdict").textContent === text) return;
  at("verdict").className = state;
  at("verdict").textContent = text;
}

function showPorts(ways) {
  const busiest = ways
    .map((way, place) => ({ ...way, ...ports[place] }))
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
      row.addEventListener("click", () => choose(one.number));
      return row;
    }),
  );
}

function show(tick) {
  const ways = tick.ways.map((one) => wayOf(one, tick.elapsed_s));
  history.add(tick.now_s, ways);
  at("time").textContent = `${tick.now_s.toFixed(1)} s`;
  showVerdict(tick.verdict);
  picture.update(ways);
  showPorts(ways);
  if (chosen !== null) drawCurves(history, chosen);
}

const ticks = new EventSource("ticks");
ticks.addEventListener("tick", (event) => {
  lastNews = performance.now();
  news("");
  show(JSON.parse(event.data));
});
ticks.addEventListener("silent", () => {
  lastNews = performance.now();
  news("The lab does not answer: what you see is from before.");
});
ticks.addEventListener("ended", () => {
  ended = true;
  ticks.close();
  news("The lab has ended: what you see is its last moment.");
});
setInterval(() => {
  if (!ended && performance.now() - lastNews > STALE_MS) {
    news("No news from the page's server: what you see is from before. It may have been stopped.");
  }
}, 500);
at("close").addEventListener("click", () => choose(null));
