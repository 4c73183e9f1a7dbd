// The conversation on the screen: its turns, how they are kept up to date, and
// what their buttons do.
//
// Everything that arrives (the conversation as fetched, presses of this and
// other tabs, events of streams) is merged by id into the same turns, in any
// order and any number of times.

import { NewConversation } from "/client/index.js";
import { Composer } from "./composer.js";
import { announce, ask, button, h } from "./dom.js";
import { Follower } from "./follower.js";
import { Turn } from "./turn.js";

/** One open conversation, new or saved. */
export class ConversationView {
  id = null; // null until the service has made it
  #client;
  #app;
  #start = null; // the NewConversation, while there is no id
  #turns = []; // in order: saved ones by id, then those being sent
  #stick = true; // whether the person is at the end and wants to stay there
  #frame = 0;
  #stop = new AbortController();
  #follower;
  #list = h("ol", { class: "turns" });
  #empty = h("div", { class: "empty" });
  #notice = h("div", { class: "notice", role: "alert", hidden: true });
  #scroll = h("div", { class: "scroll" });
  #toEnd;
  #composer;

  /**
   * @param {import("../../client/index.d.ts").Client} client
   * @param {object} app what the view tells the page: see app.js
   * @param {{id?: string, lane?: string}} which a saved one, an unsent one of an earlier page, or neither: a new one
   */
  constructor(client, app, { id = null, lane = null }) {
    this.#client = client;
    this.#app = app;
    this.id = id;
    this.#composer = new Composer((text) => this.#send(text));
    this.#follower = new Follower(client, (turn) => this.#app.ended(this, turn));
    this.#toEnd = button({ label: "To the newest", picture: "down", className: "icon-button to-end", hidden: "", onclick: () => this.#toBottom() });
    this.#scroll.append(h("div", { class: "column" }, this.#notice, this.#empty, this.#list));
    this.#scroll.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    this.element = h("div", { class: "conversation" }, this.#scroll, h("div", { class: "dock" }, this.#toEnd, this.#composer.element));
    if (lane) this.#start = Object.assign(new NewConversation(), startOf(client, lane));
    const { signal } = this.#stop;
    signal.addEventListener("abort", client.onPress((press) => this.#heardPress(press)));
    addEventListener("online", () => this.#catchUp(), { signal });
    document.addEventListener("visibilitychange", () => this.#catchUp(), { signal });
  }

  /** Shows what there is. Rejects with a Problem when there is no such conversation. */
  async open() {
    if (this.id) {
      this.#scroll.classList.add("loading");
      await this.#refresh();
      this.#scroll.classList.remove("loading");
    }
    for (const press of this.#client.presses()) this.#heardPress(press);
    this.#renderEmpty();
    this.#toBottom();
    this.#composer.focus();
  }

  close() {
    this.#stop.abort();
    this.#follower.close();
  }

  /** The press lane of a conversation that is not made yet. */
  get lane() {
    return this.#start?.lane ?? null;
  }

  // --- what arrives --------------------------------------------------------

  async #refresh() {
    const conversation = await this.#client.conversation(this.id, { signal: this.#stop.signal });
    this.#app.titled(this, conversation.title);
    this.#merge(conversation.messages);
  }

  // After being away, what others did meanwhile is fetched; nothing is sent.
  #catchUp() {
    if (document.hidden || !this.id) return;
    this.#client.hurry();
    this.#refresh().catch((error) => this.#lost(error));
  }

  #lost(error) {
    if (this.#stop.signal.aborted) return;
    if (error.status === 404) return this.#app.gone(this);
    this.#say(`This may not be up to date: ${error.message}.`);
  }

  #merge(messages) {
    const answers = Map.groupBy(messages.filter((m) => m.role === "assistant"), (m) => m.reply_to);
    for (const message of messages) {
      if (message.role !== "user") continue;
      const turn = this.#turnOf(message.id) ?? this.#add(new Turn(this.#actions()), message.id);
      turn.setQuestion(message, answers.get(message.id));
      this.#follower.add(turn);
    }
    this.#hideTwins();
    this.#renderEmpty();
  }

  #heardPress(press) {
    if (press.kind !== "message") return this.#heardAgain(press);
    if (!(this.id ? press.conversation === this.id || press.result?.conversation === this.id : press.lane === this.lane)) return;
    let turn = this.#turns.find((t) => t.key === press.key);
    if (press.state === "known") return this.#known(turn, press);
    if (press.state === "discarded") return turn && this.#remove(turn);
    if (press.state === "elsewhere") {
      if (turn) this.#remove(turn);
      return this.#catchUp();
    }
    if (!turn) {
      turn = new Turn(this.#actions());
      turn.key = press.key;
      this.#add(turn, null);
    }
    turn.setPress(press);
    if (press.state !== "sending") announce(press.state === "refused" ? "The message was refused" : "The message was not sent");
    this.#hideTwins();
    this.#renderEmpty();
  }

  // The service has named the message: the pressed turn becomes the saved one,
  // or makes way for it if a fetch brought that before the answer to the press.
  #known(pressed, press) {
    const { message, task, conversation } = press.result;
    if (!this.id) this.#made(conversation, press.start);
    let turn = this.#turnOf(message.id);
    if (turn && pressed && turn !== pressed) this.#remove(pressed);
    turn ??= pressed;
    turn ??= new Turn(this.#actions());
    turn.key = press.key;
    this.#detach(turn);
    turn.element.hidden = false;
    turn.setQuestion(message);
    this.#add(turn, message.id);
    turn.setTask(task);
    this.#follower.add(turn);
    this.#follower.follow(turn, task.id);
    this.#hideTwins();
  }

  #heardAgain(press) {
    const turn = this.#turns.find((t) => t.id && (press.kind === "regenerate" ? t.id === press.target : t.task?.id === press.target || t.question?.task_id === press.target));
    if (!turn) return;
    const open = press.state === "sending" || press.state === "not_sent" || press.state === "refused";
    turn.setAgain(open ? press : null);
    if (press.state !== "known") return;
    turn.setTask(press.result.task);
    this.#follower.follow(turn, press.result.task.id);
  }

  #made(conversation, start) {
    this.id = conversation;
    this.#start = null;
    this.#app.made(this, JSON.parse(start.body).title);
  }

