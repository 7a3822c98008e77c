// The page of a running lab: the network once, then what the server tells several times a second.

import { openConsole } from "./console.js";
import { Control } from "./control.js";
import { FineCurves } from "./fine.js";
import { FlowTable } from "./flows.js";
import { Follow } from "./follow.js";
import { startPainting } from "./painter.js";
import { isLarge } from "./picture.js";
import { AskedTable, controllerRows, messageRows, trafficRows } from "./tables.js";
import { leaveToken } from "./token.js";
import { news, View } from "./view.js";

const STALE_MS = 2000;

leaveToken();

const network = JSON.parse(document.getElementById("network").textContent);
if (isLarge(network)) startPainting("painting.js");
const flows = new FlowTable();
const view = new View(network, opener);
const follow = new Follow(view);
const traffic = new AskedTable("traffic", trafficRows);
new AskedTable("controllers", controllerRows);
const messagesOf = document.getElementById("messages-of");
const switches = network.nodes.filter(({ kind }) => kind === "switch");
messagesOf.replaceChildren(...switches.map(({ name }) => new Option(name)));
if (switches.length > 0) {
  new AskedTable("messages", messageRows, () => `messages/${encodeURIComponent(messagesOf.value)}`);
}
const control = network.control ? new Control(view, flows, follow) : null;
traffic.onFollow = (values) => follow.ask(values);
if (control !== null) traffic.onStop = (act) => control.do(act);
if (network.keeps_places) view.picture.onPlace = keepPlace;
const fine = new FineCurves(view);
view.onChoose = (number, all) => {
  fine.choose(all);
  control?.choose(number);
};

/** What a click on a node does, in words and as a function, and what a double click does. */
function opener({ kind, name }) {
  if (kind === "switch") return [`flows of ${name}`, () => flows.show(name)];
  if (kind === "host" && network.control) {
    return [`send from ${name}`, () => control.send(name), () => openConsole(name)];
  }
  return null;
}

/** Has the server keep where a node was dragged to. */
async function keepPlace(node, x, y) {
  const headers = { "Content-Type": "application/json" };
  const body = JSON.stringify({ node, x, y });
  const answer = await fetch("place", { method: "POST", headers, body }).catch(() => null);
  // Without its server the page says so by itself.
  if (answer === null) return;
  const refused = document.getElementById("refused");
  refused.hidden = answer.ok;
  if (!answer.ok) refused.textContent = (await answer.json()).message;
}

let lastNews = performance.now();
let ended = false;

const ticks = new EventSource("ticks");

/** The lab has told something: how many acts there are, and whether its clock stands. */
function heard({ acts }, stands) {
  lastNews = performance.now();
  news("");
  document.getElementById("stands").hidden = !stands;
  // Another browser at this page may have changed something.
  if (control !== null && acts !== view.acts.length) control.look();
}

ticks.addEventListener("tick", (event) => {
  const tick = JSON.parse(event.data);
  view.add(tick);
  heard(tick, false);
});
ticks.addEventListener("stands", (event) => heard(JSON.parse(event.data), true));
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
