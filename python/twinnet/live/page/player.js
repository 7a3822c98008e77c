// Which of the ticks is shown: the newest, or one that goes on at a chosen speed from where it was put.

import { merged, pairOf } from "./thinning.js";

/** How many directions of links are kept over all ticks. */
const MOST_WAYS = 200_000;
/** So many of the newest ticks are kept as they came, a minute of them, and at least so many for what was before. */
const WHOLE_TICKS = 240;
const LEAST_OLD_TICKS = 120;

export class Player {
  /** `show` is called with the number of the tick to be shown whenever that is another one. Of `mostWays` directions of
   * links over all ticks more, those of more than a minute ago become means of two, of four and so on. */
  constructor(show, mostWays = MOST_WAYS) {
    this.show = show;
    this.mostWays = mostWays;
    this.ticks = [];
    this.moment = 0;
    this.playing = true;
    this.speed = 1;
    this.shown = null;
  }

  /** The time of the first and of the last tick; `null` without any. */
  get span() {
    return this.ticks.length > 0 ? [this.ticks[0].now, this.ticks.at(-1).now] : null;
  }

  /** True if the newest tick is to be shown as it comes. */
  get follows() {
    return this.playing && this.speed >= 1 && (this.shown === null || this.shown === this.ticks.length - 1);
  }

  /** Adds a tick: its time `now`, and what each way did. Where there are too many, two old ones become one. */
  add(tick) {
    const follows = this.follows;
    this.ticks.push(tick);
    const most = Math.floor(this.mostWays / Math.max(1, tick.ways.length));
    if (this.ticks.length > Math.max(WHOLE_TICKS + LEAST_OLD_TICKS, most)) {
      const place = pairOf(this.ticks, this.ticks.length - WHOLE_TICKS);
      this.ticks.splice(place, 2, merged(...this.ticks.slice(place, place + 2)));
      if (this.shown !== null && this.shown > place) this.shown -= 1;
    }
    if (follows) this.put(tick.now);
  }

  /** Shows the tick at `moment`, or the last before it. */
  put(moment) {
    const span = this.span;
    if (span === null) return;
    this.moment = Math.min(Math.max(moment, span[0]), span[1]);
    const after = this.ticks.findIndex((one) => one.now > this.moment);
    this.shown = (after < 0 ? this.ticks.length : after) - 1;
    this.show(this.shown);
  }

  /** `elapsed` seconds have passed for who looks on. */
  goOn(elapsed) {
    if (!this.playing || this.span === null) return;
    // Who stopped before anything came sees the newest.
    if (this.shown === null) this.put(this.span[1]);
    if (this.moment >= this.span[1]) return;
    this.put(this.moment + elapsed * this.speed);
  }
}
