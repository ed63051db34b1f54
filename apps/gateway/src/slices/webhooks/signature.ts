import { createHmac } from "node:crypto";

const PREFIX = "whsec_";
const MIN_KEY_BYTES = 24;
const MAX_KEY_BYTES = 64;

/**
 * The key in a Standard Webhooks secret: base64 of 24 to 64 bytes, with or without the prefix `whsec_`. Undefined when
 * the text is none.
 */
export function signingKey(secret: string): Buffer | undefined {
  const text = secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret;
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(text)) return undefined;
  const key = Buffer.from(text, "base64");
  const isWhole = key.toString("base64").replace(/=+$/, "") === text.replace(/=+$/, "");
  return isWhole && key.length >= MIN_KEY_BYTES && key.length <= MAX_KEY_BYTES ? key : undefined;
}

/**
 * The three fields of Standard Webhooks for one attempt: name and value in turn. The id is the event's, the same for
 * every attempt; the time is the attempt's, so that receivers can refuse old ones.
 */
export function signatureFields(key: Buffer, id: string, body: Buffer, nowMs: number): string[] {
  const timestamp = String(Math.floor(nowMs / 1000));
  const signature = createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest("base64");
  return ["webhook-id", id, "webhook-timestamp", timestamp, "webhook-signature", `v1,${signature}`];
}
