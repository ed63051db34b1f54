// Tested by open-capture-store.test.ts
import type { RequestData, ResponseData, TrafficEntry } from "@headworks/capture-contract";
import { decodeContent } from "@headworks/http-fields/content-coding";
import type { SqlRow } from "./database.ts";
import { fieldValue } from "./entry-facts.ts";
import { bodyText } from "#exchange/shown-message.ts";
import { parsed } from "./entry-shapes.ts";
import type { StoredBodies } from "./stored-bodies.ts";

/**
 * The entry with its bodies' content codings removed, and the fields that named them. A body that cannot be decoded,
 * or becomes larger than `maxBytes`, stays as it was stored.
 */
export async function decodedEntry(
  entry: TrafficEntry,
  row: SqlRow,
  bodies: StoredBodies,
  maxBytes: number,
): Promise<TrafficEntry> {
  const decode = async <T extends RequestData | ResponseData>(message: T, side: "request" | "response"): Promise<T> => {
    const coding = fieldValue(parsed<string[]>(row[`${side}_fields`]) ?? [], "content-encoding");
    const stored = coding === undefined || message.body === null ? undefined : bodies.read(entry.seq, side, maxBytes);
    if (stored === undefined) return message;
    const { bytes, stop } = await decodeContent(stored, coding, { maxBytes });
    const isCut = message.body_state === "truncated" && stop === "truncated";
    if (stop !== undefined && !isCut) return message;
    const isOther = (name: string): boolean => name.toLowerCase() !== "content-encoding";
    return {
      ...message,
      ...bodyText(bytes),
      headers: Object.fromEntries(Object.entries(message.headers).filter(([name]) => isOther(name))),
      headers_list: message.headers_list.filter(([name]) => isOther(name)),
    };
  };
  return {
    ...entry,
    request: await decode(entry.request, "request"),
    response: entry.response === null ? null : await decode(entry.response, "response"),
  };
}
