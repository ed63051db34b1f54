import { decodeContentSync } from "@headworks/http-fields/content-coding";
import { harEntryTexts, harEpilogue, harPrologue, toHarEntry } from "@headworks/har";
import type { HarEntry, HarPage, HarWebSocketMessage } from "@headworks/har";
import type { SqlRow } from "../database.ts";
import { harExchangeOf } from "./har-exchange.ts";
import type { StoredBodies } from "../read/stored-bodies.ts";
import type { FoundEntry } from "../read/whole-entries.ts";

const CHUNK_CHARACTERS = 262_144;
/** Larger bodies are truncated in a HAR, whose readers load whole documents; a native export is complete. */
const HAR_BODY_BYTES = 67_108_864;

/** Looks up an entry's row with its head; undefined if it was removed. */
export interface ExportSource {
  readonly seqs: readonly number[];
  whole(seq: number): FoundEntry | undefined;
  readonly bodies: StoredBodies;
  /** Messages of a WebSocket connection by entry id. */
  readonly webSocketMessages: (id: string) => readonly HarWebSocketMessage[] | undefined;
}

/** Produces a document lazily, piece by piece. */
export class TrafficExport {
  /** Fewer are written if entries are removed meanwhile. */
  readonly total: number;
  readonly #texts: Iterator<string, undefined>;
  #isFinished = false;

  constructor(total: number, texts: Iterator<string, undefined>) {
    this.total = total;
    this.#texts = texts;
  }

  /** Undefined after the last piece. */
  next(): Uint8Array | undefined {
    if (this.#isFinished) return undefined;
    const pieces: string[] = [];
    for (let characters = 0; characters < CHUNK_CHARACTERS;) {
      const step = this.#texts.next();
      if (step.done === true) {
        this.#isFinished = true;
        break;
      }
      characters += step.value.length;
      pieces.push(step.value);
    }
    // Encoded one by one: joined, long texts could exceed the maximum string length.
    const encoder = new TextEncoder();
    const encoded = pieces.length > 1 && pieces.every((piece) => piece.length <= CHUNK_CHARACTERS);
    return encoded ? encoder.encode(pieces.join("")) : Buffer.concat(pieces.map((piece) => encoder.encode(piece)));
  }
}

/** HAR 1.2, oldest first. */
export function harExport(source: ExportSource, version: string): TrafficExport {
  return new TrafficExport(source.seqs.length, harTexts(source, version));
}

function* harTexts(source: ExportSource, version: string): Generator<string, undefined> {
  yield harPrologue({ creator: { name: "Weir", version } });
  const pages = new Map<string, HarPage>();
  let index = 0;
  for (const seq of source.seqs) {
    const found = source.whole(seq);
    if (found === undefined) continue;
    const { sessionId } = found;
    const entry = harEntry(found.row, sessionId, source);
    const page = pages.get(sessionId);
    // ISO 8601 times in one format and zone compare as strings.
    if (page === undefined || entry.startedDateTime < page.startedDateTime) {
      pages.set(sessionId, sessionPage(sessionId, entry.startedDateTime));
    }
    yield* harEntryTexts({ pageref: sessionId, ...entry }, index);
    index += 1;
  }
  yield harEpilogue([...pages.values()]);
  return undefined;
}

/** The capture session as a page: some HAR readers show only entries with a page. */
function sessionPage(id: string, startedDateTime: string): HarPage {
  return { startedDateTime, id, title: `Capture session ${id}`, pageTimings: { onContentLoad: -1, onLoad: -1 } };
}

function harEntry(row: SqlRow, sessionId: string, { bodies, webSocketMessages }: ExportSource): HarEntry {
  const decode = (bytes: Uint8Array, coding: string): Uint8Array | undefined => {
    const { bytes: decoded, stop } = decodeContentSync(bytes, coding, { maxBytes: HAR_BODY_BYTES });
    return stop === "limit" ? undefined : decoded;
  };
  const isWebSocket = row["scheme"] === "ws" || row["scheme"] === "wss";
  const messages = isWebSocket ? webSocketMessages(String(row["id"])) : undefined;
  const exchange = { ...harExchangeOf(row, sessionId, bodies, HAR_BODY_BYTES), webSocketMessages: messages };
  return toHarEntry(exchange, decode);
}
