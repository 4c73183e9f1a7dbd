// One request, and what its answer means for whoever might ask again.

import { retryAfter, sleep, fullJitter } from "./waiting.js";

/** A definite refusal by the service, from its application/problem+json. */
export class Problem extends Error {
  constructor({ status, code, title, detail }) {
    super(detail || title || `the service answered ${status}`);
    this.name = "Problem";
    this.status = status;
    this.code = code;
    this.title = title || "";
    this.detail = detail || "";
  }
}

/** The service could not be reached, or said to come back later. */
export class Unavailable extends Error {
  constructor(message, { status = 0, after = 0, cause } = {}) {
    super(message, { cause });
    this.name = "Unavailable";
    this.status = status; // 0: no answer at all
    this.after = after; // milliseconds the service asked to wait
  }
}

// 408, 425 and 429 are 4xx that say "not now" rather than "never".
const temporary = new Set([408, 425, 429]);

/** Talks to one service. */
export class Service {
  /**
   * @param {{baseUrl: string, fetch: typeof fetch, headers?: Record<string,string>, timeout: number}} options
   */
  constructor({ baseUrl, fetch, headers = {}, timeout }) {
    this.baseUrl = baseUrl;
    this.fetch = fetch;
    this.headers = headers;
    this.timeout = timeout;
  }

  /**
   * Makes exactly one request. Resolves with {status, body} for a 2xx,
   * rejects with Problem for a definite refusal, Unavailable for everything
   * after which the same request may be made again, and with the signal's
   * reason when it aborts.
   */
  async once(method, path, { body, headers, signal } = {}) {
    const limit = AbortSignal.timeout(this.timeout);
    const both = signal ? AbortSignal.any([signal, limit]) : limit;
    let response, text;
    try {
      response = await this.fetch(this.baseUrl + path, {
        method,
        body,
        // A redirected POST may be sent twice or turned into a GET: refused.
        redirect: method === "GET" ? "follow" : "error",
        cache: "no-store",
        headers: { Accept: "application/json", ...(body === undefined ? {} : { "Content-Type": "application/json" }), ...this.headers, ...headers },
        signal: both,
      });
      text = await response.text();
    } catch (cause) {
      if (signal?.aborted) throw signal.reason;
      throw new Unavailable(limit.aborted ? "the service did not answer in time" : "the service could not be reached", { cause });
    }
    return this.judge(response, text);
  }

  judge(response, text) {
    const { status } = response;
    const body = parse(response, text);
    if (status >= 200 && status < 300) {
      // A cut body, or a page somebody put in between, is no answer: ask again.
      if (status !== 204 && body === undefined) throw new Unavailable("the answer could not be read", { status });
      return { status, body };
    }
    if (status >= 400 && status < 500 && !temporary.has(status)) throw problem(status, body);
    throw new Unavailable(problem(status, body).message, { status, after: retryAfter(response.headers) });
  }

  /**
   * A request that is harmless to repeat (GET, DELETE, cancel), tried a few
   * times before it gives up.
   */
  async patiently(method, path, { tries = 4, signal, ...options } = {}) {
    for (let failed = 1; ; failed++) {
      try {
        return await this.once(method, path, { signal, ...options });
      } catch (error) {
        if (!(error instanceof Unavailable) || failed >= tries) throw error;
        const wait = Math.max(Math.min(error.after, 10_000), fullJitter(failed, { base: 250, max: 4000 }));
        await sleep(wait, ...(signal ? [signal] : []));
        if (signal?.aborted) throw signal.reason;
      }
    }
  }
}

function parse(response, text) {
  if (!/\bjson\b/.test(response.headers.get("content-type") ?? "")) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function problem(status, body) {
  const code = typeof body?.type === "string" ? body.type.split("/").pop() : "";
  return new Problem({ status, code, title: body?.title, detail: body?.detail });
}
