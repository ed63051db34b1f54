import { closeSync, openSync, readSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { makeDirectorySync } from "@headworks/files";
import { fromLargeHarEntry, HarDecoder, LargeText } from "@headworks/har";
import type { HarItem, HarWebSocketMessage, KeptText } from "@headworks/har";
import { SESSION_FORMAT_VERSION } from "../export/traffic-export.ts";
import { CheckedMembers, MemberError } from "./checked-members.ts";
import type { FileTarget, ImportedEntry } from "./imported-entry.ts";
import { importedHarEntry } from "./imported-har-entry.ts";
import { base64Bytes, importedNativeEntry, largeBase64, largeMembersOf } from "./imported-native-entry.ts";
import type { FoundBody } from "./imported-native-entry.ts";
import { importedFrame, importedStream, streamOfHar } from "./imported-stream.ts";
import type { ImportedFrame, ImportedStream } from "./imported-stream.ts";
import { DocumentError, MemberScanner, parseElement, type TakeElement } from "./member-scanner.ts";
import type { ImportedSession } from "./session-imports.ts";

/** Small, so that the garbage of a piece is collected soon. */
const PIECE_BYTES = 32_768;

/** Long strings of a document, each in a file while its entry is imported. */
export class TextFiles {
  readonly #folder: string;
  #open: TextFile[] = [];
  #nextFile = 1;

  /** The folder is created with the first string. The caller removes it, also after the thread was terminated. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /** A file for a string, readable repeatedly until released. */
  keep(): KeptText {
    if (this.#nextFile === 1) makeDirectorySync(this.#folder);
    const file = new TextFile(join(this.#folder, `${this.#nextFile++}.text`));
    this.#open.push(file);
    return file;
  }

  /** Files opened since the last call, to be released with their entry. */
  taken(): { release(): void } {
    const files = this.#open;
    this.#open = [];
    return {
      release: () => {
        for (const file of files) file.remove();
      },
    };
  }
}

class TextFile implements KeptText {
  readonly #path: string;
  readonly #fd: number;

  constructor(path: string) {
    this.#path = path;
    this.#fd = openSync(path, "wx+", 0o600);
  }

  add(piece: Uint8Array): void {
    let from = 0;
    while (from < piece.length) from += writeSync(this.#fd, piece, from);
  }

  *pieces(): Generator<Uint8Array> {
    const buffer = Buffer.allocUnsafeSlow(PIECE_BYTES);
    let at = 0;
    for (;;) {
      const read = readSync(this.#fd, buffer, 0, PIECE_BYTES, at);
      if (read === 0) return;
      at += read;
      yield buffer.subarray(0, read);
    }
  }

  remove(): void {
    closeSync(this.#fd);
    rmSync(this.#path, { force: true });
  }
}

/** Large bodies of a native document: their parts precede the entries and are assembled in files. */
class LargeBodies {
  readonly #target: PieceTarget;
  readonly #finished = new Map<string, FoundBody>();
  #open: OpenBody | undefined;

  constructor(target: PieceTarget) {
    this.#target = target;
  }

  /** Appends a part. Throws {@link MemberError} for an invalid one. */
  async add(value: unknown): Promise<void> {
    const part = new CheckedMembers(value, "");
    const side = part.oneOf("side", ["request", "response"]) ?? part.refuse("side", "is missing");
    const key = `${side} ${part.optionalText("entry", 64) ?? part.refuse("entry", "is missing")}`;
    const data = part.raw("data");
    const pieces =
      data instanceof LargeText
        ? largeBase64(part, "data", data)
        : [base64Bytes(part.text("data")) ?? part.refuse("data", "is not base64")];
    if (this.#open?.key !== key) {
      this.finish();
      if (this.#finished.has(key)) throw new MemberError("the parts of a body are not contiguous");
      this.#open = { key, file: this.#target.nextFile(), sizeBytes: 0 };
    }
    for (const bytes of pieces) {
      this.#open.sizeBytes += bytes.length;
      this.#target.piece(this.#open.file, bytes, false);
      await this.#target.hasRoom();
    }
  }

  /** Completes the current body. */
  finish(): void {
    if (this.#open === undefined) return;
    const { key, file, sizeBytes } = this.#open;
    this.#target.piece(file, new Uint8Array(0), true);
    this.#finished.set(key, { body: { file, sizeBytes }, totalBytes: sizeBytes });
    this.#open = undefined;
  }

  /** Takes the body of an entry once: entries cannot share a file. */
  take(member: string, entryId: string): FoundBody | undefined {
    const key = `${member} ${entryId}`;
    const found = this.#finished.get(key);
    this.#finished.delete(key);
    return found;
  }
}

/** Elements completed by the current bytes, imported in order. */
class ElementTasks {
  readonly #texts: TextFiles;
  #waiting: (() => Promise<void>)[] = [];

  /** Strings in `texts` live until their element is imported. */
  constructor(texts: TextFiles) {
    this.#texts = texts;
  }

  /** `what` names the element in errors; `whyMisplaced` returns why it may not occur here. */
  later(what: string, take: TakeValue, whyMisplaced: () => string | undefined = () => undefined): TakeElement {
    return (element, index, byteOffset) => {
      const why = whyMisplaced();
      if (why !== undefined) throw new DocumentError(why, byteOffset);
      const value = parseElement(element, byteOffset);
      const kept = this.#texts.taken();
      this.#waiting.push(async () => {
        try {
          await take(value, index);
        } catch (error) {
          throw withPosition(error, `${what} ${index}`, byteOffset);
        }
        kept.release();
      });
    };
  }

  async run(): Promise<void> {
    const tasks = this.#waiting;
    this.#waiting = [];
    for (const task of tasks) await task();
  }
}

export interface DocumentTarget extends FileTarget {
  entry(entry: ImportedEntry): void;
  /** A stream of an earlier entry; returns its index. Throws {@link MemberError}. */
  stream(stream: ImportedStream): number;
  /** A frame of an earlier stream. Throws {@link MemberError}. */
  frame(frame: ImportedFrame): void;
  /** Reports an unusable entry; its files are discarded. */
  skip(message: string): void;
  /** Reports a flaw of an imported entry. */
  note(message: string): void;
  session(facts: ImportedSession): void;
}

/** Incremental reader. Both methods throw {@link DocumentError} or `HarFormatError`. */
export interface DocumentReader {
  /** Resolves when everything completed by the bytes is processed; the buffer may be reused then. */
  write(bytes: Uint8Array): Promise<void>;
  end(): void;
}

/** A HAR, bare or as member `har` of a request with options. Unusable entries are skipped. */
export function harReader(target: DocumentTarget, texts: TextFiles): DocumentReader {
  const decoder = new HarDecoder({ keepText: () => texts.keep() });
  let documents = 0;
  /** Items completed by the current bytes; their large bodies are still to be read. */
  let found: { readonly item: HarItem; readonly texts: ReturnType<TextFiles["taken"]> }[] = [];
  const feed = (bytes: Uint8Array): void => {
    for (const item of decoder.write(bytes)) found.push({ item, texts: texts.taken() });
  };
  const begin = (byteOffset: number): void => {
    documents += 1;
    if (documents > 1) throw new DocumentError("there is more than one HAR in the document", byteOffset);
  };
  let isOpen = false;
  const stream = (before: string, after: string) => (bytes: Uint8Array | undefined, byteOffset: number) => {
    if (!isOpen) {
      begin(byteOffset);
      isOpen = true;
      feed(Buffer.from(before));
    }
    if (bytes !== undefined) return feed(bytes);
    feed(Buffer.from(after));
    decoder.end();
    isOpen = false;
  };
  // A bare HAR may have custom members beside `log`; members beside `har` are options of the import.
  let isWrapped = false;
  let foreign: DocumentError | undefined;
  const wrapped = stream("", "");
  const scanner = new MemberScanner({
    streams: {
      har: (bytes, byteOffset) => {
        isWrapped = true;
        if (foreign !== undefined) throw foreign;
        wrapped(bytes, byteOffset);
      },
      log: stream('{"log":', "}"),
    },
    unknown: (name, byteOffset) => {
      foreign ??= new DocumentError(`unknown member ${JSON.stringify(name.slice(0, 100))} beside \`har\``, byteOffset);
      if (isWrapped) throw foreign;
    },
    values: {
      session_name: (value, byteOffset) => {
        const isName = typeof value === "string" && value.trim() !== "" && value.length <= 255;
        if (!isName || !value.isWellFormed() || value.includes("\0")) {
          throw new DocumentError("`session_name` is not a valid name", byteOffset);
        }
        target.session({ name: value });
      },
      switch_session: (value, byteOffset) => {
        if (typeof value !== "boolean") throw new DocumentError("`switch_session` is not true or false", byteOffset);
        target.session({ switchSession: value });
      },
    },
  });
  return {
    write: async (bytes) => {
      scanner.write(bytes);
      const items = found;
      found = [];
      for (const each of items) {
        await addHarItem(each.item, target);
        each.texts.release();
      }
    },
    end: () => {
      scanner.end();
      if (documents === 0) throw new DocumentError("there is no `log.entries` array", scanner.seenBytes);
    },
  };
}

async function addHarItem(item: HarItem, target: DocumentTarget): Promise<void> {
  if (item.kind === "refused") return target.skip(item.message);
  let entry: ImportedEntry;
  let messages: readonly HarWebSocketMessage[] | undefined;
  try {
    const exchange = fromLargeHarEntry(item.entry, (text, isBase64) => ({ text, isBase64 }));
    const imported = await importedHarEntry(exchange, target);
    for (const note of [...item.leftOut, ...imported.notes]) target.note(`entry ${item.index}: ${note}`);
    ({ entry } = imported);
    messages = exchange.webSocketMessages;
  } catch (error) {
    return target.skip(`entry ${item.index}: ${error instanceof Error ? error.message : String(error)}`);
  }
  target.entry(entry);
  if (messages === undefined) return undefined;
  const { stream, frames } = streamOfHar(entry, messages);
  try {
    const index = target.stream(stream);
    for (const frame of frames) target.frame({ ...frame, stream: index });
  } catch (error) {
    if (!(error instanceof MemberError)) throw error;
    target.skip(`messages of entry ${item.index}: ${error.message}`);
  }
  return undefined;
}

/**
 * A native session document. The first invalid entry aborts the import, since sessions are restored completely, except
 * for bodies of other programs above the capture limit.
 */
export function sessionReader(target: DocumentTarget, texts: TextFiles): DocumentReader {
  const bodies = new LargeBodies(target);
  const tasks = new ElementTasks(texts);
  let sawEntries = false;
  let sawVersion = false;
  const scanner = new MemberScanner({
    values: {
      version: (value, byteOffset) => {
        if (value !== SESSION_FORMAT_VERSION) throw new DocumentError(versionMessage(value), byteOffset);
        sawVersion = true;
      },
      session: (value, byteOffset) => {
        try {
          target.session(sessionFacts(value));
        } catch (error) {
          throw withPosition(error, "session", byteOffset);
        }
      },
    },
    elements: {
      bodies: tasks.later(
        "bodies",
        async (value) => await bodies.add(value),
        () => (sawEntries ? "`bodies` must come before `entries`" : undefined),
      ),
      entries: tasks.later(
        "entry",
        async (value, index) => await addNativeEntry(value, index, target, bodies),
        () => (sawVersion ? undefined : "`version` must come before `entries`"),
      ),
      streams: tasks.later(
        "stream",
        (value) => void target.stream(importedStream(value)),
        () => (sawEntries ? undefined : "`entries` must come before `streams`"),
      ),
      frames: tasks.later("frame", (value) => target.frame(importedFrame(value))),
    },
    longTexts: { of: { bodies: "data", entries: "body" }, keep: () => texts.keep() },
    arrays: { entries: () => (sawEntries = true) },
  });
  return {
    write: async (bytes) => {
      try {
        scanner.write(bytes);
      } finally {
        // Errors of an element take precedence over errors behind it.
        await tasks.run();
      }
    },
    end: () => {
      scanner.end();
      if (!sawVersion) throw new DocumentError("there is no `version`: not a session document", scanner.seenBytes);
      if (!sawEntries) throw new DocumentError("there is no `entries` array", scanner.seenBytes);
    },
  };
}

async function addNativeEntry(
  value: unknown,
  index: number,
  target: DocumentTarget,
  bodies: LargeBodies,
): Promise<void> {
  bodies.finish();
  const entry = new CheckedMembers(value, "");
  const { found, notes } = await largeMembersOf(entry, target);
  for (const note of notes) target.note(`entry ${index}: ${note}`);
  target.entry(importedNativeEntry(entry, (member, id) => bodies.take(member, id) ?? found.get(member)));
}

function versionMessage(value: unknown): string {
  const isNewer = typeof value === "string" && Number.parseFloat(value) > Number.parseFloat(SESSION_FORMAT_VERSION);
  return isNewer
    ? `the document has version ${JSON.stringify(value.slice(0, 20))}, made by a newer program; this one reads ${SESSION_FORMAT_VERSION}`
    : `the document's \`version\` is not "${SESSION_FORMAT_VERSION}"`;
}

/** Normalized to what the API accepts: invalid parts are dropped, truncated or repaired. */
function sessionFacts(value: unknown): ImportedSession {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new MemberError("is not an object");
  const { name, notes, tags } = value as Readonly<Record<string, unknown>>;
  const shownName = typeof name === "string" ? cut(named(name), MAX_NAME_LENGTH) : "";
  return {
    ...(shownName.trim() !== "" && { name: shownName }),
    ...(typeof notes === "string" && { notes: cut(notes.toWellFormed(), MAX_NOTES_LENGTH) }),
    ...(Array.isArray(tags) && {
      tags: tags
        .flatMap((tag) => (typeof tag === "string" ? named(tag) : []))
        .filter((tag) => tag.trim() !== "" && tag.length <= MAX_NAME_LENGTH)
        .slice(0, MAX_TAGS),
    }),
  };
}

const [MAX_NAME_LENGTH, MAX_NOTES_LENGTH, MAX_TAGS] = [255, 65_536, 64];

/** Removes lone surrogates and NUL. */
function named(text: string): string {
  return text.toWellFormed().replaceAll("\0", "");
}

/** Truncates without splitting a surrogate pair. */
function cut(text: string, maxLength: number): string {
  const beginning = text.slice(0, maxLength);
  return beginning.isWellFormed() ? beginning : beginning.slice(0, -1);
}

/** Imports an element; throws {@link MemberError} for an invalid one. */
type TakeValue = (value: unknown, index: number) => void | Promise<void>;

/** Adds the element's position to a member error. */
function withPosition(error: unknown, what: string, byteOffset: number): unknown {
  return error instanceof MemberError ? new DocumentError(`${what}: ${error.message}`, byteOffset) : error;
}

type PieceTarget = Omit<FileTarget, "maxBodyBytes">;

interface OpenBody {
  readonly key: string;
  readonly file: number;
  sizeBytes: number;
}
