import { createHmac } from "node:crypto";

const PREFIX = "whsec_";
const MIN_KEY_BYTES = 24;
const MAX_KEY_BYTES = 64;

/**
 * Decodes a Standard Webhooks secret: base64 of 24 to 64 bytes, optionally with the prefix `whsec_`. Undefined if
 * invalid.
 */
export function signingKey(secret: string): Buffer | undefined {
  const text = secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret;
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(text)) return undefined;
  const key = Buffer.from(text, "base64");
  const isWhole = key.toString("base64").replace(/=+$/, "") === text.replace(/=+$/, "");
  return isWhole && key.length >= MIN_KEY_BYTES && key.length <= MAX_KEY_BYTES ? key : undefined;
}

/**
 * The three Standard Webhooks fields of one attempt, names and values alternating. The id is that of the event, equal
 * for all attempts; the timestamp is the attempt's, so that receivers can reject replays.
 */
export function signatureFields(key: Buffer, id: string, body: Buffer, nowMs: number): string[] {
  const timestamp = String(Math.floor(nowMs / 1000));
  const signature = createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest("base64");
  return ["webhook-id", id, "webhook-timestamp", timestamp, "webhook-signature", `v1,${signature}`];
}