  // --- the list ------------------------------------------------------------

  #turnOf(id) {
    return this.#turns.find((t) => t.id === id);
  }

  // Saved turns stand in the order of their ids, which is that of their
  // creation; those being sent stand at the end, in the order of their presses.
  #add(turn, id) {
    let at = this.#turns.length;
    if (id) while (at > 0 && (!this.#turns[at - 1].id || this.#turns[at - 1].id > id)) at--;
    const before = this.#turns[at];
    this.#turns.splice(at, 0, turn);
    this.#list.insertBefore(turn.element, before?.element ?? null);
    return turn;
  }

  #detach(turn) {
    const at = this.#turns.indexOf(turn);
    if (at >= 0) this.#turns.splice(at, 1);
  }

  #remove(turn) {
    this.#detach(turn);
    this.#follower.remove(turn);
    turn.element.remove();
    this.#renderEmpty();
  }

  // A message whose answer was lost on the way is saved there and unsettled
  // here: until the retry has told which it is, only one bubble is shown.
  #hideTwins() {
    const taken = new Set();
    for (const turn of this.#turns) {
      if (!turn.press) continue;
      const after = turn.press.note?.after ?? "";
      const twin = turn.press.state === "sending" && this.#turns.find((t) => t.id && !t.key && !taken.has(t) && t.id > after && t.question.text === turn.press.text);
      if (twin) taken.add(twin);
      turn.element.hidden = Boolean(twin);
    }
  }

  #renderEmpty() {
    const empty = this.#turns.length === 0 && !this.#scroll.classList.contains("loading");
    this.#empty.hidden = !empty;
    if (!empty || this.#empty.childElementCount > 0) return;
    this.#empty.append(
      h("h2", {}, "What would you like to know?"),
      h("p", {}, "Ask a question, or paste a text and ask about it. Each press of Send gets one saved reply, also when the line drops, the page is reloaded or a worker is lost on the way."));
  }

  #say(text) {
    this.#notice.replaceChildren(h("p", {}, text), button({ label: "Close", picture: "close", className: "icon-button small", onclick: () => (this.#notice.hidden = true) }));
    this.#notice.hidden = false;
  }

  // --- what the person does ------------------------------------------------

  #send(text) {
    const after = this.#turns.findLast((t) => t.id)?.id ?? "";
    this.#stick = true;
    // A new conversation gets its key with the first press, and its name from it.
    if (!this.id) this.#start ??= new NewConversation(titleOf(text));
    this.#client.send(this.id ?? this.#start, { text }, { after });
    this.#app.pressed();
  }

  #actions() {
    return {
      grown: () => this.#grown(),
      cancel: (id) => this.#client.cancel(id),
      stale: (press) => this.#client.stale(press),
      retry: (press) => void this.#client.retry(press.key),
      discard: (press) => void this.#client.discard(press.key),
      edit: (press) => this.#edit(press),
      dismiss: (turn) => this.#remove(turn),
      regenerate: (turn) => {
        // While one runs, a press could only be the same wish again.
        if (!turn.running && !turn.again) this.#client.regenerate(turn.id);
      },
      resume: (turn, risky) => void this.#resume(turn, risky),
    };
  }

  async #resume(turn, risky) {
    const { task } = turn;
    if (turn.again) return;
    if (risky && !(await ask({
      title: "Try again?",
      text: "The model may already have answered this question, and charged for it, without the service hearing of it. Trying again may cost twice.",
      yes: "Try again",
    }))) return;
    this.#client.resume(task.id);
  }

  // The text goes back to the composer; what was never taken is forgotten.
  async #edit(press) {
    const turn = this.#turns.find((t) => t.key === press.key);
    await this.#client.discard(press.key);
    if (turn?.press) this.#remove(turn);
    this.#composer.put(press.text);
  }

  // --- scrolling -----------------------------------------------------------

  #scrolled() {
    const { scrollTop, scrollHeight, clientHeight } = this.#scroll;
    this.#stick = scrollHeight - scrollTop - clientHeight < 80;
    this.#toEnd.hidden = this.#stick;
  }

  #grown() {
    if (!this.#stick || this.#frame) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      if (this.#stick) this.#scroll.scrollTop = this.#scroll.scrollHeight;
    });
  }

  // Turns out of sight have guessed heights, so the end moves as it is neared.
  #toBottom() {
    this.#stick = true;
    let rounds = 4;
    const again = () => {
      this.#scroll.scrollTop = this.#scroll.scrollHeight;
      if (--rounds > 0 && this.#stick) requestAnimationFrame(again);
    };
    again();
  }
}

// The first line, cut at a word.
function titleOf(text) {
  const line = text.trim().split("\n", 1)[0].replace(/\s+/g, " ");
  const letters = [...line];
  if (letters.length <= 60) return line;
  const cut = letters.slice(0, 60).join("");
  return `${cut.slice(0, cut.lastIndexOf(" ") > 30 ? cut.lastIndexOf(" ") : cut.length)}…`;
}

function startOf(client, lane) {
  const { start } = client.presses().find((p) => p.lane === lane);
  return { key: start.key, body: start.body, lane };
}
