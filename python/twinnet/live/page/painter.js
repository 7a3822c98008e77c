// Paints the lines and the queues of a large network, in a thread beside the page where it has a script for one: what
// a browser takes for a thousand lines would be missing to all else that moves.

/** The thread, once it was started and until it has a canvas; without one the page paints by itself. */
let thread = null;

/** Starts the thread, whose script is at `address`: as early as can be, for it takes a browser as long as a picture. */
export function startPainting(address) {
  if (typeof Worker === "function" && HTMLCanvasElement.prototype.transferControlToOffscreen !== undefined) {
    thread = new Worker(address);
  }
}

/** Returns what paints on `canvas`: a function of what `paint` takes and of what to call when it is done. If the thread
 * turns out not to come, another canvas takes the place of this one: `replaced` is told. */
export function painterOn(canvas, replaced) {
  const here = (on) => {
    const context = on.getContext("2d");
    return (picture, painted) => {
      paint(context, picture);
      painted();
    };
  };
  if (thread === null) return here(canvas);
  const given = thread;
  thread = null;
  const theirs = canvas.transferControlToOffscreen();
  given.postMessage({ canvas: theirs }, [theirs]);
  given.addEventListener("error", () => {
    const other = canvas.cloneNode();
    canvas.replaceWith(other);
    replaced(other, here(other));
  }, { once: true });
  return (picture, painted) => {
    given.onmessage = painted;
    given.postMessage(picture);
  };
}

/** Paints a picture of so many pixels in which `place` has how large a unit is, and where 0, 0 is. Ends of `lines` and
 * sides of `bars` are in units, four numbers for each; `told` has the texts above the bars. */
export function paint(context, { width, height, place: [scale, right, down], lines, bars, told, ink }) {
  const { canvas } = context;
  if (canvas.width !== width) canvas.width = width;
  if (canvas.height !== height) canvas.height = height;
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.clearRect(0, 0, width, height);
  context.setTransform(scale, 0, 0, scale, right, down);
  for (const alike of lines) stroke(context, alike);
  for (const { colour, sides } of bars) {
    context.fillStyle = colour;
    for (let at = 0; at < sides.length; at += 4) context.fillRect(...sides.slice(at, at + 4));
  }
  context.fillStyle = ink;
  context.font = "14px system-ui, sans-serif";
  context.textAlign = "center";
  for (const { text, x, y } of told) context.fillText(text, x, y);
}

/** Each line by itself: a browser paints a straight line sooner than a part of a path with many. */
function stroke(context, { colour, width, dashes, cap, ends }) {
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.lineCap = cap;
  context.setLineDash(dashes);
  for (let at = 0; at < ends.length; at += 4) {
    context.beginPath();
    context.moveTo(ends[at], ends[at + 1]);
    context.lineTo(ends[at + 2], ends[at + 3]);
    context.stroke();
  }
}
