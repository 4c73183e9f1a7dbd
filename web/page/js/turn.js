// One turn: a question, what became of sending it, and its answer.

import { Answers } from "./answer.js";
import { announce, button, h } from "./dom.js";
import { Draft } from "./draft.js";
import { ended, pressed, underway } from "./words.js";

/**
 * A turn begins as a press and becomes a question once the service has named
 * its message; the element stays the same, so nothing jumps or doubles.
 * What is shown follows from five facts: press, question, answers, task, again.
 */
export class Turn {
  press = null; // the press of Send while it is not settled
  question = null; // the user's message once it is known
  task = null; // the newest task, as last heard of
  again = null; // a press of Regenerate or Try again that is not settled
  refusal = ""; // why such a press was refused
  #drafting = false;
  #lost = false; // the line to the service, while the task runs
  #stopping = false;
  #clock = 0;
  #actions;
  #bubble = h("div", { class: "bubble", dir: "auto" });
  #delivery = h("div", { class: "delivery", hidden: true });
  #status = h("div", { class: "status", hidden: true });
  #trouble = h("div", { class: "trouble", hidden: true });

  /** @param {object} actions what its buttons do; see conversation.js */
  constructor(actions) {
    this.#actions = actions;
    this.answers = new Answers({ regenerate: () => actions.regenerate(this) });
    this.draft = new Draft(() => actions.grown());
    this.draft.element.hidden = true;
    this.element = h("li", { class: "turn" },
      h("article", { class: "question", "aria-label": "You" }, this.#bubble, this.#delivery),
      h("article", { class: "answer", "aria-label": "Answer" }, this.answers.element, this.draft.element, this.#status, this.#trouble));
    this.element.turn = this;
  }

  get id() {
    return this.question?.id ?? null;
  }

  /** True while its newest task has not ended, as far as is known. */
  get running() {
    return this.task !== null && !over(this.task);
  }

  setPress(press) {
    this.press = press;
    this.#setText(press.text);
    this.render();
  }

  /** The service has the message: the press is over. Its saved answers may come along. */
  setQuestion(message, answers = []) {
    if (this.#has(message, answers)) return;
    this.press = null;
    this.question = { ...this.question, ...message };
    this.element.dataset.message = message.id;
    this.#setText(message.text);
    if (answers.length > 0) this.answers.merge(answers);
    this.render();
  }

  // A conversation is fetched again each time the page comes back into sight;
  // nearly all of it is known.
  #has(message, answers) {
    return !this.press && this.question?.task_id === message.task_id && this.question?.id === message.id && answers.every((a) => this.answers.has(a.task_id));
  }

  #setText(text) {
    if (this.#bubble.textContent !== text) this.#bubble.textContent = text;
  }

  /** A press of Regenerate or Try again, as it goes. */
  setAgain(press) {
    this.again = press;
    this.refusal = press?.state === "refused" ? pressed(press) : "";
    if (press?.state === "refused") this.again = null;
    this.render();
  }

  /** A task this turn is to show from now on, which may not have begun. */
  setTask(task) {
    if (this.task?.id !== task.id) {
      this.#stopDraft();
      this.#stopping = false;
      this.#lost = false;
      this.refusal = "";
    } else if (over(this.task) && !over(task) && !resumed(this.task, task)) return; // an old look at it
    this.task = task;
    if (task.status === "completed" && task.response) this.#accept(task);
    else if (over(task)) this.#stopDraft();
    this.render();
  }

  /** An event of the task's stream; see Streams.watch. */
  heard(event) {
    if (event.type === "task" || event.type === "end") {
      const wasRunning = this.running && this.task.status !== "unknown";
      this.setTask(event.task);
      if (event.type === "end" && wasRunning) announce(this.#ending());
      return;
    }
    if (event.type === "gone" || !this.running) return;
    if (event.type === "line") {
      this.#lost = !event.up;
      announce(event.up ? "Connected again" : "Connection lost");
      this.render();
      return;
    }
    if (event.type === "reset") this.draft.reset(event.text);
    if (event.type === "delta") this.draft.append(event.text);
    const began = !this.#drafting;
    this.#drafting = true;
    this.draft.element.hidden = false;
    // Text shows that it runs, whatever the last look at the task said.
    if (this.task.status !== "running" || event.version !== this.task.assignment_version) {
      this.task = { ...this.task, status: "running", assignment_version: event.version };
    }
    if (began) announce("The answer begins");
    this.render();
  }

  #accept(task) {
    const { response } = task;
    this.answers.merge([{ id: response.message_id, text: response.text, html: response.html, created_at: task.ended_at, task_id: task.id, task }]);
    this.#stopDraft();
  }

  #stopDraft() {
    this.#drafting = false;
    this.draft.reset("");
    this.draft.element.hidden = true;
  }

  #ending() {
    if (this.task.status === "completed") return "The answer is saved";
    return ended(this.task).text;
  }

  render() {
    clearTimeout(this.#clock);
    this.element.classList.toggle("pending", this.press !== null);
    this.element.dataset.state = this.#state();
    this.#renderDelivery();
    this.#renderStatus();
    this.#renderTrouble();
    this.answers.render({ busy: this.running || this.again !== null });
    this.draft.element.classList.toggle("beside", this.answers.size > 0);
    this.#actions.grown();
  }

  // One word for styles and tests.
  #state() {
    if (this.press) return this.press.state;
    if (this.again) return `again-${this.again.state}`;
    return this.task?.status ?? (this.answers.size > 0 ? "completed" : "unknown");
  }

  #renderDelivery() {
    const { press } = this;
    this.#delivery.hidden = !press;
    if (!press) return;
    this.#fillPress(this.#delivery, press);
  }

