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

/** Returns what paints on `canvas`: a function of what `paint` takes and of what to call when it is done, with the
 * numbers that it was given. They go to the thread and come back: copies would be tens of megabytes there before its
 * collector looked. If the thread turns out not to come, another canvas takes the place of this one: `replaced` is
 * told. */
export function painterOn(canvas, replaced) {
  const here = (on) => {
    const context = on.getContext("2d");
    return (picture, painted) => {
      paint(context, picture);
      painted(picture.numbers);
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
    given.onmessage = ({ data }) => painted(data);
    given.postMessage(picture, [picture.numbers.buffer]);
  };
}

/** Paints a picture of so many pixels in which `place` has how large a unit is, and where 0, 0 is. In `numbers` are
 * where all `lines` begin and end, then the sides of all `bars`, in units, four for each; `told` has the texts above
 * the bars. */
export function paint(context, { width, height, place: [scale, right, down], numbers, lines, bars, told, ink }) {
  const { canvas } = context;
  if (canvas.width !== width) canvas.width = width;
  if (canvas.height !== height) canvas.height = height;
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.clearRect(0, 0, width, height);
  context.setTransform(scale, 0, 0, scale, right, down);
  let at = 0;
  for (const { colour, width: wide, dashes, cap, count } of lines) {
    context.strokeStyle = colour;
    context.lineWidth = wide;
    context.lineCap = cap;
    context.setLineDash(dashes);
    // Each line by itself: a browser paints a straight line sooner than a part of a path with many.
    for (const end = at + 4 * count; at < end; at += 4) {
      context.beginPath();
      context.moveTo(numbers[at], numbers[at + 1]);
      context.lineTo(numbers[at + 2], numbers[at + 3]);
      context.stroke();
    }
  }
  for (const { colour, count } of bars) {
    context.fillStyle = colour;
    for (const end = at + 4 * count; at < end; at += 4) {
      context.fillRect(numbers[at], numbers[at + 1], numbers[at + 2], numbers[at + 3]);
    }
  }
  context.fillStyle = ink;
  context.font = "14px system-ui, sans-serif";
  context.textAlign = "center";
  for (const { text, x, y } of told) context.fillText(text, x, y);
}
