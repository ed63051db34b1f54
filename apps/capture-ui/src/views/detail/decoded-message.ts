import type { TrafficEntry } from "@headworks/capture-contract";
import { draftBytes, draftOfBytes } from "../../rules/message-draft.ts";
import { bodyLines, headLines } from "../../rules/message-text.ts";

type Message = TrafficEntry["request"] | NonNullable<TrafficEntry["response"]>;

/** A message as comparable lines, and a note on missing body content. */
export interface MessageLines {
  readonly head: readonly string[];
  readonly body: readonly string[];
  readonly note: string | null;
}

const MARK = "base64:";
/** Larger bodies are left to the body viewer, which is virtual. */
const MAX_BYTES = 2_000_000;
/** Limit of decoded bytes per coding; a few kilobytes can expand to gigabytes. */
const MAX_UNDONE_BYTES = 16_000_000;

/** The lines of a message, with content codings decoded where the browser supports them. */
export async function messageLines(message: Message): Promise<MessageLines> {
  const head = headLines(message);
  if (message.body === null || message.body === "") return { head, body: [], note: bodyNote(message) };
  const isText = message.body_encoding === "utf8";
  const bytes = isText
    ? new TextEncoder().encode(message.body)
    : draftBytes({ encoding: "base64", text: message.body.slice(message.body.startsWith(MARK) ? MARK.length : 0) });
  const codings = contentCodings(message);
  const decoded = bytes === null ? null : await undone(bytes, codings);
  if (decoded === null) {
    return {
      head,
      body: [],
      note: `The body's content coding (${codings.join(", ")}) cannot be decoded in the browser.`,
    };
  }
  if (decoded === "too-large" || decoded.length > MAX_BYTES) {
    return { head, body: [], note: "The body is too large to compare." };
  }
  const draft = draftOfBytes(decoded);
  return {
    head,
    body: bodyLines({ headers_list: [], body: draft.text, body_encoding: draft.encoding }),
    note: bodyNote(message),
  };
}

function bodyNote(message: Message): string | null {
  if (message.body_state === "truncated") return "Only the first part of the body was stored.";
  return message.body_state === "not_stored" ? "The body was not stored." : null;
}

/** Codings in order of application. */
export function contentCodings(message: Pick<Message, "headers_list">): readonly string[] {
  return message.headers_list
    .filter(([name]) => name.toLowerCase() === "content-encoding")
    .flatMap(([, value]) => value.split(","))
    .map((coding) => coding.trim().toLowerCase())
    .filter((coding) => coding !== "" && coding !== "identity");
}

const FORMATS: Readonly<Record<string, string>> = { gzip: "gzip", "x-gzip": "gzip", deflate: "deflate", br: "brotli" };

async function undone(
  bytes: Uint8Array<ArrayBuffer>,
  codings: readonly string[],
): Promise<Uint8Array<ArrayBuffer> | "too-large" | null> {
  let now = bytes;
  for (const coding of codings.toReversed()) {
    try {
      const format = (FORMATS[coding] ?? coding) as CompressionFormat;
      const pieces = await piecesOf(new Blob([now]).stream().pipeThrough(new DecompressionStream(format)));
      if (pieces === undefined) return "too-large";
      now = new Uint8Array(await new Blob(pieces).arrayBuffer());
    } catch {
      return null;
    }
  }
  return now;
}

/** All bytes of a stream; undefined above the limit. */
async function piecesOf(
  stream: ReadableStream<Uint8Array<ArrayBuffer>>,
): Promise<Uint8Array<ArrayBuffer>[] | undefined> {
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  const reader = stream.getReader();
  for (let sizeBytes = 0; ;) {
    const { value } = await reader.read();
    if (value === undefined) return pieces;
    sizeBytes += value.length;
    if (sizeBytes > MAX_UNDONE_BYTES) {
      await reader.cancel();
      return undefined;
    }
    pieces.push(value);
  }
}
