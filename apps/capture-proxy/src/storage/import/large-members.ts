import { LargeText } from "@headworks/har";
import { MemberError } from "./checked-members.ts";
import type { CheckedMembers } from "./checked-members.ts";
import { cutNote, writtenToFile } from "./imported-content.ts";
import type { FileTarget } from "./imported-content.ts";
import { base64Bytes, isBase64Body, withoutPrefix } from "./imported-message.ts";
import type { FoundBody } from "./imported-message.ts";
import { MAX_EMBEDDED_BODY_BYTES } from "../export/traffic-export.ts";

/** Members of a native entry that have a body. */
export const MESSAGE_MEMBERS = ["request", "response", "original_request", "original_response"] as const;
export type MessageMember = (typeof MESSAGE_MEMBERS)[number];

/** Large bodies of an entry, with notes about them. */
export interface LargeMembers {
  readonly found: ReadonlyMap<MessageMember, FoundBody>;
  readonly notes: readonly string[];
}

/**
 * Writes the large bodies of an entry to files. Bodies above the embedding limit of Weir's exports come from other
 * programs and are truncated like captured ones. Throws {@link MemberError}.
 */
export async function largeMembersOf(entry: CheckedMembers, target: FileTarget): Promise<LargeMembers> {
  const found = new Map<MessageMember, FoundBody>();
  const notes: string[] = [];
  for (const name of MESSAGE_MEMBERS) {
    const members = entry.object(name);
    const text = members?.raw("body");
    if (members === null || !(text instanceof LargeText)) continue;
    const pieces = (): Iterable<Uint8Array> => bodyPieces(members, text);
    const isOwn = !exceeds(pieces(), MAX_EMBEDDED_BODY_BYTES);
    const limited = isOwn ? { ...target, maxBodyBytes: MAX_EMBEDDED_BODY_BYTES } : target;
    const isOriginal = name.startsWith("original");
    const body = isOriginal ? heldInMemory(pieces(), limited.maxBodyBytes) : await writtenToFile(pieces(), limited);
    found.set(name, body);
    notes.push(...cutNote(name.replace("_", " "), body));
  }
  return { found, notes };
}

/** Replaced bodies are stored with their entry, not in files. */
function heldInMemory(pieces: Iterable<Uint8Array>, maxBytes: number): FoundBody & { readonly body: Uint8Array } {
  const kept: Uint8Array[] = [];
  let [keptBytes, totalBytes] = [0, 0];
  for (const piece of pieces) {
    totalBytes += piece.length;
    const part = piece.subarray(0, maxBytes - keptBytes);
    keptBytes += part.length;
    if (part.length > 0) kept.push(part);
  }
  return { body: Buffer.concat(kept), totalBytes };
}

function exceeds(pieces: Iterable<Uint8Array>, bytes: number): boolean {
  let seenBytes = 0;
  for (const piece of pieces) {
    seenBytes += piece.length;
    if (seenBytes > bytes) return true;
  }
  return false;
}

function* bodyPieces(members: CheckedMembers, text: LargeText): Generator<Uint8Array> {
  const [beginning = ""] = textsOf(members, "body", text);
  const texts = textsOf(members, "body", text);
  if (isBase64Body(members, beginning)) {
    yield* base64Pieces(members, "body", texts, beginning.length - withoutPrefix(beginning).length);
    return;
  }
  for (const part of texts) yield Buffer.from(part, "utf8");
}

/** Decodes a long base64 text as strictly as a short one. Throws {@link MemberError}. */
export function largeBase64(members: CheckedMembers, name: string, text: LargeText): Iterable<Uint8Array> {
  return base64Pieces(members, name, textsOf(members, name, text), 0);
}

function* base64Pieces(
  members: CheckedMembers,
  name: string,
  texts: Iterable<string>,
  prefixLength: number,
): Generator<Uint8Array> {
  let open = "";
  let unread = prefixLength;
  let isFinished = false;
  for (const text of texts) {
    const known = open + text.slice(unread);
    unread = 0;
    const whole = known.slice(0, known.length - (known.length % 4));
    open = known.slice(whole.length);
    if (whole === "") continue;
    if (isFinished) members.refuse(name, "is not base64");
    yield base64Bytes(whole) ?? members.refuse(name, "is not base64");
    isFinished = whole.endsWith("=");
  }
  if (open !== "") members.refuse(name, "is not base64");
}

/** Malformed strings are detected only while reading. */
function* textsOf(members: CheckedMembers, name: string, text: LargeText): Generator<string> {
  try {
    yield* text.texts();
  } catch (error) {
    if (error instanceof MemberError) throw error;
    members.refuse(name, error instanceof Error ? error.message : String(error));
  }
}
