import assert from "node:assert/strict";
import { test } from "node:test";
import { clientOf, json, problem, scripted } from "./scripted.js";

/** A stream of frames; after them it ends, or stays open when `open`. */
function stream(frames, { open = false, signal } = {}) {
  const encoder = new TextEncoder();
  const body = new ReadableStream({
    start(controller) {
      for (const frame of frames) controller.enqueue(encoder.encode(frame));
      if (!open) controller.close();
      signal?.addEventListener("abort", () => {
        if (open) controller.error(signal.reason);
      });
    },
  });
  return new Response(body, { headers: { "Content-Type": "text/event-stream" } });
}

const delta = (id, text) => `event: delta\nid: ${id}\ndata: ${JSON.stringify({ text })}\n\n`;
const reset = (id, version, text) => `event: reset\nid: ${id}\ndata: ${JSON.stringify({ assignment_version: version, text })}\n\n`;
const end = (type = "completed") => `event: ${type}\nid: end\ndata: ${JSON.stringify({ id: "t1", status: type })}\n\n`;

/** Watches t1 to its end: {text, events, resets}. */
function watched(client) {
  return new Promise((resolve) => {
    const seen = { text: "", events: [] };
    client.watch("t1", (event) => {
      seen.events.push(event.type);
      if (event.type === "reset") seen.text = event.text;
      if (event.type === "delta") seen.text += event.text;
      if (event.type === "end" || event.type === "gone") resolve({ ...seen, task: event.task });
    });
  });
}

test("a cut stream is re-opened after the last event, without a gap or a repeat", async (t) => {
  const service = scripted((request, n) => {
    if (n === 1) return stream([reset("1.0", 1, ""), ": heartbeat\n\n", delta("1.1", "a"), delta("1.2", "b")]);
    if (n === 2) return stream([]); // cut before any event
    if (n === 3) return stream([delta("1.2", "b"), delta("1.3", "c")]); // repeats one
    return stream([end()]);
  });
  const seen = await watched(clientOf(t, service));
  assert.equal(seen.text, "abc");
  assert.deepEqual(service.requests.map((r) => r.last), [undefined, "1.2", "1.2", "1.3"]);
  assert.ok(service.requests.every((r) => r.method === "GET"), "reconnecting never starts work");
});

test("a takeover replaces the draft, and what the old attempt still said is dropped", async (t) => {
  const service = scripted(() => stream([reset("1.0", 1, ""), delta("1.1", "old "), reset("2.0", 2, ""), delta("1.2", "late "), delta("2.1", "new"), end()]));
  assert.equal((await watched(clientOf(t, service))).text, "new");
});

test("a reset that brings text goes on after the id it carries", async (t) => {
  const service = scripted(() => stream([reset("1.7", 1, "so far, "), delta("1.7", "no "), delta("1.8", "yes"), end()]));
  assert.equal((await watched(clientOf(t, service))).text, "so far, yes");
});

test("a jump into the middle of another version starts that draft anew", async (t) => {
  const service = scripted((request, n) => (n === 1 ? stream([delta("1.1", "old"), delta("2.5", "middle")]) : stream([reset("2.5", 2, "whole"), end()])));
  const seen = await watched(clientOf(t, service));
  assert.equal(seen.text, "whole");
  assert.equal(service.requests[1].last, undefined);
});

test("all who watch a task share one stream, and the late one is told where it stands", async (t) => {
  const service = scripted((request) => stream([reset("1.0", 1, ""), delta("1.1", "so far")], { open: true, signal: request.signal }));
  const client = clientOf(t, service);
  await new Promise((resolve) => client.watch("t1", (event) => event.type === "delta" && resolve()));
  const late = await new Promise((resolve) => client.watch("t1", resolve));
  assert.deepEqual(late, { type: "reset", version: 1, text: "so far" });
  assert.equal(service.requests.length, 1);
});

test("the last watcher to leave closes the stream", async (t) => {
  let closed;
  const ended = new Promise((resolve) => (closed = resolve));
  const service = scripted((request) => {
    request.signal.addEventListener("abort", closed);
    return stream([delta("1.1", "x")], { open: true, signal: request.signal });
  });
  const client = clientOf(t, service);
  let leave;
  await new Promise((resolve) => (leave = client.watch("t1", resolve)));
  leave();
  await ended;
});

