// How many streams a tab may hold open at once.

/**
 * A small number of places, handed out in the order they were asked for. A
 * browser opens only six HTTP/1.1 connections to a host for all its tabs
 * together; a tab that took them for streams could not even send.
 */
export class Slots {
  #capacity;
  #held = new Set(); // AbortControllers of the holders
  #queue = [];

  constructor(capacity) {
    this.#capacity = capacity;
  }

  /** Changes the number of places; holders beyond it are asked to leave. */
  resize(capacity) {
    this.#capacity = capacity;
    const beyond = [...this.#held].slice(capacity);
    for (const holder of beyond) holder.abort(new Error("the place was taken away"));
    this.#grant();
  }

  /**
   * Waits for a place. Resolves to {signal, release}: the signal asks the
   * holder to leave. Resolves to null when `signal` aborts first.
   */
  take(signal) {
    return new Promise((resolve) => {
      const entry = { resolve, signal };
      const leave = () => {
        this.#queue = this.#queue.filter((e) => e !== entry);
        resolve(null);
      };
      if (signal.aborted) return resolve(null);
      signal.addEventListener("abort", leave, { once: true });
      entry.granted = () => signal.removeEventListener("abort", leave);
      this.#queue.push(entry);
      this.#grant();
    });
  }

  #grant() {
    while (this.#held.size < this.#capacity && this.#queue.length > 0) {
      const entry = this.#queue.shift();
      entry.granted();
      const holder = new AbortController();
      this.#held.add(holder);
      entry.resolve({
        signal: holder.signal,
        release: () => {
          this.#held.delete(holder);
          this.#grant();
        },
      });
    }
  }
}
