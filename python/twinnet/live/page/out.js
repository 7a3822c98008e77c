// What is shown, as files: the picture and the curves as SVG, and what the page has kept as CSV.

import { element } from "./elements.js";

const HEAD = 26;
const COLUMNS_OF_CSV = ["time_s", "port", "to", "rate_bps", "load", "queue_frames", "drops_per_s", "marks_per_s", "up"];

/** Has the browser save `text` as a file called `name`. */
export function saveText(name, kind, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: kind }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

/** The SVG elements of `parts` (a title, the class of what they are in, the element) below each other, as one SVG that
 * needs no other file. */
export function asSvg(parts) {
  const root = element("svg", { "font-family": "system-ui, sans-serif" });
  let [width, height] = [0, 0];
  const drawn = parts.flatMap(([title, kind, svg]) => {
    const [left, top, wide, high] = svg.getAttribute("viewBox").split(" ").map(Number);
    const place = { class: kind, transform: `translate(${-left} ${height + HEAD - top})` };
    const group = element("g", place);
    group.append(...[...svg.childNodes].map((one) => one.cloneNode(true)));
    const head = element("text", { class: "told", x: 4, y: height + HEAD - 8 }, title);
    [width, height] = [Math.max(width, wide), height + HEAD + high];
    return [head, group];
  });
  const ground = element("rect", { width, height, fill: colour("--paper") });
  root.append(element("style", {}, styles()), ground, ...drawn);
  for (const [key, value] of Object.entries({ viewBox: `0 0 ${width} ${height}`, width, height })) {
    root.setAttribute(key, value);
  }
  return new XMLSerializer().serializeToString(root);
}

/** The rules of the page, with the colours as they are now: not every program knows variables. */
function styles() {
  const rules = [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules]).map((rule) => rule.cssText);
  return rules
    .filter((rule) => /\.(link|way|bar|told|node|curve|hit|filled|fold|part|control)\b/.test(rule))
    .join("\n")
    .replace(/var\((--[\w-]+)\)/g, (_, name) => colour(name));
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** All that was kept: a row for each of `ports` at each of `ticks`. Rates are means since the row before. */
export function asCsv(ticks, ports) {
  const rows = ticks.flatMap(({ now, ways }) =>
    ways.flatMap(({ known, rate, load, queue, drops, marks, up }, place) => {
      if (known === false) return [];
      const [port, to] = [ports[place].port, ports[place].to].map(quoted);
      const rare = [drops, marks].map((one) => Number(one.toFixed(3)));
      return [[now.toFixed(6), port, to, rate, load ?? "", queue, ...rare, up].join(",")];
    }),
  );
  return [COLUMNS_OF_CSV.join(","), ...rows, ""].join("\n");
}

function quoted(text) {
  return `"${text.replaceAll('"', '""')}"`;
}
