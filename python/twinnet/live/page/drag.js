// The pointer that drags something.

const LEAST = 4;

/** Follows the pointer that has begun with the event `begin`: `moved` gets by how many pixels it was moved, as soon as
 * that is more than a click may be, and `done` is called at the end if it was. */
export function drag(begin, moved, done = () => {}) {
  let drags = false;
  const move = (event) => {
    const [x, y] = [event.clientX - begin.clientX, event.clientY - begin.clientY];
    drags ||= Math.hypot(x, y) > LEAST;
    if (drags) moved(x, y);
  };
  const end = () => {
    removeEventListener("pointermove", move);
    if (!drags) return;
    // What is under the pointer was not clicked.
    const swallow = (event) => event.stopPropagation();
    addEventListener("click", swallow, { capture: true });
    setTimeout(() => removeEventListener("click", swallow, { capture: true }));
    done();
  };
  addEventListener("pointermove", move);
  addEventListener("pointerup", end, { once: true });
}
