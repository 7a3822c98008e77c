// The thread beside the page that paints its lines: first it is given the canvas, then one picture after the other.

import { paint } from "./painter.js";

let context = null;

addEventListener("message", ({ data }) => {
  if (context === null) context = data.canvas.getContext("2d");
  else {
    paint(context, data);
    postMessage(data.numbers, [data.numbers.buffer]);
  }
});
