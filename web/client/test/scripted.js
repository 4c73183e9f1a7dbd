// A scripted service for the tests: every request is recorded, and the script
// says how each is answered.

import { Client } from "../index.js";
import { MemoryStore } from "../store.js";

let services = 0;

/** Makes a service at an address of its own; `script(request, n)` gives a Response, or throws to lose it. */
export function scripted(script) {
  const requests = [];
  const baseUrl = `http://scripted-${++services}.test`;
  const fetch = async (url, init = {}) => {
    const request = { method: init.method ?? "GET", path: url.slice(baseUrl.length), body: init.body, key: init.headers?.["Idempotency-Key"], last: init.headers?.["Last-Event-ID"], signal: init.signal };
    requests.push(request);
    init.signal?.throwIfAborted();
    return script(request, requests.filter((r) => r.path === request.path).length);
  };
  return { baseUrl, fetch, requests, posts: () => requests.filter((r) => r.method === "POST") };
}

/** A client of it whose waits are short; options as for Client. */
export function clientOf(t, service, options = {}) {
  const client = new Client({
    baseUrl: service.baseUrl,
    fetch: service.fetch,
    store: options.store ?? new MemoryStore(),
    limits: { backoffBase: 1, backoffMax: 2, ...options.limits },
    streamLimits: { backoffBase: 1, backoffMax: 2, ...options.streamLimits },
    visibility: options.visibility,
    connectivity: options.connectivity,
  });
  t.after(() => client.close());
  return client;
}

export function json(status, body, headers = {}) {
  return new Response(JSON.stringify(body), { status, headers: { "Content-Type": "application/json", ...headers } });
}

export function problem(status, code, headers = {}) {
  return new Response(JSON.stringify({ type: `/problems/${code}`, title: code, status, detail: `It is ${code}.` }), { status, headers: { "Content-Type": "application/problem+json", ...headers } });
}

/** What a service answers that knows its keys: the same key, the same task. */
export function ledger() {
  const byKey = new Map();
  return {
    byKey,
    accept(request) {
      const before = byKey.get(request.path + request.key);
      if (before) return json(200, before.answer, { "Idempotent-Replayed": "true" });
      const n = byKey.size + 1;
      const answer = request.path === "/v1/conversations"
        ? { id: `c${n}`, title: JSON.parse(request.body).title }
        : { message: { id: `m${n}`, role: "user", text: JSON.parse(request.body).text }, task: { id: `t${n}`, status: "queued" } };
      byKey.set(request.path + request.key, { answer });
      return json(202, answer);
    },
  };
}

/** Resolves with the first press that f holds for. */
export function pressThat(client, f) {
  return new Promise((resolve) => {
    const leave = client.onPress((press) => {
      if (!f(press)) return;
      leave();
      resolve(press);
    });
  });
}
