// Reads the text/event-stream format from chunks of bytes.
//
// The browser's own EventSource is not used because it cannot send an
// Authorization header, gives up for good on any answer but 200, and hides the
// comment heartbeats, so that a dead line could not be told from a quiet one.

// One event of a stream: its name, its data and the id that was current when
// it was dispatched ("" before any).
/** @typedef {{type: string, data: string, id: string}} StreamEvent */

/** Splits bytes into events. Feed it every chunk; it keeps what is unfinished. */
export class EventStreamParser {
  #decoder = new TextDecoder("utf-8"); // drops a leading byte order mark, as the format asks
  #rest = "";
  #skipLF = false;
  #data = [];
  #type = "";
  #id = "";

  /**
   * @param {Uint8Array} bytes
   * @returns {StreamEvent[]} the events these bytes completed
   */
  push(bytes) {
    const events = [];
    this.#rest += this.#decoder.decode(bytes, { stream: true });
    let from = 0;
    for (;;) {
      // A CRLF may be cut in two by the network: the LF then opens the next chunk.
      if (this.#skipLF && from < this.#rest.length) {
        if (this.#rest[from] === "\n") from++;
        this.#skipLF = false;
      }
      const end = lineEnd(this.#rest, from);
      if (end < 0) break;
      const line = this.#rest.slice(from, end);
      this.#skipLF = this.#rest[end] === "\r";
      from = end + 1;
      const event = this.#line(line);
      if (event) events.push(event);
    }
    this.#rest = this.#rest.slice(from);
    return events;
  }

  #line(line) {
    if (line === "") return this.#dispatch();
    const colon = line.indexOf(":");
    if (colon === 0) return null; // a comment: the heartbeat
    const field = colon < 0 ? line : line.slice(0, colon);
    let value = colon < 0 ? "" : line.slice(colon + 1);
    if (value.startsWith(" ")) value = value.slice(1);
    if (field === "data") this.#data.push(value);
    else if (field === "event") this.#type = value;
    else if (field === "id" && !value.includes("\0")) this.#id = value;
    return null; // "retry" is ignored: the backoff is ours
  }

  #dispatch() {
    const data = this.#data;
    const type = this.#type || "message";
    this.#data = [];
    this.#type = "";
    if (data.length === 0) return null;
    return { type, data: data.join("\n"), id: this.#id };
  }
}

function lineEnd(text, from) {
  for (let i = from; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c === 10 || c === 13) return i;
  }
  return -1;
}
