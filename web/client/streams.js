// Live answers: one event stream per task and tab, shared by all who watch it.
//
// A stream only ever re-opens a GET, so reconnecting can start no work. What
// arrives is merged by event id (version.sequence): a repeat is dropped, a
// `reset` replaces the draft, and nothing depends on where in the page it goes.

import { Problem, Unavailable } from "./http.js";
import { Slots } from "./slots.js";
import { EventStreamParser } from "./sse.js";
import { fullJitter, retryAfter, sleep } from "./waiting.js";

export const defaultStreamLimits = {
  open: 2, // streams at once in a tab that is seen; one that is hidden holds none
  silence: 45_000, // three heartbeats: then the line is taken for dead
  lookAfter: 4_000, // without an event: ask how the task stands
  pollSeen: 3_000, // between two looks at tasks that wait for a place
  pollHidden: 15_000,
  backoffBase: 300,
  backoffMax: 10_000,
};

const terminal = new Set(["completed", "failed", "cancelled"]);

/** The streams of one service in this tab. */
export class Streams {
  #service;
  #connectivity;
  #limits;
  #slots;
  #live = new Map(); // task id → LiveTask
  #stop = new AbortController();
  #visibility;
  #polling = false;

  constructor({ service, connectivity, limits, visibility = globalThis.document }) {
    this.#service = service;
    this.#connectivity = connectivity;
    this.#limits = { ...defaultStreamLimits, ...limits };
    this.#visibility = visibility;
    this.#slots = new Slots(this.#hidden ? 0 : this.#limits.open);
    visibility?.addEventListener?.("visibilitychange", () => this.#slots.resize(this.#hidden ? 0 : this.#limits.open), { signal: this.#stop.signal });
  }

  get #hidden() {
    return this.#visibility?.visibilityState === "hidden";
  }

