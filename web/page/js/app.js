// The page: which view is open, and what all views share. Start reading here,
// then conversation.js.

import { Client } from "/client/index.js";
import { ConversationView } from "./conversation.js";
import { button, h } from "./dom.js";
import { Sidebar } from "./sidebar.js";
import { TaskView } from "./task.js";

const client = Client.shared();
const place = document.getElementById("view");
const heading = document.getElementById("title");
const line = document.getElementById("line");

/** What views may ask of the page. */
class App {
  #view = null;
  #unread = 0;
  #title = "";

  constructor() {
    this.sidebar = new Sidebar(client, this);
    document.addEventListener("click", (event) => this.#clicked(event));
    document.addEventListener("visibilitychange", () => this.#seen());
    addEventListener("popstate", () => void this.#route());
    addEventListener("online", () => this.#connection());
    addEventListener("offline", () => this.#connection());
    this.#connection();
  }

  async start() {
    // What an earlier page left unsent is known before the first view is drawn.
    await client.start();
    void this.sidebar.load();
    const left = client.presses().findLast((p) => p.start);
    await this.#route(left?.lane);
  }

  // Links between the page's own views change the view and not the page.
  #clicked(event) {
    const link = event.target.closest?.("a[data-route]");
    if (!link || event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    if (link.pathname !== location.pathname) history.pushState(null, "", link.pathname);
    void this.#route();
  }

  async #route(lane = null) {
    const [, where, id] = location.pathname.split("/");
    if (where === "tasks" && id) return this.#show(new TaskView(client, this, decodeURIComponent(id)), id);
    if (where === "c" && id) return this.#show(new ConversationView(client, this, { id: decodeURIComponent(id) }), id);
    return this.#show(new ConversationView(client, this, { lane }), lane);
  }

  async #show(view, mark) {
    this.#view?.close();
    this.#view = view;
    this.#name("");
    place.replaceChildren(view.element);
    this.sidebar.mark(mark);
    try {
      await view.open();
    } catch (error) {
      if (this.#view !== view) return; // left meanwhile
      this.#failed(error);
    }
  }

  #failed(error) {
    const missing = error.status === 404;
    place.replaceChildren(h("div", { class: "nothing" },
      h("h2", {}, missing ? "There is nothing here" : "This could not be loaded"),
      h("p", {}, missing ? "It was deleted, or the address is wrong." : `${error.message}.`),
      missing
        ? h("a", { class: "button primary", href: "/", "data-route": "" }, "New conversation")
        : button({ text: "Try again", label: "Try again", className: "button primary", onclick: () => void this.#route() })));
  }

  #name(title) {
    this.#title = title;
    heading.textContent = title || "New conversation";
    document.title = `${this.#unread > 0 ? `(${this.#unread}) ` : ""}${title ? `${title} – ` : ""}onereply`;
  }

  #connection() {
    line.hidden = navigator.onLine !== false;
    line.textContent = line.hidden ? "" : "Offline: what you send is kept";
  }

  #seen() {
    if (document.hidden || this.#unread === 0) return;
    this.#unread = 0;
    this.#name(this.#title);
  }

  // --- what views and the list tell ----------------------------------------

  titled(view, title) {
    if (view !== this.#view) return;
    this.#name(title || "Untitled");
    if (view.id) this.sidebar.add({ id: view.id, title });
  }

  /** A new conversation has been given its id. */
  made(view, title) {
    this.sidebar.add({ id: view.id, title });
    if (view !== this.#view) return;
    this.#name(title);
    history.replaceState(null, "", `/c/${view.id}`);
    this.sidebar.mark(view.id);
  }

  /** A task of a view has ended: counted in the title while nobody looks. */
  ended() {
    if (!document.hidden) return;
    this.#unread++;
    this.#name(this.#title);
  }

  gone(view) {
    if (view === this.#view) this.#failed({ status: 404 });
    this.#view?.close();
  }

  deleted(id) {
    if (this.#view?.id !== id) return;
    history.pushState(null, "", "/");
    void this.#route();
  }

  openLane(lane) {
    if (location.pathname !== "/") history.pushState(null, "", "/");
    void this.#show(new ConversationView(client, this, { lane }), lane);
  }

  pressed() {
    if (this.#view.lane) this.sidebar.mark(this.#view.lane);
  }

  /** Something could not be fetched; views say so themselves. */
  offline(error) {
    line.hidden = false;
    line.textContent = error.message;
    addEventListener("online", () => this.#connection(), { once: true });
  }
}

void new App().start();
