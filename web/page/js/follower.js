// Keeps the turns that matter up to date: those in sight, and those just asked.

/**
 * Watches the tasks of turns. A turn out of sight costs nothing: its task is
 * looked up when it is scrolled to, so that a conversation of two thousand
 * messages asks about a screenful.
 */
export class Follower {
  #client;
  #ended;
  #watching = new Map(); // turn → {taskId, leave}
  #lookups = []; // turns in sight whose answer's task is not known yet
  #looking = 0;
  #seen = new Set();
  #observer;
  #stop = new AbortController();

  constructor(client, ended) {
    this.#client = client;
    this.#ended = ended;
    this.#observer = new IntersectionObserver((entries) => this.#sighted(entries), { rootMargin: "200px" });
  }

  /** Has a turn followed as soon as it is in sight. Again: nothing happens. */
  add(turn) {
    this.#observer.observe(turn.element);
    if (this.#seen.has(turn)) this.#attend(turn);
  }

  remove(turn) {
    this.#observer.unobserve(turn.element);
    this.#seen.delete(turn);
    this.#watching.get(turn)?.leave();
    this.#watching.delete(turn);
  }

  /** Follows a turn's task now, in sight or not. */
  follow(turn, taskId) {
    const before = this.#watching.get(turn);
    if (before?.taskId === taskId) return;
    before?.leave();
    const entry = { taskId, leave: () => {} };
    this.#watching.set(turn, entry);
    entry.leave = this.#client.watch(taskId, (event) => {
      if (this.#watching.get(turn) !== entry) return; // a newer task has taken its place
      this.#heard(turn, entry, event);
    });
  }

  close() {
    this.#stop.abort();
    this.#observer.disconnect();
    for (const { leave } of this.#watching.values()) leave();
    this.#watching.clear();
  }

  #heard(turn, entry, event) {
    const over = event.type === "end" || event.type === "gone";
    if (over) this.#watching.delete(turn);
    // The rendered form is asked for once more if the stream did not carry it.
    if (event.type === "end" && event.task.response && event.task.response.html === undefined) {
      void this.#rendered(turn, event);
      return;
    }
    const takeover = event.type === "reset" && event.version > 1 && turn.task?.assignment_version !== event.version;
    turn.heard(event);
    if (takeover) void this.#look(turn, entry.taskId); // to say why it begins again
    if (over) this.#ended(turn);
  }

  async #rendered(turn, event) {
    try {
      turn.heard({ type: "end", task: await this.#client.task(event.task.id, { signal: this.#stop.signal }) });
    } catch {
      if (this.#stop.signal.aborted) return;
      turn.heard(event); // as plain text: better than not at all
    }
    this.#ended(turn);
  }

  #sighted(entries) {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting) {
        this.#seen.delete(target.turn);
        continue;
      }
      this.#seen.add(target.turn);
      this.#attend(target.turn);
    }
  }

  #attend(turn) {
    const { question } = turn;
    if (!question) return;
    const newest = question.task_id;
    // Ids sort by creation: a task newer than the one shown was asked for elsewhere.
    if (newest && !turn.answers.has(newest) && (!turn.task || newest > turn.task.id)) {
      turn.setTask({ id: newest, status: "unknown" });
      this.follow(turn, newest);
    }
    if (turn.answers.current && !turn.answers.current.task) {
      this.#lookups.push(turn);
      void this.#work();
    }
  }

  // Two at a time, the latest sighted first, and only those still in sight.
  async #work() {
    if (this.#looking >= 2) return;
    this.#looking++;
    while (this.#lookups.length > 0 && !this.#stop.signal.aborted) {
      const turn = this.#lookups.pop();
      const answer = turn.answers.current;
      if (this.#seen.has(turn) && answer?.task_id && !answer.task) await this.#look(turn, answer.task_id);
    }
    this.#looking--;
  }

  async #look(turn, taskId) {
    try {
      const task = await this.#client.task(taskId, { signal: this.#stop.signal });
      turn.answers.describe(task);
      if (turn.task?.id === taskId) turn.setTask(task);
    } catch {
      // The line under the answer stays without its facts; the answer is there.
    }
  }
}
