// The page of a running lab in a frame: whoever holds the frame tells it what the lab does.

import { news, View } from "./view.js";

const network = JSON.parse(document.getElementById("network").textContent);
const view = new View(network);

window.addEventListener("message", ({ source, data }) => {
  if (source !== window.parent) return;
  if (data.tick) view.add(data.tick);
  document.getElementById("stands").hidden = data.stands !== true;
  news(data.news ?? "");
});
window.parent.postMessage("ready", "*");
