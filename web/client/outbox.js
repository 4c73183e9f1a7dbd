// The outbox: one key per press, kept until the service is known to have it.
//
// The order of things is the promise. A press is written down with its key and
// its exact bytes; then it is tried; every later try, in this page, after a
// reload or by another tab, uses what was written down; it is forgotten when
// the service has named its task or has refused it for good. So a lost answer,
// a closed lid or an impatient reload can repeat a request, but not a press.

import { mintKey } from "./keys.js";
import { Problem, Unavailable } from "./http.js";
import { withLock } from "./locks.js";
import { fullJitter, sleep } from "./waiting.js";

export const defaultLimits = {
  backoffBase: 500,
  backoffMax: 15_000,
  giveUpAfter: 120_000, // of failing, in one lane
  maxTries: 40,
  longestWait: 60_000, // a Retry-After beyond it gives up at once
  retryFor: 24 * 3600_000, // an older press is not sent without being asked
  keyFor: 6 * 24 * 3600_000, // an older key may be forgotten by the service: 7 days less a margin
};

/** Delivers presses, in the order they were made within one lane (a conversation). */
export class Outbox {
  #service;
  #store; // promise
  #locks;
  #connectivity;
  #channel;
  #limits;
  #listeners = new Set();
  #presses = new Map(); // key → the press as last seen
  #waiters = new Map(); // key → functions that wake its backoff
  #running = new Map(); // lane → "once" or "again"
  #failingSince = new Map(); // lane → time
  #settled = new Map(); // key → {resolve, reject} of send's promise
  #keeping = new Set(); // keys on their way into the store
  #stop = new AbortController();
  #turn = 0;

