import assert from "node:assert/strict";
import { test } from "node:test";
import { EventStreamParser } from "../sse.js";

const text = ["\uFEFF: a comment", "event: reset", "id: 1.0", 'data: {"text":""}', "", ": heartbeat", "", "id: 1.1", "event: delta", "data: größe", "data: 日本", "", "data:no space", "id", "", "event: none", "", "id: a\0b", "data: last", "", "data: unfinished"];
const expected = [
  { type: "reset", data: '{"text":""}', id: "1.0" },
  { type: "delta", data: "größe\n日本", id: "1.1" },
  { type: "message", data: "no space", id: "" },
  { type: "message", data: "last", id: "" },
];

for (const [name, end] of Object.entries({ "line feeds": "\n", "carriage returns": "\r", both: "\r\n" })) {
  test(`events are read whole with ${name}, wherever the bytes are cut`, () => {
    const bytes = new TextEncoder().encode(text.join(end));
    for (let size = 1; size <= bytes.length; size++) {
      const parser = new EventStreamParser();
      const events = [];
      for (let at = 0; at < bytes.length; at += size) events.push(...parser.push(bytes.subarray(at, at + size)));
      assert.deepEqual(events, expected, `in pieces of ${size} bytes`);
    }
  });
}
