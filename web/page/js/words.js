// What a state is called, in words a person understands.

const causes = {
  rate_limited: "the model’s service is limiting requests",
  provider_overloaded: "the model’s service is overloaded",
  provider_unavailable: "the model’s service could not be reached or broke off",
  provider_rejected: "the model’s service rejected the request",
  bad_provider_response: "the model’s service sent something that is not an answer",
  empty_answer: "the model sent an empty answer",
  content_filtered: "the model’s provider refused to answer this",
  context_too_long: "the conversation is too long for this model",
  insufficient_quota: "the account with the model’s provider has no quota left",
  unauthenticated: "the model’s provider did not accept this server’s key",
  tool_calls_unsupported: "the model asked for tools, which this service does not run",
  timeout: "the model took too long",
};

const advice = {
  content_filtered: "Put the question differently.",
  context_too_long: "Start a new conversation, or ask with a shorter text.",
  insufficient_quota: "Whoever runs this service has to top up the account.",
  unauthenticated: "Whoever runs this service has to check its key.",
  provider_rejected: "Whoever runs this service has to check the model’s settings.",
  rate_limited: "Wait a little, then try again.",
  provider_overloaded: "Wait a little, then try again.",
};

const bounds = {
  attempts_exhausted: "after several attempts",
  calls_exhausted: "after as many calls as are allowed",
  elapsed_exhausted: "within the time allowed",
  deadline_exceeded: "before its deadline",
};

/** A cause in the middle of a sentence. */
export function cause(error) {
  if (!error) return "";
  return causes[error.code] ?? (error.message || error.code);
}

/** What can be said while a task has not ended: one short line. */
export function underway(task, { drafting = false, lost = false } = {}) {
  // What the task does meanwhile nobody here knows.
  if (lost) return navigator.onLine === false ? "You are offline. It goes on without you." : "Connection lost, trying again…";
  if (!task || task.status === "unknown") return "Looking…";
  const past = (task.attempts ?? []).filter((a) => a.ended_at || a.outcome);
  const last = past.at(-1);
  if (task.status === "queued") {
    if (!last) return "Waiting for its turn…";
    return last.outcome === "interrupted" ? "Waiting for another worker…" : `Trying again shortly: ${cause(last.error ?? task.error) || "the last try did not succeed"}.`;
  }
  if ((task.assignment_version ?? 1) > 1 && last) {
    if (last.outcome === "lease_expired" || last.outcome === "fenced_out") return "Answering again: the worker was lost.";
    if (last.outcome === "interrupted") return "Answering again: the worker was stopped.";
    return `Answering again: ${cause(last.error) || "the last try did not succeed"}.`;
  }
  return drafting ? "Answering…" : "Thinking…";
}

/**
 * What can be said of a task that ended without an answer: what happened, what
 * can be done, and whether trying again may cost twice.
 */
export function ended(task) {
  if (task.status === "cancelled") return { text: "Stopped. No answer was saved.", advice: "", risky: false };
  if (task.reason === "outcome_unknown") {
    return {
      text: "Not answered: it is not known whether the model answered.",
      advice: "It may have answered, and charged, without us hearing of it. Trying again may cost twice.",
      risky: true,
    };
  }
  const why = cause(task.error);
  const bound = bounds[task.reason];
  const text = bound ? `Not answered ${bound}${why ? `: ${why}` : ""}.` : `Not answered${why ? `: ${why}` : ""}.`;
  return { text, advice: advice[task.error?.code] ?? "", risky: false };
}

/** What can be said of a press. */
export function pressed(press, now = Date.now()) {
  switch (press.state) {
    case "refused":
      return `Refused: ${press.why?.message || "the service did not accept it"}`;
    case "not_sent":
      return `Not sent. ${notSent(press.why)}`;
  }
  if (navigator.onLine === false) return "You are offline. It is kept and will be sent.";
  if (!press.why) return "Sending…";
  const seconds = Math.ceil(((press.again ?? now) - now) / 1000);
  const what = press.why.status ? "The service is busy" : "The service cannot be reached";
  return seconds > 1 ? `${what}. Trying again in ${seconds} s…` : `${what}. Trying again…`;
}

function notSent(why) {
  if (why?.code === "old") return "It was left unsent and may already have arrived; look before you send it again.";
  if (why?.code === "storage") return "This browser could not keep it.";
  if (why?.after > 0) return `The service asks to wait ${duration(why.after)}.`;
  return why?.status ? "The service did not take it." : "The service could not be reached.";
}

/** Milliseconds in words: "40 ms", "1.4 s", "12 s", "3 min", "2 h". */
export function duration(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < 100_000) return `${Math.round(ms / 1000)} s`;
  if (ms < 5_400_000) return `${Math.round(ms / 60_000)} min`;
  return `${Math.round(ms / 3_600_000)} h`;
}

/** "demo" is the built-in model, which only quotes; people should know. */
export function modelName(model) {
  return model === "demo" ? "Demo model" : model;
}

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });

/** A time of today as a clock, another with its day. */
export function when(text) {
  const at = new Date(text);
  return at.toDateString() === new Date().toDateString() ? clock.format(at) : day.format(at);
}

const count = new Intl.NumberFormat();

/** "1,204 tokens". */
export function tokens(usage) {
  const sum = (usage?.input_tokens ?? 0) + (usage?.output_tokens ?? 0);
  return sum > 0 ? `${count.format(sum)} tokens` : "";
}
