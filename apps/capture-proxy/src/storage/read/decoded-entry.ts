import type { RequestData, ResponseData, TrafficEntry } from "@headworks/capture-contract";
import { decodeContent } from "@headworks/http-fields/content-coding";
import { fieldValues } from "@headworks/http1";
import { bodyText } from "#exchange/shown-message.ts";
import type { StoredBodies } from "./stored-bodies.ts";

/**
 * The entry with its bodies' content codings removed, and the fields that named them. Of a body that is damaged or not in its
 * coding comes what can be decoded, or its bytes, and the fields stay. One that becomes larger than `maxBytes` stays as it was
 * stored.
 */
export async function decodedEntry(entry: TrafficEntry, bodies: StoredBodies, maxBytes: number): Promise<TrafficEntry> {
  const decode = async <T extends RequestData | ResponseData>(
    message: T,
    stored: Uint8Array | undefined,
  ): Promise<T> => {
    const codings = fieldValues(message.headers_list.flat(), "content-encoding");
    if (stored === undefined || codings.length === 0) return message;
    const { bytes, stop } = await decodeContent(stored, codings, { maxBytes });
    const isCut = message.body_state === "truncated" && stop === "truncated";
    if (stop === "limit") return message;
    if (stop !== undefined && !isCut) return { ...message, ...bodyText(bytes) };
    const isOther = (name: string): boolean => name.toLowerCase() !== "content-encoding";
    return {
      ...message,
      ...bodyText(bytes),
      headers: Object.fromEntries(Object.entries(message.headers).filter(([name]) => isOther(name))),
      headers_list: message.headers_list.filter(([name]) => isOther(name)),
    };
  };
  const read = (message: RequestData | ResponseData, side: "request" | "response"): Uint8Array | undefined =>
    message.body === null ? undefined : bodies.read(entry.seq, side, maxBytes);
  const { request, response, original_request: sent, original_response: received } = entry;
  return {
    ...entry,
    request: await decode(request, read(request, "request")),
    response: response && (await decode(response, read(response, "response"))),
    original_request: sent && (await decode(sent, originalBytes(sent))),
    original_response: received && (await decode(received, originalBytes(received))),
  };
}

/** The bytes that the text of a body stands for. */
function originalBytes({ body, body_encoding: encoding }: RequestData | ResponseData): Uint8Array | undefined {
  if (body === null) return undefined;
  return encoding === "base64" ? Buffer.from(body.slice("base64:".length), "base64") : Buffer.from(body, "utf8");
}
