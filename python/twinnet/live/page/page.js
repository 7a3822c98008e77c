// The page of a running lab: the network once, then what the server tells several times a second.

import { news, View } from "./view.js";

const STALE_MS = 2000;

const view = new View(await (await fetch("network")).json());
let lastNews = performance.now();
let ended = false;

const ticks = new EventSource("ticks");
ticks.addEventListener("tick", (event) => {
  lastNews = performance.now();
  news("");
  view.add(JSON.parse(event.data));
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
