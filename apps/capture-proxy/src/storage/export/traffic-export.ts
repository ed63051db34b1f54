import { decodeContentSync } from "@headworks/http-fields/content-coding";
import { harEntryTexts, harEpilogue, harPrologue, toHarEntry } from "@headworks/har";
import type { HarEntry, HarPage, HarWebSocketMessage } from "@headworks/har";
import type { SqlRow } from "../database.ts";
import { harExchangeOf } from "./har-exchange.ts";
import type { StoredBodies } from "../read/stored-bodies.ts";
import type { FoundEntry } from "../read/whole-entries.ts";

const CHUNK_CHARACTERS = 262_144;
/** Larger bodies are cut in a HAR, whose readers hold whole documents in memory; a native export has them whole. */
const HAR_BODY_BYTES = 67_108_864;

/** What an export reads: an entry's row with its head, undefined when it is gone by then. */
export interface ExportSource {
  readonly seqs: readonly number[];
  whole(seq: number): FoundEntry | undefined;
  readonly bodies: StoredBodies;
  /** Messages of a WebSocket connection, by the id of its entry. */
  readonly webSocketMessages: (id: string) => readonly HarWebSocketMessage[] | undefined;
}

/** Gives a document piece by piece; nothing of it is made before it is asked for. */
export class TrafficExport {
  /** Entries it holds, unless some are removed while it is written. */
  readonly total: number;
  readonly #texts: Iterator<string, undefined>;
  #isFinished = false;

  constructor(total: number, texts: Iterator<string, undefined>) {
    this.total = total;
    this.#texts = texts;
  }

  /** The next piece; undefined after the last. */
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
    // One by one: together, very long texts would be longer than a string can be.
    const encoder = new TextEncoder();
    const encoded = pieces.length > 1 && pieces.every((piece) => piece.length <= CHUNK_CHARACTERS);
    return encoded ? encoder.encode(pieces.join("")) : Buffer.concat(pieces.map((piece) => encoder.encode(piece)));
  }
}

/** A HAR 1.2 of entries, oldest first. */
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
    // ISO 8601 times of one form and zone compare as texts.
    if (page === undefined || entry.startedDateTime < page.startedDateTime) {
      pages.set(sessionId, sessionPage(sessionId, entry.startedDateTime));
    }
    yield* harEntryTexts({ pageref: sessionId, ...entry }, index);
    index += 1;
  }
  yield harEpilogue([...pages.values()]);
  return undefined;
}

/** A capture session as the page of its entries: some readers of HAR show no entry without a page. */
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