  constructor({ service, store, locks, connectivity, channel, limits }) {
    this.#service = service;
    this.#store = store;
    this.#locks = locks;
    this.#connectivity = connectivity;
    this.#channel = channel;
    this.#limits = { ...defaultLimits, ...limits };
    connectivity.onReturn(() => this.hurry(), this.#stop.signal);
    channel.listen((message) => this.#heard(message));
  }

  /** Takes up what an earlier page left behind. Resolves when it is known, not when it is sent. */
  async start() {
    const records = await (await this.#store).all();
    const lanes = new Set();
    for (const record of records) {
      if (this.#presses.has(record.key)) continue;
      if (record.state === "sending" && Date.now() - record.pressedAt > this.#limits.retryFor) {
        record.state = "not_sent";
        record.why = { code: "old", message: "It was left unsent too long ago." };
        await (await this.#store).put(record);
      }
      this.#presses.set(record.key, record);
      if (record.state === "sending") lanes.add(record.lane);
      this.#tell(record);
    }
    for (const lane of lanes) this.#run(lane);
  }

  /** Calls f with every press whenever it changes. Returns a function that ends it. */
  subscribe(f) {
    this.#listeners.add(f);
    return () => this.#listeners.delete(f);
  }

  /** The presses that are not settled, oldest first. */
  list() {
    return [...this.#presses.values()].sort((a, b) => a.pressedAt - b.pressedAt || a.turn - b.turn);
  }

  /**
   * Makes one press of it: the key is minted here and nowhere else. Returns at
   * once; `known` settles when the service has answered for good.
   */
  press(request) {
    const record = { key: mintKey(), ...request, pressedAt: Date.now(), turn: this.#turn++, state: "sending", tries: 0 };
    this.#presses.set(record.key, record);
    const known = new Promise((resolve, reject) => this.#settled.set(record.key, { resolve, reject }));
    known.catch(() => {}); // whoever cares has it; nobody is obliged to
    this.#tell(record);
    void this.#keep(record).then(() => {
      this.#channel.say({ type: "press", press: record });
      this.#run(record.lane);
    });
    return { key: record.key, press: record, known };
  }

  async #keep(record) {
    this.#keeping.add(record.key);
    try {
      await (await this.#store).put(record);
    } finally {
      this.#keeping.delete(record.key);
    }
  }

  /** Tries a press again now, with its own key. False when its key is too old to be safe. */
  async retry(key) {
    const record = this.#presses.get(key);
    if (!record || this.stale(record)) return false;
    this.#failingSince.delete(record.lane);
    const next = { ...record, state: "sending", why: undefined, again: undefined };
    this.#presses.set(key, next);
    this.#tell(next);
    await this.#keep(next);
    this.#channel.say({ type: "press", press: next });
    this.#wake(key);
    this.#run(next.lane);
    return true;
  }

  /** True when the service may have forgotten the key, so that sending it could send twice. */
  stale(press) {
    return Date.now() - press.pressedAt > this.#limits.keyFor;
  }

  /** Forgets a press. A try already under way is not undone by it. */
  async discard(key) {
    const record = this.#presses.get(key);
    if (!record) return;
    await (await this.#store).delete(key);
    this.#settle({ ...record, state: "discarded" }, (p) => p.reject(new Error("the press was discarded")));
    this.#wake(key);
  }

  /** Ends every backoff now: the network is back, or the person looks at the page again. */
  hurry() {
    for (const key of [...this.#waiters.keys()]) this.#wake(key);
  }

  close() {
    this.#stop.abort(new Error("the client was closed"));
    this.#listeners.clear();
  }

  // Delivers a lane until nothing in it waits to be sent. Only the holder of the
  // lane's lock tries, whichever tab that is; the others find nothing left.
  #run(lane) {
    if (this.#running.has(lane)) {
      this.#running.set(lane, "again");
      return;
    }
    this.#running.set(lane, "once");
    withLock(`onereply ${this.#service.baseUrl} ${lane}`, this.#stop.signal, () => this.#deliverAll(lane), this.#locks)
      .catch((error) => this.#stalled(lane, error))
      .finally(() => {
        const again = this.#running.get(lane) === "again";
        this.#running.delete(lane);
        if (again && !this.#stop.signal.aborted) this.#run(lane);
      });
  }

  async #deliverAll(lane) {
    const store = await this.#store;
    // Bounded by the lane: each round settles or gives up one press.
    while (!this.#stop.signal.aborted) {
      const records = (await store.all()).filter((r) => r.lane === lane);
      const record = records.find((r) => r.state === "sending");
      if (!record) return this.#reconcile(lane, records);
      await this.#deliver(store, record);
    }
  }

  // A press that is no longer written down was settled by another tab, and its
  // message to us came before we had read the press. The service knows the rest.
  #reconcile(lane, records) {
    const written = new Set(records.map((r) => r.key));
    for (const press of this.list()) {
      if (press.lane !== lane || press.state !== "sending") continue;
      if (written.has(press.key) || this.#keeping.has(press.key)) continue;
      this.#settle({ ...press, state: "elsewhere" }, (p) => p.reject(new Error("the press was settled by another tab")));
    }
  }

  // The store failed under the lane: say so rather than leave it "sending".
  #stalled(lane, error) {
    if (this.#stop.signal.aborted) return;
    for (const press of this.#presses.values()) {
      if (press.lane === lane && press.state === "sending") {
        this.#change({ ...press, state: "not_sent", why: { code: "storage", message: String(error?.message ?? error) } });
      }
    }
  }

  async #deliver(store, record) {
    for (let tries = 1; ; tries++) {
      await this.#connectivity.whenOnline(this.#stop.signal);
      if (this.#stop.signal.aborted || !(await this.#stillWanted(store, record.key))) return;
      try {
        const result = await this.#send(store, record);
        this.#failingSince.delete(record.lane);
        await store.delete(record.key);
        this.#settle({ ...record, state: "known", result }, (p) => p.resolve(result));
        return;
      } catch (error) {
        if (this.#stop.signal.aborted) return;
        if (error instanceof Problem) return await this.#refused(store, record, error);
        if (!(error instanceof Unavailable)) throw error;
        if (!(await this.#waitAfter(store, record, tries, error))) return;
      }
    }
  }

  // Another tab, or the person, may have settled or discarded it meanwhile.
  async #stillWanted(store, key) {
    const now = await store.get(key);
    return now?.state === "sending";
  }

  async #send(store, record) {
    const key = { "Idempotency-Key": record.key };
    const signal = this.#stop.signal;
    let { path } = record;
    if (!path) {
      // The first message of a conversation that does not exist yet. Every try
      // asks for it under the same key, so there is one, whatever gets lost.
      const made = await this.#service.once("POST", "/v1/conversations", { body: record.start.body, headers: { "Idempotency-Key": record.start.key }, signal });
      if (!made.body?.id) throw new Unavailable("the answer could not be read", { status: made.status });
      record.conversation = made.body.id;
      path = `/v1/conversations/${encodeURIComponent(made.body.id)}/messages`;
    }
    const { body, status } = await this.#service.once("POST", path, { body: record.body, headers: key, signal });
    const task = record.kind === "resume" && body?.id ? body : body?.task;
    if (!task?.id || (record.kind === "message" && !body.message?.id)) throw new Unavailable("the answer could not be read", { status });
    return { ...body, task, conversation: record.conversation };
  }

  async #refused(store, record, error) {
    await store.delete(record.key);
    const why = { code: error.code, status: error.status, message: error.message };
    this.#settle({ ...record, state: "refused", why }, (p) => p.reject(error));
  }

  // Waits before the next try; false when there is to be none.
  async #waitAfter(store, record, tries, error) {
    const { backoffBase, backoffMax, giveUpAfter, maxTries, longestWait } = this.#limits;
    const since = this.#failingSince.get(record.lane) ?? Date.now();
    this.#failingSince.set(record.lane, since);
    const why = { status: error.status, message: error.message, code: error.status ? "unavailable" : "network" };
    if (error.after > longestWait || tries >= maxTries || Date.now() - since > giveUpAfter) {
      const given = { ...record, state: "not_sent", why: { ...why, after: error.after } };
      await store.put(given);
      this.#change(given);
      return false;
    }
    const wait = Math.max(error.after, fullJitter(tries, { base: backoffBase, max: backoffMax }));
    this.#change({ ...record, tries, why, again: Date.now() + wait });
    const woken = new AbortController();
    this.#waiters.set(record.key, () => woken.abort());
    await sleep(wait, woken.signal, this.#stop.signal);
    this.#waiters.delete(record.key);
    return true;
  }

  #wake(key) {
    this.#waiters.get(key)?.();
    this.#channel.say({ type: "wake", key });
  }

  #change(press) {
    this.#presses.set(press.key, press);
    this.#tell(press);
    this.#channel.say({ type: "press", press });
  }

  #settle(press, answer) {
    this.#presses.delete(press.key);
    const waiting = this.#settled.get(press.key);
    this.#settled.delete(press.key);
    if (waiting) answer(waiting);
    this.#tell(press);
    this.#channel.say({ type: "press", press });
  }

  // What another tab did with a press, this one's or its own.
  #heard(message) {
    if (message.type === "wake") return this.#waiters.get(message.key)?.();
    if (message.type !== "press") return;
    const { press } = message;
    const settled = press.state !== "sending" && press.state !== "not_sent";
    if (!settled) {
      this.#presses.set(press.key, press);
      this.#tell(press);
      // Stand by for the lane, so that a press outlives the tab it was made in.
      if (press.state === "sending") this.#run(press.lane);
      return;
    }
    this.#presses.delete(press.key);
    const waiting = this.#settled.get(press.key);
    this.#settled.delete(press.key);
    if (press.state === "known") waiting?.resolve(press.result);
    else waiting?.reject(new Error(press.why?.message ?? press.state));
    this.#tell(press);
  }

  #tell(press) {
    for (const f of [...this.#listeners]) f(press);
  }
}
