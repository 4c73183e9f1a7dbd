// One task: where it stands, what it may still use, and its timeline as a
// drawing and as a table.

import { button, h } from "./dom.js";
import { drawTimeline, words } from "./timeline.js";
import { over } from "./turn.js";
import { cause, duration, ended, modelName, tokens, underway } from "./words.js";

const REFRESH = 1000; // while it runs

/** The view at /tasks/{id}. */
export class TaskView {
  #client;
  #app;
  #taskId;
  #task = null;
  #events = [];
  #stop = new AbortController();
  #timer = 0;
  #head = h("div", { class: "task-head" });
  #gauges = h("dl", { class: "gauges" });
  #drawing = h("div", { class: "drawing" });
  #rows = h("tbody");
  #resized;

  constructor(client, app, id) {
    this.#client = client;
    this.#app = app;
    this.#taskId = id;
    const columns = ["After", "Event", "Attempt", "Worker", "Details"];
    this.element = h("div", { class: "scroll" }, h("div", { class: "task" },
      this.#head, this.#gauges,
      h("section", { "aria-label": "Timeline" },
        h("h2", {}, "Timeline"), this.#drawing,
        h("div", { class: "table-frame", tabindex: "0", role: "group", "aria-label": "Events" },
          h("table", {}, h("caption", { class: "unseen" }, "Every event of the task’s life"), h("thead", {}, h("tr", {}, ...columns.map((c) => h("th", { scope: "col" }, c)))), this.#rows)))));
    this.#resized = new ResizeObserver(() => this.#draw());
  }

  /** Shows the task and keeps it up to date until it ends. */
  async open() {
    this.#app.titled(this, "Task");
    await this.#refresh();
    this.#resized.observe(this.#drawing);
  }

  close() {
    this.#stop.abort();
    clearTimeout(this.#timer);
    this.#resized.disconnect();
  }

  async #refresh() {
    const { signal } = this.#stop;
    const task = await this.#client.task(this.#taskId, { signal });
    this.#events = await this.#client.timeline(this.#taskId, { signal });
    if (signal.aborted) return;
    this.#task = task;
    this.#render();
    if (!over(task)) this.#timer = setTimeout(() => this.#again(), REFRESH);
  }

  async #again() {
    try {
      await this.#refresh();
    } catch (error) {
      if (this.#stop.signal.aborted) return;
      this.#app.offline(error);
      this.#timer = setTimeout(() => this.#again(), 5 * REFRESH);
    }
  }

  #render() {
    const task = this.#task;
    const state = !over(task) ? underway(task, { drafting: true }) : task.status === "completed" ? "Answered and saved." : ended(task).text;
    this.#head.replaceChildren(
      h("p", { class: `state is-${task.status}` }, h("span", { class: "dot", "aria-hidden": "true" }), words(task.status)),
      h("p", { class: "lead" }, state),
      h("p", { class: "id" }, h("code", {}, task.id)));
    if (!over(task)) this.#head.append(button({ text: "Stop", label: "Stop", picture: "stop", className: "quiet-button stop", onclick: () => void this.#cancel() }));
    this.#gauges.replaceChildren(
      gauge("Attempts", task.budget.attempts),
      gauge("Calls to the model", task.budget.calls),
      fact("Time", duration((task.ended_at ? new Date(task.ended_at) : new Date()) - new Date(task.created_at)), `of ${span(task.budget.elapsed_max)}`),
      task.response?.model ? fact("Model", modelName(task.response.model), tokens(task.response.usage)) : "");
    this.#rows.replaceChildren(...this.#events.map((e) => this.#row(e)));
    this.#draw();
  }

  async #cancel() {
    try {
      await this.#client.cancel(this.#taskId);
      clearTimeout(this.#timer);
      await this.#refresh();
    } catch (error) {
      this.#app.offline(error);
    }
  }

  #draw() {
    const width = this.#drawing.clientWidth;
    if (!this.#task || width === 0) return;
    this.#drawing.replaceChildren(drawTimeline({ task: this.#task, events: this.#events, width, now: Date.now() }));
  }

  #row(event) {
    const after = new Date(event.at) - new Date(this.#task.created_at);
    const attempt = (this.#task.attempts ?? []).findIndex((a) => a.id === event.attempt_id);
    const details = [
      event.count > 1 ? `${event.count} times` : "",
      event.call ? `call ${event.call}` : "",
      event.why ? words(event.why) : "",
      event.code ? (event.type === "failed" || event.type === "retried" ? cause({ code: event.code, message: words(event.code) }) : words(event.code)) : "",
      event.detail ?? "",
      tokens(event.usage),
    ];
    return h("tr", { class: `is-${event.type}` },
      h("td", { class: "number" }, h("time", { datetime: event.at, title: new Date(event.at).toLocaleString() }, duration(Math.max(0, after)))),
      h("th", { scope: "row" }, words(event.type)),
      h("td", {}, attempt >= 0 ? String(attempt + 1) : event.version ? `v${event.version}` : ""),
      h("td", { class: "worker" }, event.worker ?? ""),
      h("td", { dir: "auto" }, details.filter(Boolean).join(" · ")));
  }
}

function gauge(name, { used, max }) {
  const meter = h("meter", { min: "0", max: String(max), value: String(used), "aria-label": `${name}: ${used} of ${max}` });
  return h("div", { class: "gauge" }, h("dt", {}, name), h("dd", {}, h("b", {}, String(used)), ` of ${max}`, meter));
}

function fact(name, value, beside) {
  return h("div", { class: "gauge" }, h("dt", {}, name), h("dd", {}, h("b", {}, value), beside ? ` ${beside}` : ""));
}

// "15m0s" as people write it.
function span(go) {
  return String(go).replace(/^(\d+h)?(?:(\d+)m)?(?:0s)?$/, (all, hours = "", minutes) => `${hours.replace("h", " h ")}${minutes && minutes !== "0" ? `${minutes} min` : ""}`.trim() || all);
}
