import assert from "node:assert/strict";
import { test } from "node:test";
import { NewConversation } from "../index.js";
import { MemoryStore } from "../store.js";
import { clientOf, json, ledger, pressThat, problem, scripted } from "./scripted.js";

test("a press is written down with its key before the first try", async (t) => {
  const store = new MemoryStore();
  const book = ledger();
  let written;
  const service = scripted(async (request) => {
    written = await store.get(request.key);
    return book.accept(request);
  });
  await clientOf(t, service, { store }).send("c1", { text: "hello" }).known;
  assert.equal(written.body, JSON.stringify({ text: "hello" }));
  assert.deepEqual(await store.all(), [], "it is forgotten once the task is known");
});

test("a lost answer is asked for again with the same key and the same bytes", async (t) => {
  const book = ledger();
  const service = scripted((request, n) => {
    const answer = book.accept(request);
    if (n < 4) throw new TypeError("the line broke");
    return answer;
  });
  const { task } = await clientOf(t, service).send("c1", { text: "hello" }).known;
  assert.equal(task.id, "t1");
  assert.equal(service.posts().length, 4);
  assert.equal(new Set(service.posts().map((r) => r.key)).size, 1);
  assert.equal(new Set(service.posts().map((r) => r.body)).size, 1);
  assert.equal(book.byKey.size, 1);
});

test("the same text sent again is another press with another key", async (t) => {
  const book = ledger();
  const service = scripted((request) => book.accept(request));
  const client = clientOf(t, service);
  const first = await client.send("c1", { text: "hello" }).known;
  const second = await client.send("c1", { text: "hello" }).known;
  assert.notEqual(first.task.id, second.task.id);
});

for (const [name, answer] of Object.entries({
  "a 503": () => problem(503, "unavailable", { "Retry-After": "0" }),
  "a 500": () => problem(500, "internal"),
  "a 429": () => problem(429, "rate_limited", { "Retry-After": "0" }),
  "a 408": () => problem(408, "timeout"),
  "a page that somebody put in between": () => new Response("<h1>Sign in</h1>", { headers: { "Content-Type": "text/html" } }),
  "an answer cut in the middle": () => new Response('{"task": {"id"', { headers: { "Content-Type": "application/json" } }),
  "an answer without a task": () => json(200, { ok: true }),
})) {
  test(`${name} is no answer: the press is tried again`, async (t) => {
    const book = ledger();
    const service = scripted((request, n) => (n === 1 ? answer() : book.accept(request)));
    assert.equal((await clientOf(t, service).send("c1", { text: "hello" }).known).task.id, "t1");
    assert.equal(service.posts()[0].key, service.posts()[1].key);
  });
}

test("a definite refusal is told and forgotten", async (t) => {
  const store = new MemoryStore();
  const service = scripted(() => problem(413, "too_large"));
  const client = clientOf(t, service, { store });
  const refused = pressThat(client, (p) => p.state === "refused");
  await assert.rejects(client.send("c1", { text: "hello" }).known, { name: "Problem", code: "too_large", status: 413 });
  assert.equal((await refused).why.message, "It is too_large.");
  assert.equal(service.posts().length, 1);
  assert.deepEqual(await store.all(), []);
});

test("a Retry-After beyond all patience gives up, and the button uses the same key", async (t) => {
  const book = ledger();
  const service = scripted((request, n) => (n === 1 ? problem(429, "rate_limited", { "Retry-After": "10800" }) : book.accept(request)));
  const client = clientOf(t, service);
  const given = pressThat(client, (p) => p.state === "not_sent");
  const { key, known } = client.send("c1", { text: "hello" });
  assert.equal((await given).why.after, 10_800_000);
  assert.equal(service.posts().length, 1);
  assert.equal(await client.retry(key), true);
  assert.equal((await known).task.id, "t1");
  assert.deepEqual(service.posts().map((r) => r.key), [key, key]);
});

test("tries are bounded", async (t) => {
  const service = scripted(() => {
    throw new TypeError("no route");
  });
  const client = clientOf(t, service, { limits: { maxTries: 5 } });
  const given = pressThat(client, (p) => p.state === "not_sent");
  client.send("c1", { text: "hello" });
  assert.equal((await given).why.code, "network");
  assert.equal(service.posts().length, 5);
});

test("the next page takes up what the last one left, with its key", async (t) => {
  const store = new MemoryStore();
  const book = ledger();
  let down = true;
  const service = scripted((request) => {
    const answer = book.accept(request);
    if (down) throw new TypeError("the line broke");
    return answer;
  });
  const before = clientOf(t, service, { store, limits: { backoffBase: 60_000, backoffMax: 60_000 } });
  const waiting = pressThat(before, (p) => p.why);
  const { key } = before.send("c1", { text: "hello" });
  await waiting;
  before.close();
  down = false;
  const after = clientOf(t, service, { store });
  const known = pressThat(after, (p) => p.state === "known");
  await after.start();
  assert.equal((await known).key, key);
  assert.equal(book.byKey.size, 1);
  assert.deepEqual(await store.all(), []);
});