test("a silent line is taken for dead and opened again", async (t) => {
  const service = scripted((request, n) => (n === 1 ? stream([delta("1.1", "a")], { open: true, signal: request.signal }) : stream([delta("1.2", "b"), end()])));
  const seen = await watched(clientOf(t, service, { streamLimits: { silence: 5 } }));
  assert.equal(seen.text, "ab");
});

test("a stream that will not open is tried again, and one that is not there is gone", async (t) => {
  const service = scripted((request, n) => (n < 3 ? problem(503, "unavailable") : problem(404, "not_found")));
  const seen = await watched(clientOf(t, service));
  assert.deepEqual(seen.events, ["line", "gone"]);
  assert.equal(service.requests.length, 3);
});

test("a line that stays lost is told once, and once that it is back", async (t) => {
  const service = scripted((request, n) => {
    if (n === 1) return stream([delta("1.1", "a")]);
    if (n < 5) throw new TypeError("nobody listens");
    return stream([delta("1.2", "b"), end()]);
  });
  const told = [];
  const client = clientOf(t, service);
  const ended = watched(client);
  client.watch("t1", (event) => told.push(event.type === "line" ? event.up : event.type));
  assert.equal((await ended).text, "ab");
  assert.deepEqual(told, ["delta", false, true, "delta", "end"]);
});

test("a cut that the next try mends is not told", async (t) => {
  const service = scripted((request, n) => (n === 1 ? stream([delta("1.1", "a")]) : stream([delta("1.2", "b"), end()])));
  assert.deepEqual((await watched(clientOf(t, service))).events, ["delta", "delta", "end"]);
});

test("who comes while the line is lost is told so", async (t) => {
  let back = false;
  const service = scripted(() => {
    if (back) return stream([end()]);
    throw new TypeError("nobody listens");
  });
  const client = clientOf(t, service);
  await new Promise((resolve) => client.watch("t1", (event) => event.type === "line" && resolve()));
  const late = await new Promise((resolve) => client.watch("t1", resolve));
  assert.deepEqual(late, { type: "line", up: false });
  back = true;
});

test("being offline is told at once", async (t) => {
  const connectivity = { online: false, onReturn() {}, whenOnline: () => new Promise((resolve) => setImmediate(() => ((connectivity.online = true), resolve()))) };
  const service = scripted(() => stream([end()]));
  assert.deepEqual((await watched(clientOf(t, service, { connectivity }))).events, ["line", "line", "end"]);
});

test("a stream that has nothing more to say is asked how it ended", async (t) => {
  const service = scripted((request) => (request.path.includes("/events") ? new Response(null, { status: 204 }) : json(200, { id: "t1", status: "failed" })));
  assert.equal((await watched(clientOf(t, service))).task.status, "failed");
});

test("no more streams are open at once than allowed, and all tasks are followed to their end", async (t) => {
  let open = 0;
  let most = 0;
  const service = scripted((request) => {
    most = Math.max(most, ++open);
    const body = new ReadableStream({
      async pull(controller) {
        await new Promise(setImmediate);
        controller.enqueue(new TextEncoder().encode(end()));
        open--;
        controller.close();
      },
    });
    return new Response(body, { headers: { "Content-Type": "text/event-stream" } });
  });
  const client = clientOf(t, service);
  await Promise.all(Array.from({ length: 20 }, (_, n) => new Promise((resolve) => client.watch(`t${n}`, (e) => e.type === "end" && resolve()))));
  assert.ok(most <= 2, `${most} at once`);
});

test("a hidden tab holds no stream, still learns the end, and resumes when it is seen", async (t) => {
  const visibility = Object.assign(new EventTarget(), { visibilityState: "visible" });
  const turn = (state) => {
    visibility.visibilityState = state;
    visibility.dispatchEvent(new Event("visibilitychange"));
  };
  const service = scripted((request, n) => (n === 1 ? stream([delta("1.1", "a")], { open: true, signal: request.signal }) : stream([delta("1.2", "b"), end()])));
  const client = clientOf(t, service, { visibility, streamLimits: { pollHidden: 3600_000 } });
  const ended = watched(client);
  await new Promise((resolve) => client.watch("t1", (e) => e.type !== "task" && resolve()));
  const left = new Promise((resolve) => service.requests[0].signal.addEventListener("abort", resolve));
  turn("hidden");
  await left;
  assert.equal(service.requests.length, 1);
  turn("visible");
  assert.equal((await ended).text, "ab");
  assert.equal(service.requests[1].last, "1.1");
});
