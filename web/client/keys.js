// Idempotency keys.

/**
 * A key for one press: 128 random bits. crypto.randomUUID would do, but it is
 * missing on plain http addresses other than localhost.
 */
export function mintKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
}