test("a press left for days is not sent by itself, and one older than its key's life not at all", async (t) => {
  const store = new MemoryStore();
  const day = 24 * 3600_000;
  const left = (key, age) => store.put({ key, kind: "message", lane: "c1", conversation: "c1", path: "/v1/conversations/c1/messages", body: "{}", pressedAt: Date.now() - age, turn: 0, state: "sending", tries: 0 });
  await left("two days", 2 * day);
  await left("a week", 7 * day);
  const book = ledger();
  const service = scripted((request) => book.accept(request));
  const client = clientOf(t, service, { store });
  await client.start();
  assert.deepEqual(client.presses().map((p) => p.state), ["not_sent", "not_sent"]);
  assert.equal(service.requests.length, 0);
  assert.equal(await client.retry("a week"), false);
  const known = pressThat(client, (p) => p.state === "known");
  assert.equal(await client.retry("two days"), true);
  assert.equal((await known).key, "two days");
});

test("presses of one conversation arrive in their order, one at a time", async (t) => {
  const book = ledger();
  let inFlight = 0;
  const service = scripted(async (request, n) => {
    assert.equal(++inFlight, 1);
    await new Promise(setImmediate);
    inFlight--;
    if (n % 3 === 0) throw new TypeError("the line broke");
    return book.accept(request);
  });
  const client = clientOf(t, service);
  const texts = Array.from({ length: 50 }, (_, n) => `message ${n}`);
  await Promise.all(texts.map((text) => client.send("c1", { text }).known));
  assert.deepEqual([...book.byKey.values()].map((e) => e.answer.message.text), texts);
});

test("clients that share a store send a press once", async (t) => {
  const store = new MemoryStore();
  const book = ledger();
  const service = scripted(async (request) => {
    await new Promise(setImmediate);
    return book.accept(request);
  });
  const one = clientOf(t, service, { store });
  const two = clientOf(t, service, { store });
  const heard = pressThat(two, (p) => p.state === "known" || p.state === "elsewhere");
  await Promise.all([one.send("c1", { text: "hello" }).known, heard]);
  assert.equal(service.posts().length, 1);
});

test("a new conversation is made once, whatever gets lost, and takes all that was sent to it", async (t) => {
  const book = ledger();
  const service = scripted((request, n) => {
    const answer = book.accept(request);
    if (n === 1) throw new TypeError("the line broke");
    return answer;
  });
  const client = clientOf(t, service);
  const conversation = new NewConversation("Leases");
  const sent = await Promise.all(["first", "second"].map((text) => client.send(conversation, { text }).known));
  assert.equal(new Set(sent.map((r) => r.conversation)).size, 1);
  assert.equal([...book.byKey.keys()].filter((k) => k.startsWith("/v1/conversations" + conversation.key)).length, 1);
  assert.equal(book.byKey.size, 3);
});

test("pressing Regenerate while one is on its way is the same press", async (t) => {
  const service = scripted(() => json(202, { task: { id: "t9", status: "queued" } }));
  const client = clientOf(t, service);
  const first = client.regenerate("m1");
  const second = client.regenerate("m1");
  assert.equal(first.key, second.key);
  await first.known;
  assert.equal(service.posts().length, 1);
  await client.regenerate("m1").known;
  assert.equal(new Set(service.posts().map((r) => r.key)).size, 2, "after that it is a new wish");
});

test("without a network nothing is tried, and its return sends", async (t) => {
  const book = ledger();
  const service = scripted((request) => book.accept(request));
  let back;
  const connectivity = { online: false, onReturn: () => {}, whenOnline: () => new Promise((resolve) => (back = resolve)) };
  const client = clientOf(t, service, { connectivity });
  const { known } = client.send("c1", { text: "hello" });
  while (!back) await new Promise(setImmediate);
  assert.equal(service.requests.length, 0);
  back();
  assert.equal((await known).task.id, "t1");
});

test("a discarded press is not sent", async (t) => {
  const store = new MemoryStore();
  const service = scripted(() => problem(429, "rate_limited", { "Retry-After": "10800" }));
  const client = clientOf(t, service, { store });
  const given = pressThat(client, (p) => p.state === "not_sent");
  const { key } = client.send("c1", { text: "hello" });
  await given;
  await client.discard(key);
  assert.deepEqual(client.presses(), []);
  assert.deepEqual(await store.all(), []);
});
