// The timeline as a drawing: a lane for the task, a lane per attempt.

import { s } from "./dom.js";
import { duration } from "./words.js";

const LANE = 52; // pixels a lane takes
const TOP = 8;
const AXIS = 28;
const EDGE = 10; // room at both sides, so that marks at the ends are whole

/**
 * Draws a task's life. It is an addition to the table below it, which says the
 * same in words; to a screen reader it is one picture.
 * @param {{task: object, events: object[], width: number, now: number}} of
 */
export function drawTimeline({ task, events, width, now }) {
  const start = time(task.created_at);
  const last = Math.max(...events.map((e) => time(e.last_at ?? e.at)), start);
  const end = Math.max(task.ended_at ? Math.max(time(task.ended_at), last) : now, start + 50);
  const x = (at) => EDGE + ((Math.min(Math.max(at, start), end) - start) / (end - start)) * (width - 2 * EDGE);
  const attempts = task.attempts ?? [];
  const height = TOP + LANE * (attempts.length + 1) + AXIS;
  const drawing = s("svg", { class: "timeline", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": summary(task, attempts) });
  drawing.append(...axis({ start, end, x, width, height }));
  drawing.append(lane({ y: TOP, label: "Task", from: x(start), to: x(task.ended_at ? time(task.ended_at) : end), kind: task.status, marks: events.filter((e) => !e.attempt_id || !byId(attempts, e.attempt_id)), x }));
  attempts.forEach((attempt, n) => drawing.append(attemptLane({ attempt, n, y: TOP + LANE * (n + 1), events, end, x })));
  return drawing;
}

function attemptLane({ attempt, n, y, events, end, x }) {
  const own = events.filter((e) => e.attempt_id === attempt.id);
  const stop = attempt.ended_at ? time(attempt.ended_at) : end;
  const group = lane({ y, label: label(attempt, n), from: x(time(attempt.started_at)), to: x(stop), kind: attempt.outcome ?? "running", marks: own.filter((e) => e.type !== "called" && e.type !== "renewed"), x });
  const calls = own.filter((e) => e.type === "called");
  calls.forEach((call, i) => {
    const from = x(time(call.at));
    const next = calls[i + 1] ? time(calls[i + 1].at) : stop;
    const to = x(call.last_at ? time(call.last_at) : next);
    const bar = s("rect", { class: "call", x: from, y: y + 27, width: Math.max(3, to - from), height: 6, rx: 3 });
    bar.append(s("title", {}, `Call ${call.call ?? i + 1}${call.code ? `: ${words(call.code)}` : ""}`));
    group.append(bar);
  });
  return group;
}

function lane({ y, label, from, to, kind, marks, x }) {
  const group = s("g", { class: `lane is-${kind}` });
  group.append(s("text", { class: "label", x: EDGE, y: y + 13 }, label));
  group.append(s("rect", { class: "bar", x: from, y: y + 20, width: Math.max(4, to - from), height: 20, rx: 5 }));
  for (const event of marks) {
    const mark = s("circle", { class: `mark is-${event.type}`, cx: x(time(event.at)), cy: y + 30, r: event.type === "fenced_out" ? 7 : 4.5 });
    mark.append(s("title", {}, `${words(event.type)}${event.count > 1 ? ` × ${event.count}` : ""}${event.why ? `: ${words(event.why)}` : ""}`));
    group.append(mark);
  }
  return group;
}

function axis({ start, end, x, width, height }) {
  const step = niceStep((end - start) / Math.max(2, Math.floor(width / 110)));
  const parts = [];
  // Bounded by the width: a tick needs about 110 pixels.
  for (let at = 0; at <= end - start; at += step) {
    const place = x(start + at);
    parts.push(s("line", { class: "tick", x1: place, x2: place, y1: TOP, y2: height - AXIS + 4 }));
    if (place < width - 36) parts.push(s("text", { class: "time", x: place, y: height - 8, "text-anchor": at === 0 ? "start" : "middle" }, at === 0 ? "0" : duration(at)));
  }
  return parts;
}

function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= least) ?? 10 * power;
}

function label(attempt, n) {
  const outcome = attempt.outcome ? words(attempt.outcome) : "running";
  return `Attempt ${n + 1} · ${outcome}`;
}

function summary(task, attempts) {
  const told = attempts.map((a, n) => label(a, n)).join("; ");
  return `The task is ${task.status}. ${told || "No attempt yet"}. The table below lists every event.`;
}

function byId(attempts, id) {
  return attempts.some((a) => a.id === id);
}

function time(text) {
  return new Date(text).getTime();
}

/** A code of the protocol with its underscores gone. */
export function words(code) {
  return String(code).replaceAll("_", " ");
}
