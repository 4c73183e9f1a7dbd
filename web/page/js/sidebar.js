// The list of conversations.

import { ask, button, h } from "./dom.js";
import { when } from "./words.js";

/** The list on the left: newest first, with those that are still being sent on top. */
export class Sidebar {
  #client;
  #app;
  #known = new Map(); // id → {id, title, created_at}
  #next = null;
  #current = null; // id or lane
  #list = document.getElementById("conversations");
  #more = document.getElementById("more-conversations");

  constructor(client, app) {
    this.#client = client;
    this.#app = app;
    this.#more.addEventListener("click", () => void this.#page(this.#next));
    client.onPress((press) => {
      if (press.start) this.#render();
    });
    client.onDeleted((id) => this.forget(id));
    this.#drawer();
  }

  /** Fetches the newest conversations. */
  async load() {
    await this.#page(null);
  }

  async #page(after) {
    try {
      const { data, next } = await this.#client.conversations({ after });
      for (const conversation of data) this.#known.set(conversation.id, conversation);
      if (after || this.#next === null) this.#next = next ?? null;
      this.#more.hidden = !this.#next;
    } catch (error) {
      this.#app.offline(error);
    }
    this.#render();
  }

  /** A conversation that is now known to exist, or to be called so. */
  add(conversation) {
    this.#known.set(conversation.id, { ...this.#known.get(conversation.id), ...conversation });
    this.#render();
  }

  forget(id) {
    this.#known.delete(id);
    this.#render();
    this.#app.deleted(id);
  }

  /** Marks the open one. */
  mark(idOrLane) {
    this.#current = idOrLane;
    this.#render();
    this.#open(false);
  }

  #render() {
    const lanes = new Map();
    for (const press of this.#client.presses()) if (press.start && !lanes.has(press.lane)) lanes.set(press.lane, press);
    const rows = [...lanes.values()].reverse().map((press) => this.#unsent(press));
    const saved = [...this.#known.values()].sort((a, b) => (a.id < b.id ? 1 : -1));
    rows.push(...saved.map((c) => this.#row(c)));
    const focused = document.activeElement?.closest?.("#conversations [data-id]")?.dataset.id;
    this.#list.replaceChildren(...rows);
    if (focused) this.#list.querySelector(`[data-id="${CSS.escape(focused)}"] a`)?.focus();
    if (rows.length === 0) this.#list.append(h("li", { class: "none" }, "Your conversations will be listed here."));
  }

  #row(conversation) {
    const title = conversation.title || "Untitled";
    const current = conversation.id === this.#current;
    return h("li", { class: "row", "data-id": conversation.id },
      h("a", { href: `/c/${conversation.id}`, "data-route": "", "aria-current": current ? "page" : null, dir: "auto", title: conversation.created_at ? `${title} · ${when(conversation.created_at)}` : title }, title),
      button({ label: `Delete “${title}”`, picture: "trash", className: "icon-button small delete", onclick: () => void this.#delete(conversation.id, title) }));
  }

  // A conversation whose first message is still on its way, or did not get there.
  #unsent(press) {
    return h("li", { class: "row unsent" },
      h("button", { type: "button", dir: "auto", "aria-current": press.lane === this.#current ? "page" : null, onclick: () => this.#app.openLane(press.lane) },
        press.text, h("span", { class: "state" }, press.state === "not_sent" ? "not sent" : "sending…")));
  }

  async #delete(id, title) {
    if (!(await ask({ title: "Delete this conversation?", text: `“${title}” and its answers are removed for good, and what is being answered in it is stopped.`, yes: "Delete" }))) return;
    try {
      await this.#client.deleteConversation(id);
      this.forget(id);
    } catch (error) {
      this.#app.offline(error);
    }
  }

  // On a narrow screen the list is a drawer.
  #drawer() {
    const opener = document.getElementById("open-sidebar");
    opener.addEventListener("click", () => this.#open(true));
    document.getElementById("close-sidebar").addEventListener("click", () => this.#open(false));
    document.getElementById("scrim").addEventListener("click", () => this.#open(false));
    addEventListener("keydown", (event) => {
      if (event.key === "Escape" && document.body.classList.contains("drawer-open")) {
        this.#open(false);
        opener.focus();
      }
    });
  }

  #open(open) {
    document.body.classList.toggle("drawer-open", open);
    document.getElementById("scrim").hidden = !open;
    document.getElementById("open-sidebar").setAttribute("aria-expanded", String(open));
    if (open) document.getElementById("close-sidebar").focus();
  }
}
