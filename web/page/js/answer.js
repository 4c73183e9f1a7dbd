// The saved answers to one question: the chosen one, and the line under it.

import { announce, button, copyText, h, icon, safeHTML } from "./dom.js";
import { duration, modelName, tokens, when } from "./words.js";

/** Shows one of the saved answers; the newest unless the person leafs back. */
export class Answers {
  #list = []; // oldest first
  #at = -1;
  #actions;
  #shownId = null;
  #prose = h("div", { class: "prose", dir: "auto" });
  #older = h("p", { class: "older", hidden: true }, "An earlier answer. The conversation goes on from the newest one.");
  #meta = h("div", { class: "meta" });

  /** @param {{regenerate: () => void}} actions */
  constructor(actions) {
    this.#actions = actions;
    this.element = h("div", { class: "answers", hidden: true }, this.#prose, this.#older, this.#meta);
  }

  get size() {
    return this.#list.length;
  }

  /** The one shown; undefined when there is none. */
  get current() {
    return this.#list[this.#at];
  }

  /** Says whether a task has given one of the answers. */
  has(taskId) {
    return this.#list.some((a) => a.task_id === taskId);
  }

  /** Takes in answers by their id; a new one is chosen. Call render after it. */
  merge(answers) {
    const chosen = this.current;
    const newest = this.#list.at(-1);
    for (const answer of answers) {
      const known = this.#list.find((a) => a.id === answer.id);
      if (known) Object.assign(known, answer);
      else this.#list.push(answer);
    }
    this.#list.sort((a, b) => (a.id < b.id ? -1 : 1)); // ids sort by creation
    const keep = chosen && newest === this.#list.at(-1);
    this.#at = keep ? this.#list.indexOf(chosen) : this.#list.length - 1;
  }

  /** Adds what the task knows about its answer: model, tokens, attempts. */
  describe(task) {
    const answer = this.#list.find((a) => a.task_id === task.id);
    if (!answer) return;
    answer.task = task;
    if (answer === this.current) this.#renderMeta();
  }

  render({ busy = this.busy } = {}) {
    this.busy = busy;
    const answer = this.current;
    this.element.hidden = !answer;
    if (!answer) return;
    if (this.#shownId !== answer.id) {
      this.#shownId = answer.id;
      if (answer.html !== undefined) safeHTML(this.#prose, answer.html);
      else this.#prose.textContent = answer.text;
      this.#prose.classList.toggle("plain", answer.html === undefined);
    }
    this.#older.hidden = this.#at === this.#list.length - 1;
    this.#renderMeta();
  }

  #renderMeta() {
    const answer = this.current;
    const focused = this.#meta.contains(document.activeElement) ? document.activeElement.dataset.does : null;
    this.#meta.replaceChildren(this.#siblings() ?? "", this.#buttons(answer), this.#facts(answer));
    // Rebuilding the line must not drop the keyboard's place in it.
    if (focused) this.#meta.querySelector(`[data-does="${focused}"]`)?.focus();
  }

  #siblings() {
    const total = this.#list.length;
    if (total < 2) return null;
    const step = (by) => {
      this.#at += by;
      this.render();
      announce(`Answer ${this.#at + 1} of ${total}`);
    };
    return h("div", { class: "siblings", role: "group", "aria-label": `Answer ${this.#at + 1} of ${total}` },
      h("button", { type: "button", class: "icon-button small", "aria-label": "Earlier answer", "data-does": "earlier", disabled: this.#at === 0, onclick: () => step(-1) }, icon("left")),
      h("span", { class: "count", "aria-hidden": "true" }, `${this.#at + 1}/${total}`),
      h("button", { type: "button", class: "icon-button small", "aria-label": "Later answer", "data-does": "later", disabled: this.#at === total - 1, onclick: () => step(1) }, icon("right")));
  }

  #buttons(answer) {
    const copy = button({
      label: "Copy the answer", picture: "copy", className: "icon-button small", "data-does": "copy",
      onclick: async () => {
        const done = await copyText(answer.text);
        announce(done ? "Copied" : "Copying is not possible here");
        copy.replaceChildren(icon(done ? "check" : "close"));
        setTimeout(() => copy.replaceChildren(icon("copy")), 1500);
      },
    });
    return h("div", { class: "tools" },
      copy,
      button({ label: "Regenerate: ask for another answer", picture: "again", className: "icon-button small", "data-does": "regenerate", disabled: this.busy, onclick: this.#actions.regenerate }),
      answer.task_id && h("a", { class: "icon-button small", href: `/tasks/${answer.task_id}`, "data-route": "", "data-does": "task", "aria-label": "How this was answered", title: "How this was answered" }, icon("steps")));
  }

  #facts(answer) {
    const { task } = answer;
    const facts = h("p", { class: "facts" });
    const model = task?.response?.model;
    if (model) facts.append(h("span", { class: model === "demo" ? "badge demo" : "model", title: model === "demo" ? "The built-in demo model picks sentences out of your text. Start the service with --model for a real one." : null }, modelName(model)));
    facts.append(h("time", { datetime: answer.created_at }, when(answer.created_at)));
    if (task?.ended_at) facts.append(h("span", {}, `in ${duration(new Date(task.ended_at) - new Date(task.created_at))}`));
    const spent = tokens(task?.response?.usage);
    if (spent) facts.append(h("span", {}, spent));
    if ((task?.attempts?.length ?? 0) > 1) facts.append(h("span", {}, `${task.attempts.length} attempts`));
    if (task?.response?.truncated) facts.append(h("span", { class: "warning" }, "cut short by the model’s limit"));
    facts.append(h("span", { class: "saved" }, "Saved"));
    return facts;
  }
}
