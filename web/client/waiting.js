// Everything that has to do with waiting: backoff, Retry-After, sleeping until
// woken, and being offline.

/**
 * A delay with full jitter: evenly between zero and an exponentially growing
 * ceiling, so that many clients cut off at once do not come back at once.
 * @param {number} failures how many tries have failed, 1 after the first
 * @param {{base: number, max: number, random?: () => number}} options milliseconds
 */
export function fullJitter(failures, { base, max, random = Math.random }) {
  const ceiling = Math.min(max, base * 2 ** Math.min(failures - 1, 30));
  return random() * ceiling;
}

/**
 * Milliseconds a Retry-After header asks for: seconds or an HTTP date. Zero
 * when there is none or it cannot be read.
 * @param {Headers} headers
 */
export function retryAfter(headers, now = Date.now()) {
  const value = headers.get("retry-after")?.trim();
  if (!value) return 0;
  if (/^\d{1,9}$/.test(value)) return Number(value) * 1000;
  if (!/[a-z]/i.test(value)) return 0; // "-1" is no date, though Date.parse takes it for one
  const at = Date.parse(value);
  return Number.isNaN(at) ? 0 : Math.max(0, at - now);
}

/**
 * Waits, at most ms, until woken or the signal aborts; never rejects.
 * @param {number} ms
 * @param {AbortSignal[]} signals
 */
export function sleep(ms, ...signals) {
  return new Promise((resolve) => {
    if (signals.some((s) => s.aborted)) return resolve();
    const done = () => {
      clearTimeout(timer);
      for (const s of signals) s.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, Math.min(ms, 2 ** 31 - 1));
    for (const s of signals) s.addEventListener("abort", done, { once: true });
  });
}

/** Says whether there is a network and calls back when there is one again. */
export class Connectivity {
  #target;
  #navigator;

  /** @param {{target?: EventTarget, navigator?: {onLine?: boolean}}} [environment] */
  constructor({ target = globalThis, navigator = globalThis.navigator } = {}) {
    this.#target = target;
    this.#navigator = navigator;
  }

  /** False only when the platform is sure that there is no network. */
  get online() {
    return this.#navigator?.onLine !== false;
  }

  /** Calls f at each return of the network until the signal aborts. */
  onReturn(f, signal) {
    this.#target.addEventListener?.("online", f, { signal });
  }

  /** Waits until there is a network, or a signal aborts. */
  whenOnline(...signals) {
    if (this.online) return Promise.resolve();
    return new Promise((resolve) => {
      const done = () => {
        this.#target.removeEventListener("online", done);
        for (const s of signals) s.removeEventListener("abort", done);
        resolve();
      };
      this.#target.addEventListener("online", done);
      for (const s of signals) {
        if (s.aborted) return done();
        s.addEventListener("abort", done, { once: true });
      }
    });
  }
}
