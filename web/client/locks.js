// One holder at a time: across the tabs of a browser where the platform offers
// Web Locks (any secure context), else within this page.

const here = new Map(); // name → the end of the queue of this page's holders

/**
 * Runs f while holding the named lock.
 * @template T
 * @param {string} name
 * @param {AbortSignal} signal gives up waiting
 * @param {() => Promise<T>} f
 * @param {LockManager | undefined} manager
 * @returns {Promise<T>}
 */
export function withLock(name, signal, f, manager = globalThis.navigator?.locks) {
  if (manager) return manager.request(name, { signal }, f);
  const before = here.get(name) ?? Promise.resolve();
  const run = before.then(() => {
    signal.throwIfAborted();
    return f();
  });
  const end = run.catch(() => {}); // the next in line does not care how this one ended
  here.set(name, end);
  void end.then(() => {
    if (here.get(name) === end) here.delete(name);
  });
  return run;
}
