import { expect, test } from "vitest";
import { type Frames, Pace } from "../../src/app/pace";

/** A browser in which a drawing takes a given time, and a frame comes every 16 ms. */
class Browser implements Frames {
  time = 0;
  drawings: number[] = [];
  #waiting: { at: number; call: () => void }[] = [];
  #painted: (() => void)[] = [];

  constructor(readonly cost: () => number) {}

  now = () => this.time;
  frame = (call: () => void) => this.#add(Math.floor(this.time / 16 + 1) * 16, call);
  after = (milliseconds: number, call: () => void) => this.#add(this.time + milliseconds, call);
  afterwards = (call: () => void) => void this.#painted.push(call);

  draw = () => {
    this.drawings.push(this.time);
    this.time += this.cost();
  };

  /** Let time pass; something to draw comes every millisecond. */
  run(pace: Pace, until: number): void {
    while (this.time < until) {
      pace.plan();
      const due = this.#waiting.filter(({ at }) => at <= this.time);
      this.#waiting = this.#waiting.filter(({ at }) => at > this.time);
      for (const { call } of due) call();
      for (const call of this.#painted.splice(0)) call();
      this.time += 1;
    }
  }

  #add(at: number, call: () => void): () => void {
    const one = { at, call };
    this.#waiting.push(one);
    return () => (this.#waiting = this.#waiting.filter((other) => other !== one));
  }
}

function drawn(cost: () => number, until = 5000): Browser {
  const browser = new Browser(cost);
  browser.run(new Pace(browser.draw, browser), until);
  return browser;
}

test("what costs nothing is drawn with every frame", () => {
  expect(drawn(() => 0).drawings.length).toBeGreaterThan(5000 / 17);
});

test("what is dear takes a small share of the time", () => {
  for (const cost of [4, 8, 12]) {
    const { drawings } = drawn(() => cost);
    expect(drawings.length * cost).toBeLessThan(5000 / 10);
    expect(drawings.length).toBeGreaterThan(5000 / 350);
  }
});

test("however dear it is, the page goes on being drawn", () => {
  const { drawings } = drawn(() => 100);
  const apart = drawings.slice(1).map((time, at) => time - drawings[at]!);
  expect(Math.max(...apart)).toBeLessThan(450);
});

test("one slow drawing does not slow the next ones for long", () => {
  let count = 0;
  const { drawings } = drawn(() => (++count === 5 ? 300 : 0));
  expect(drawings.length).toBeGreaterThan(5000 / 24);
});

test("nothing is drawn after it was stopped", () => {
  const browser = new Browser(() => 0);
  const pace = new Pace(browser.draw, browser);
  pace.plan();
  pace.stop();
  browser.time = 100;
  expect(browser.drawings).toEqual([]);
});