  // What a press has come to, with what can be done about it.
  #fillPress(element, press) {
    element.classList.toggle("bad", press.state !== "sending");
    element.replaceChildren(h("span", { class: press.state === "sending" ? "breath" : "" }, pressed(press)));
    if (press.state === "not_sent") {
      if (!this.#actions.stale(press)) element.append(button({ text: "Try again", label: "Try again", picture: "again", onclick: () => this.#actions.retry(press) }));
      if (press.text) element.append(button({ text: "Edit", label: "Edit", onclick: () => this.#actions.edit(press) }));
      element.append(button({ text: "Discard", label: "Discard", onclick: () => this.#actions.discard(press) }));
    }
    if (press.state === "refused" && press.text) {
      element.append(button({ text: "Edit", label: "Edit", onclick: () => this.#actions.edit(press) }), button({ text: "Dismiss", label: "Dismiss", onclick: () => this.#actions.dismiss(this) }));
    }
    if (press.again) this.#clock = setTimeout(() => this.render(), 1000); // the seconds count down
  }

  #renderStatus() {
    const shown = this.running && !this.press && !this.again;
    this.#status.hidden = !shown && this.again?.state !== "sending";
    if (this.#status.hidden) return;
    if (!shown) return this.#status.replaceChildren(h("span", { class: "breath" }, pressed(this.again)));
    const text = this.#stopping ? "Stopping…" : underway(this.task, { drafting: this.#drafting, lost: this.#lost });
    const stop = this.#status.querySelector("button");
    if (stop && !this.#stopping) {
      // Kept in place: a button that is replaced while it is pressed is not pressed.
      this.#status.firstChild.textContent = text;
      return;
    }
    this.#status.replaceChildren(h("span", { class: "breath" }, text));
    if (!this.#stopping) this.#status.append(button({ text: "Stop", label: "Stop", picture: "stop", className: "quiet-button stop", onclick: () => this.stop() }));
  }

  /** Stops the newest task. */
  async stop() {
    if (!this.running) return;
    this.#stopping = true;
    this.render();
    try {
      this.setTask(await this.#actions.cancel(this.task.id));
      announce(this.#ending());
    } catch (error) {
      this.refusal = `It could not be stopped: ${error.message}.`;
    } finally {
      this.#stopping = false;
      this.render();
    }
  }

  #renderTrouble() {
    const { task, again } = this;
    this.#trouble.replaceChildren();
    const failed = task && over(task) && task.status !== "completed";
    if (again && again.state === "not_sent") this.#fillPress(this.#trouble, again);
    else if (failed && !again) this.#fillFailure(task);
    if (this.refusal) this.#trouble.append(h("p", {}, this.refusal));
    this.#trouble.hidden = this.#trouble.childElementCount === 0;
    this.#trouble.classList.toggle("calm", task?.status === "cancelled" && !this.refusal);
  }

  #fillFailure(task) {
    const { text, advice, risky } = ended(task);
    const kept = this.answers.size > 0 ? " The earlier answer is kept." : "";
    this.#trouble.append(h("p", {}, text + kept), advice && h("p", { class: "advice" }, advice));
    const tools = h("div", { class: "tools" });
    // A stopped task stays stopped: asking again is a new task. A failed one is taken up again.
    if (task.status === "cancelled") {
      if (this.answers.size === 0) tools.append(button({ text: "Answer again", label: "Answer again", picture: "again", onclick: () => this.#actions.regenerate(this) }));
    } else {
      tools.append(button({ text: "Try again", label: "Try again", picture: "again", onclick: () => this.#actions.resume(this, risky) }));
    }
    tools.append(h("a", { class: "quiet-button", href: `/tasks/${task.id}`, "data-route": "" }, "What happened"));
    this.#trouble.append(tools);
  }
}

// A person may reopen a failed task; that raises what it is allowed.
function resumed(before, task) {
  return (task.budget?.attempts?.max ?? 0) > (before.budget?.attempts?.max ?? 0);
}

/** True once a task has ended. */
export function over(task) {
  return task.status === "completed" || task.status === "failed" || task.status === "cancelled";
}
