import assert from "node:assert/strict";
import { test } from "node:test";
import { fullJitter, retryAfter, sleep } from "../waiting.js";

const now = Date.parse("Wed, 21 Oct 2026 07:28:00 GMT");

for (const [value, expected] of [
  ["2", 2000], ["0", 0], ["10800", 10_800_000], ["Wed, 21 Oct 2026 07:28:03 GMT", 3000], ["Wed, 21 Oct 2020 07:28:00 GMT", 0], ["-1", 0], ["soon", 0], ["", 0], ["1.5", 0], [null, 0],
]) {
  test(`Retry-After ${JSON.stringify(value)} asks for ${expected} ms`, () => {
    assert.equal(retryAfter(new Headers(value === null ? {} : { "Retry-After": value }), now), expected);
  });
}

test("full jitter lies between nothing and a ceiling that doubles up to the cap", () => {
  const ceilings = [1, 2, 3, 4, 5, 6, 50].map((n) => fullJitter(n, { base: 100, max: 1000, random: () => 1 }));
  assert.deepEqual(ceilings, [100, 200, 400, 800, 1000, 1000, 1000]);
  assert.equal(fullJitter(5, { base: 100, max: 1000, random: () => 0 }), 0);
});

test("a sleep ends when it is woken, and leaves no listener behind", async () => {
  const waker = new AbortController();
  const woken = sleep(3600_000, waker.signal);
  waker.abort();
  await woken;
  await sleep(3600_000, waker.signal);
});