  /**
   * Follows a task until it ends. f gets {type: "reset", version, text},
   * {type: "delta", version, text}, {type: "task", task}, {type: "line", up}
   * when the line to the service is lost and when it is back, and at last
   * {type: "end", task} or {type: "gone"}. Returns a function that ends it; the
   * last one to leave closes the stream.
   */
  watch(taskId, f) {
    let live = this.#live.get(taskId);
    if (!live) {
      live = new LiveTask({ id: taskId, service: this.#service, connectivity: this.#connectivity, limits: this.#limits, slots: this.#slots });
      this.#live.set(taskId, live);
      const mine = live;
      void live.run(this.#stop.signal).finally(() => {
        if (this.#live.get(taskId) === mine) this.#live.delete(taskId);
      });
      void this.#poll();
    }
    const leave = live.join(f);
    return () => {
      if (leave() > 0) return;
      live.leave();
      if (this.#live.get(taskId) === live) this.#live.delete(taskId);
    };
  }

  close() {
    this.#stop.abort(new Error("the client was closed"));
    for (const live of this.#live.values()) live.leave();
    this.#live.clear();
  }

  // Looks at the tasks that have no place for a stream, one after the other.
  async #poll() {
    if (this.#polling) return;
    this.#polling = true;
    while (this.#live.size > 0 && !this.#stop.signal.aborted) {
      await sleep(this.#hidden ? this.#limits.pollHidden : this.#limits.pollSeen, this.#stop.signal);
      for (const live of [...this.#live.values()]) {
        if (!live.placed && this.#connectivity.online) await live.look();
      }
    }
    this.#polling = false;
  }
}

class LiveTask {
  placed = false;
  #id;
  #service;
  #connectivity;
  #limits;
  #slots;
  #watchers = new Set();
  #stop = new AbortController();
  #chunks = [];
  #version = 0;
  #sequence = 0;
  #lastId = "";
  #end = null; // the last event, once there is one
  #task = null; // as last looked at
  #up = true; // until a try has failed

  constructor({ id, service, connectivity, limits, slots }) {
    this.#id = id;
    this.#service = service;
    this.#connectivity = connectivity;
    this.#limits = limits;
    this.#slots = slots;
  }

  join(f) {
    this.#watchers.add(f);
    // Who comes later is told where things stand, as a reset.
    if (this.#version > 0) f({ type: "reset", version: this.#version, text: this.#chunks.join("") });
    if (this.#task) f({ type: "task", task: this.#task });
    if (!this.#up) f({ type: "line", up: false });
    return () => {
      this.#watchers.delete(f);
      return this.#watchers.size;
    };
  }

  leave() {
    this.#stop.abort(new Error("nobody watches"));
  }

  async run(outer) {
    const signal = AbortSignal.any([outer, this.#stop.signal]);
    let failures = 0;
    while (!this.#end && !signal.aborted) {
      if (!this.#connectivity.online) this.#line(false);
      await this.#connectivity.whenOnline(signal);
      const place = await this.#slots.take(signal);
      if (!place) return;
      let pause = 0;
      this.placed = true;
      try {
        const progressed = await this.#once(AbortSignal.any([signal, place.signal]));
        failures = progressed ? 0 : failures + 1;
      } catch (error) {
        failures++;
        pause = error.after ?? 0;
      } finally {
        this.placed = false;
        place.release();
      }
      if (this.#end || signal.aborted || place.signal.aborted) continue;
      // A cut that the next try mends is nobody's concern; one that it does not is.
      if (failures > 0) this.#line(false);
      const { backoffBase: base, backoffMax: max } = this.#limits;
      await sleep(Math.max(Math.min(pause, max), fullJitter(Math.max(1, failures), { base, max })), signal);
    }
  }

  // One connection, until it ends. True when it brought an event.
  async #once(signal) {
    const line = new AbortController();
    const both = AbortSignal.any([signal, line.signal]);
    const watchdog = new Timer(this.#limits.silence, () => line.abort(new Unavailable("the stream went silent")));
    const looker = new Timer(this.#limits.lookAfter, async () => {
      await this.look();
      looker.touch();
    });
    try {
      const response = await this.#open(both);
      if (!response) return false;
      return await this.#read(response, watchdog, looker, both);
    } finally {
      watchdog.stop();
      looker.stop();
      line.abort();
    }
  }

  async #open(signal) {
    const headers = { Accept: "text/event-stream", ...this.#service.headers };
    if (this.#lastId) headers["Last-Event-ID"] = this.#lastId;
    const path = `/v1/tasks/${encodeURIComponent(this.#id)}/events?render=html`;
    const response = await this.#service.fetch(this.#service.baseUrl + path, { headers, cache: "no-store", signal });
    if (response.status === 200 && /^text\/event-stream\b/.test(response.headers.get("content-type") ?? "")) {
      this.#line(true);
      return response;
    }
    await response.body?.cancel();
    if (response.status === 404) this.#finish({ type: "gone" });
    else if (response.status === 204) await this.look(); // it has ended, and we are said to know it
    else throw new Unavailable(`the stream answered ${response.status}`, { status: response.status, after: retryAfter(response.headers) });
    return null;
  }

  async #read(response, watchdog, looker, signal) {
    const parser = new EventStreamParser();
    const reader = response.body.getReader();
    let progressed = false;
    // An aborted fetch rejects the pending read, which ends this loop.
    while (!this.#end && !signal.aborted) {
      const { done, value } = await reader.read();
      if (done) return progressed;
      watchdog.touch(); // heartbeats too: any byte shows that the line lives
      for (const event of parser.push(value)) {
        progressed = true;
        looker.touch();
        this.#take(event);
      }
    }
    return progressed;
  }

  #take(event) {
    let data;
    try {
      data = JSON.parse(event.data);
    } catch {
      throw new Unavailable("an event could not be read");
    }
    if (terminal.has(event.type)) return this.#finish({ type: "end", task: data });
    if (event.type === "reset") return this.#reset(event.id, data);
    if (event.type === "delta") this.#delta(event.id, data);
  }

  #reset(id, { assignment_version: version, text }) {
    const [, sequence] = split(id);
    this.#version = version;
    this.#sequence = sequence;
    this.#lastId = id || this.#lastId;
    this.#chunks = text ? [text] : [];
    this.#tell({ type: "reset", version, text });
  }

  #delta(id, { text }) {
    const [version, sequence] = split(id);
    if (version < this.#version) return; // of an attempt that was replaced
    if (version === this.#version && sequence <= this.#sequence) return; // a repeat
    if (version > this.#version) {
      // Where a draft begins no reset need come first; in its middle one must.
      if (this.#version > 0 && sequence > 1) {
        this.#lastId = "";
        throw new Unavailable("the stream jumped to another version");
      }
      this.#chunks = [];
      if (this.#version > 0) this.#tell({ type: "reset", version, text: "" });
    }
    this.#version = version;
    this.#sequence = sequence;
    this.#lastId = id;
    this.#chunks.push(text);
    this.#tell({ type: "delta", version, text });
  }

  /** Asks how the task stands and passes it on. */
  async look() {
    if (this.#end || this.#stop.signal.aborted) return;
    try {
      const { body } = await this.#service.once("GET", `/v1/tasks/${encodeURIComponent(this.#id)}?render=html`, { signal: this.#stop.signal });
      if (terminal.has(body.status)) this.#finish({ type: "end", task: body });
      else {
        this.#task = body;
        this.#tell({ type: "task", task: body });
      }
    } catch (error) {
      if (error instanceof Problem && error.status === 404) this.#finish({ type: "gone" });
      // Anything else: the next look or the stream itself will tell.
    }
  }

  #line(up) {
    if (this.#up === up) return;
    this.#up = up;
    this.#tell({ type: "line", up });
  }

  #finish(event) {
    if (this.#end) return;
    this.#end = event;
    this.#tell(event);
    this.#stop.abort(new Error("the task has ended"));
  }

  #tell(event) {
    for (const f of [...this.#watchers]) f(event);
  }
}

function split(id) {
  const [version, sequence] = String(id).split(".").map(Number);
  return [version || 0, sequence || 0];
}

// Calls f once after ms without a touch.
class Timer {
  #ms;
  #f;
  #handle;
  #stopped = false;

  constructor(ms, f) {
    this.#ms = ms;
    this.#f = f;
    this.touch();
  }

  touch() {
    if (this.#stopped) return;
    clearTimeout(this.#handle);
    this.#handle = setTimeout(this.#f, this.#ms);
  }

  stop() {
    this.#stopped = true;
    clearTimeout(this.#handle);
  }
}
