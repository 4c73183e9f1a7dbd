// What the clients of one browser tell each other.

/** Talks to the other tabs (and the other clients of this page), if it can. */
export class Channel {
  #channel = null;
  #listeners = new Set();

  constructor(name, Broadcast = globalThis.BroadcastChannel) {
    if (!Broadcast) return;
    this.#channel = new Broadcast(name);
    this.#channel.onmessage = ({ data }) => {
      for (const f of [...this.#listeners]) f(data);
    };
    this.#channel.unref?.(); // in Node a client must not keep the process alive
  }

  say(message) {
    this.#channel?.postMessage(message);
  }

  listen(f) {
    this.#listeners.add(f);
    return () => this.#listeners.delete(f);
  }

  close() {
    this.#channel?.close();
    this.#channel = null;
    this.#listeners.clear();
  }
}
