import { decodeText, isTextual } from "@headworks/http-fields";
import { createContentDecoder } from "@headworks/http-fields/content-coding";

/** A body prepared for the log. */
export interface LoggedBody {
  /** Pieces of its text, each small enough for one event; none for binary content. */
  readonly parts: Iterable<string>;
  /** Size, type and missing parts of the body. */
  readonly note: string;
}

/** Bytes converted to text synchronously at a time. */
const PART_BYTES = 65_536;

export interface BodyInput {
  readonly pieces: readonly Uint8Array[];
  readonly sizeBytes: number;
  readonly isCut: boolean;
  readonly contentType: string | undefined;
  readonly contentEncoding: readonly string[];
  readonly maxBytes: number;
}

/** Removes content codings off the main thread, up to `maxBytes`, and decodes text. */
export async function loggedBody(body: BodyInput): Promise<LoggedBody> {
  const { contentType, contentEncoding, maxBytes } = body;
  const decoded: Uint8Array[] = [];
  const decoder = createContentDecoder(contentEncoding, (bytes) => decoded.push(bytes), { maxBytes: maxBytes });
  for (const piece of body.pieces) await decoder.write(piece);
  const { stop, remaining } = await decoder.end();
  const notes = [bodyNote(body.sizeBytes, contentType)];
  if (remaining.length > 0) notes.push(`said to be coded as ${remaining.join(", ")}, as it came`);
  if (body.isCut || stop === "limit") notes.push("cut");
  else if (stop === "truncated") notes.push("ended early");
  else if (stop === "damaged" && remaining.length === 0) notes.push("damaged");
  const charset = readableCharset(decoded, contentType);
  const note = notes.join(", ");
  return charset === undefined
    ? { parts: [], note: `${note}, not text` }
    : { parts: textParts(decoded, charset), note };
}

export function bodyNote(sizeBytes: number, contentType: string | undefined): string {
  const type = (contentType ?? "").split(";")[0]?.trim() ?? "";
  return `${sizeBytes.toLocaleString("en")} bytes of ${type === "" ? "an unnamed type" : type}`;
}

/** Undefined for binary content: a non-textual type, or bytes that are not text. */
function readableCharset(pieces: readonly Uint8Array[], contentType: string | undefined): string | undefined {
  const first = (pieces[0] ?? new Uint8Array(0)).subarray(0, PART_BYTES);
  if (contentType !== undefined && contentType.trim() !== "") {
    return isTextual(contentType) ? decodeText(first, contentType).charset : undefined;
  }
  const { text, charset, isDamaged } = decodeText(first, undefined);
  return isDamaged || charset === "windows-1252" || /[\x00-\x08\x0e-\x1a\x1c-\x1f]/.test(text) ? undefined : charset;
}

function* textParts(pieces: readonly Uint8Array[], charset: string): Generator<string> {
  const decoder = new TextDecoder(charset);
  for (const piece of pieces) {
    for (let at = 0; at < piece.length; at += PART_BYTES) {
      const text = decoder.decode(piece.subarray(at, at + PART_BYTES), { stream: true });
      if (text !== "") yield text;
    }
  }
  const rest = decoder.decode();
  if (rest !== "") yield rest;
}
