// Where presses are kept until the service is known to have them.

const STORE = "presses";

/**
 * Opens the durable store, or one in memory where the browser has none (some
 * private windows, Node). `durable` says which it became.
 * @param {string} name
 * @param {IDBFactory | undefined} factory
 */
export async function openStore(name, factory = globalThis.indexedDB) {
  if (!factory) return new MemoryStore();
  try {
    return new DatabaseStore(await open(factory, name));
  } catch {
    return new MemoryStore(); // refused by the browser's settings: keys live as long as the page
  }
}

function open(factory, name) {
  return new Promise((resolve, reject) => {
    const request = factory.open(name, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE, { keyPath: "key" });
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
    request.onblocked = () => reject(new Error("the store is held by another version of the page"));
  });
}

class DatabaseStore {
  durable = true;
  #db;
  #loose = new MemoryStore(); // what the database would not take (a full disk): kept as long as the page

  constructor(db) {
    this.#db = db;
    // Let a later version of the page upgrade the store while this tab is open.
    db.onversionchange = () => db.close();
  }

  /** Resolves once the record is on disk, not merely handed over. */
  async put(record) {
    try {
      await this.#run("readwrite", (s) => s.put(record));
      await this.#loose.delete(record.key);
    } catch {
      this.durable = false;
      await this.#loose.put(record);
    }
  }

  async get(key) {
    return (await this.#loose.get(key)) ?? (await this.#run("readonly", (s) => s.get(key)));
  }

  async delete(key) {
    await this.#loose.delete(key);
    await this.#run("readwrite", (s) => s.delete(key));
  }

  async all() {
    const stored = await this.#run("readonly", (s) => s.getAll());
    const loose = await this.#loose.all();
    const known = new Set(loose.map((r) => r.key));
    return inOrder([...loose, ...stored.filter((r) => !known.has(r.key))]);
  }

  #run(mode, ask) {
    return new Promise((resolve, reject) => {
      const tx = this.#db.transaction(STORE, mode, { durability: mode === "readwrite" ? "strict" : "default" });
      const request = ask(tx.objectStore(STORE));
      // The transaction's end, not the request's: only then is it written.
      tx.oncomplete = () => resolve(request.result);
      tx.onerror = tx.onabort = () => reject(tx.error ?? new Error("the store refused"));
    });
  }
}

/** The same in memory, for where nothing durable is to be had. */
export class MemoryStore {
  durable = false;
  #records = new Map();

  async put(record) {
    this.#records.set(record.key, structuredClone(record));
  }

  async get(key) {
    return structuredClone(this.#records.get(key));
  }

  async delete(key) {
    this.#records.delete(key);
  }

  async all() {
    return inOrder([...this.#records.values()].map((r) => structuredClone(r)));
  }
}

function inOrder(records) {
  return records.sort((a, b) => a.pressedAt - b.pressedAt || a.turn - b.turn);
}
