// @onereply/client: one reply per press of Send.
//
// Start reading at outbox.js (what is never sent twice) and streams.js (how an
// answer arrives). This file joins them and names the service's calls.

import { Channel } from "./channel.js";
import { Problem, Service, Unavailable } from "./http.js";
import { mintKey } from "./keys.js";
import { Outbox } from "./outbox.js";
import { openStore } from "./store.js";
import { Streams } from "./streams.js";
import { Connectivity } from "./waiting.js";

export { Problem, Unavailable };

/** A conversation that is made by the first message sent to it. */
export class NewConversation {
  constructor(title) {
    this.key = mintKey(); // minted once: every try asks for the same conversation
    this.body = JSON.stringify(title ? { title } : {});
    this.lane = `new ${this.key}`;
  }
}

const shared = new Map(); // base URL → this page's client

/**
 * Talks to one onereply service. Take Client.shared() in a page: mounted
 * twice, it is still one client, with one stream per task.
 */
export class Client {
  #service;
  #outbox;
  #streams;
  #channel;
  #lanes = new Map(); // conversation id → the lane its first message was sent in

  /** @param {import("./index.d.ts").ClientOptions} [options] */
  constructor(options = {}) {
    const { baseUrl = "", fetch = globalThis.fetch.bind(globalThis), headers, timeout = 30_000 } = options;
    const name = `onereply ${baseUrl}`;
    const connectivity = options.connectivity ?? new Connectivity();
    this.#service = new Service({ baseUrl: baseUrl.replace(/\/$/, ""), fetch, headers, timeout });
    this.#channel = new Channel(name, options.BroadcastChannel);
    const store = options.store ? Promise.resolve(options.store) : openStore(name);
    this.#outbox = new Outbox({ service: this.#service, store, locks: options.locks, connectivity, channel: this.#channel, limits: options.limits });
    this.#streams = new Streams({ service: this.#service, connectivity, limits: options.streamLimits, visibility: options.visibility });
    this.#outbox.subscribe((press) => {
      if (press.state === "known" && press.start) this.#lanes.set(press.result.conversation, press.lane);
    });
  }

  /** The page's one client for a base URL; the options of the first call count. */
  static shared(options = {}) {
    const { baseUrl = "" } = options;
    if (!shared.has(baseUrl)) shared.set(baseUrl, new Client(options));
    return shared.get(baseUrl);
  }

  /** Takes up the presses an earlier page left unsent. Call it once, after subscribing. */
  start() {
    return this.#outbox.start();
  }

  // --- presses -----------------------------------------------------------

  /**
   * One press of Send. Mints the key, returns at once; the message is kept
   * and tried until the service has it, has refused it, or the limits are met.
   * @param {string | NewConversation} conversation
   * @param {{text: string, policy?: object, documents?: object[]}} message
   * @param {object} [note] kept with the press and handed back with it
   */
  send(conversation, message, note) {
    const to = conversation instanceof NewConversation
      ? { lane: conversation.lane, start: { key: conversation.key, body: conversation.body }, conversation: null, path: null }
      : { lane: this.#lanes.get(conversation) ?? conversation, conversation, path: `/v1/conversations/${encodeURIComponent(conversation)}/messages` };
    return this.#outbox.press({ kind: "message", ...to, body: JSON.stringify(message), text: message.text, note });
  }

  /**
   * One press of Regenerate: another answer to the same message. While one is
   * on its way, pressing again is the same press.
   */
  regenerate(messageId, note) {
    return this.#onTarget("regenerate", messageId, `/v1/messages/${encodeURIComponent(messageId)}/regenerate`, note);
  }

  /** One press of Try again: a failed task gets a fresh allowance. */
  resume(taskId, note) {
    return this.#onTarget("resume", taskId, `/v1/tasks/${encodeURIComponent(taskId)}/resume`, note);
  }

  #onTarget(kind, target, path, note) {
    const underway = this.presses().find((p) => p.kind === kind && p.target === target && p.state === "sending");
    if (underway) return { key: underway.key, press: underway, known: null };
    return this.#outbox.press({ kind, target, path, body: "{}", lane: `${kind} ${target}`, note });
  }

  /** The presses that are not settled, oldest first. */
  presses() {
    return this.#outbox.list();
  }

  /** Calls f with a press whenever it changes, whichever tab made it. */
  onPress(f) {
    return this.#outbox.subscribe(f);
  }

  /** Tries a press that was not sent again, under its own key. */
  retry(key) {
    return this.#outbox.retry(key);
  }

  /** True when a press is so old that its key no longer protects it. */
  stale(press) {
    return this.#outbox.stale(press);
  }

  /** Forgets a press that was not sent. */
  discard(key) {
    return this.#outbox.discard(key);
  }

  /** Ends all waiting between tries: the person is looking. */
  hurry() {
    this.#outbox.hurry();
  }

  // --- tasks -------------------------------------------------------------

  /** Follows a task's live answer; see Streams.watch. Never starts work. */
  watch(taskId, f) {
    return this.#streams.watch(taskId, f);
  }

  /** The task; its response carries `html`, made safe by the service. */
  async task(id, { signal } = {}) {
    return (await this.#service.patiently("GET", `/v1/tasks/${encodeURIComponent(id)}?render=html`, { signal })).body;
  }

  async timeline(id, { signal } = {}) {
    const { body } = await this.#service.patiently("GET", `/v1/tasks/${encodeURIComponent(id)}/timeline`, { signal });
    return body.data;
  }

  /** Stops a task. Resolves to how it stands, also when it had ended before. */
  async cancel(id) {
    try {
      return (await this.#service.patiently("POST", `/v1/tasks/${encodeURIComponent(id)}/cancel`)).body;
    } catch (error) {
      if (error instanceof Problem && error.code === "task_ended") return this.task(id);
      throw error;
    }
  }

  // --- conversations -----------------------------------------------------

  /** One page of conversations, and `next` to ask for the one after it. */
  async conversations({ after, limit = 50, signal } = {}) {
    const query = new URLSearchParams({ limit: String(limit), ...(after ? { after } : {}) });
    return (await this.#service.patiently("GET", `/v1/conversations?${query}`, { signal })).body;
  }

  /** A conversation with its messages, oldest first. */
  async conversation(id, { signal } = {}) {
    return (await this.#service.patiently("GET", `/v1/conversations/${encodeURIComponent(id)}?render=html`, { signal })).body;
  }

  /** Deletes a conversation with its running tasks and its unsent presses. */
  async deleteConversation(id) {
    try {
      await this.#service.patiently("DELETE", `/v1/conversations/${encodeURIComponent(id)}`);
    } catch (error) {
      if (!(error instanceof Problem && error.status === 404)) throw error;
    }
    for (const press of this.presses()) if (press.conversation === id) await this.discard(press.key);
    this.#channel.say({ type: "deleted", conversation: id });
  }

  /** Calls f with the id of every conversation another tab deletes. */
  onDeleted(f) {
    return this.#channel.listen((message) => {
      if (message.type === "deleted") f(message.conversation);
    });
  }

  /** Ends everything this client does. What is unsent stays written down. */
  close() {
    this.#outbox.close();
    this.#streams.close();
    this.#channel.close();
  }
}
