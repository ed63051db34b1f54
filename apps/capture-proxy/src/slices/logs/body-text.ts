import { decodeText, isTextual } from "@headworks/http-fields";
import { createContentDecoder } from "@headworks/http-fields/content-coding";

/** A body as it is to be logged. */
export interface LoggedBody {
  /** Pieces of its text, each small enough for one event; none where it is not for reading. */
  readonly parts: Iterable<string>;
  /** What is to be said of it: its size and type, and what of it is missing. */
  readonly note: string;
}

/** So many bytes of a body at a time: what turns them into text does so in one go. */
const PART_BYTES = 65_536;

export interface BodyInput {
  readonly pieces: readonly Uint8Array[];
  readonly sizeBytes: number;
  readonly isCut: boolean;
  readonly contentType: string | undefined;
  readonly contentEncoding: readonly string[];
  readonly maxBytes: number;
}

/** Undoes content codings, off this thread and within `maxBytes`, and makes text of what is for reading. */
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

/** `1,234 bytes of image/png` */
export function bodyNote(sizeBytes: number, contentType: string | undefined): string {
  const type = (contentType ?? "").split(";")[0]?.trim() ?? "";
  return `${sizeBytes.toLocaleString("en")} bytes of ${type === "" ? "an unnamed type" : type}`;
}

/** Undefined for what is not for reading: another type than text, or octets that nobody would call so. */
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
