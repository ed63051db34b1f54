// Tested by traffic-transfer.test.ts
import type { CaptureSession } from "@headworks/capture-contract";
import { decodeContentSync } from "@headworks/http-fields/content-coding";
import { harEntryText, harEpilogue, harPrologue, toHarEntry } from "@headworks/har";
import type { HarBody, HarExchange, HarExchangeTimings } from "@headworks/har";
import type { SqlRow } from "./database.ts";
import { BODY_STATES, ENTRY_STATES, FLAG_PASSTHROUGH } from "./entry-facts.ts";
import { parsed, urlOfRow } from "./entry-shapes.ts";
import type { HarExtras } from "./imported-entry.ts";
import type { StoredBodies } from "./stored-bodies.ts";

const CHUNK_CHARACTERS = 262_144;
const DECODED_BYTES = 268_435_456;

/** Gives the pieces of a document one after the other; entries that are gone by then are left out. */
export class TrafficExport {
  readonly #seqs: readonly number[];
  readonly #entryText: (seq: number, index: number) => string | undefined;
  readonly #epilogue: string;
  #pending: string;
  #next = 0;
  #written = 0;
  #isOver = false;

  constructor(parts: {
    readonly seqs: readonly number[];
    readonly prologue: string;
    readonly epilogue: string;
    readonly entryText: (seq: number, index: number) => string | undefined;
  }) {
    this.#seqs = parts.seqs;
    this.#entryText = parts.entryText;
    this.#pending = parts.prologue;
    this.#epilogue = parts.epilogue;
  }

  get total(): number {
    return this.#seqs.length;
  }

  /** The next piece; undefined after the last. */
  next(): Uint8Array | undefined {
    if (this.#isOver) return undefined;
    const pieces = [this.#pending];
    let characters = 0;
    for (; characters < CHUNK_CHARACTERS && this.#next < this.#seqs.length; this.#next += 1) {
      const text = this.#entryText(this.#seqs[this.#next] ?? 0, this.#written);
      if (text === undefined) continue;
      this.#written += 1;
      characters += text.length;
      pieces.push(text);
    }
    this.#pending = "";
    if (this.#next >= this.#seqs.length) {
      pieces.push(this.#epilogue);
      this.#isOver = true;
    }
    return new TextEncoder().encode(pieces.join(""));
  }
}

/** A HAR 1.2 of entries; `whole` reads an entry's row with its head. */
export function harExport(
  seqs: readonly number[],
  version: string,
  whole: (seq: number) => { row: SqlRow; sessionId: string } | undefined,
  bodies: StoredBodies,
): TrafficExport {
  const decode = (bytes: Uint8Array, coding: string): Uint8Array | undefined => {
    const { bytes: decoded, stop } = decodeContentSync(bytes, coding, { maxBytes: DECODED_BYTES });
    return stop === undefined ? decoded : undefined;
  };
  return new TrafficExport({
    seqs,
    prologue: harPrologue({ creator: { name: "Weir", version } }),
    epilogue: harEpilogue(),
    entryText: (seq, index) => {
      const found = whole(seq);
      return found && harEntryText(toHarEntry(harExchangeOf(found.row, found.sessionId, bodies), decode), index);
    },
  });
}

/** The native document of a session; `entry` gives an entry as the API shows it. */
export function sessionExport(
  seqs: readonly number[],
  session: CaptureSession,
  exportedAt: string,
  entry: (seq: number) => unknown,
): TrafficExport {
  const { id, name, created_at, updated_at, request_count, notes, tags } = session;
  const head = JSON.stringify({
    version: "1.0",
    exported_at: exportedAt,
    session: { id, name, created_at, updated_at, request_count, notes, tags },
  });
  return new TrafficExport({
    seqs,
    prologue: `${head.slice(0, -1)},"entries":[`,
    epilogue: "\n]}\n",
    entryText: (seq, index) => {
      const value = entry(seq);
      return value === undefined ? undefined : `${index === 0 ? "\n" : ",\n"}${JSON.stringify(value)}`;
    },
  });
}

function harExchangeOf(row: SqlRow, sessionId: string, bodies: StoredBodies): HarExchange {
  const text = (name: string): string | undefined => (typeof row[name] === "string" ? row[name] : undefined);
  const failure = parsed<HarExtras["failure"]>(row["failure"]) ?? null;
  const more: HarExtras = {
    state: ENTRY_STATES[Number(row["state"]) as 0 | 1 | 2],
    failure,
    tls: parsed<HarExtras["tls"]>(row["tls"]) ?? null,
    source: String(row["source"]) as NonNullable<HarExtras["source"]>,
    flags: Number(row["flags"]),
  };
  return {
    startedMs: Number(row["started_ms"]),
    request: {
      method: String(row["method"]),
      url: urlOfRow(row),
      httpVersion: text("request_version") ?? "HTTP/1.1",
      fields: parsed<string[]>(row["request_fields"]) ?? [],
      body: harBody(row, "request", bodies),
    },
    response:
      row["response_fields"] === null
        ? undefined
        : {
            status: Number(row["status"]),
            reason: text("status_message") ?? "",
            httpVersion: text("response_version") ?? "HTTP/1.1",
            fields: parsed<string[]>(row["response_fields"]) ?? [],
            body: harBody(row, "response", bodies),
          },
    timings: harTimings(row),
    serverAddress: text("server_addr"),
    clientAddress: text("client_addr"),
    connectionId: row["connection_id"] === null ? undefined : String(row["connection_id"]),
    note: text("note"),
    webSocketMessages: undefined,
    weir: {
      id: String(row["id"]),
      session: sessionId,
      isPassthrough: (Number(row["flags"]) & FLAG_PASSTHROUGH) !== 0,
      failure: failure?.message,
      more: { ...more },
    },
  };
}

function harBody(row: SqlRow, side: "request" | "response", bodies: StoredBodies): HarBody | undefined {
  const size = Number(row[`${side}_body_size`]);
  const stored = Number(row[`${side}_body_stored`]);
  if (size === 0 || BODY_STATES[Number(row[`${side}_body_state`]) as 0 | 1 | 2 | 3] === "not_stored") return undefined;
  const bytes = bodies.read(Number(row["seq"]), side, stored) ?? new Uint8Array(0);
  return { bytes, isEncoded: true, isTruncated: stored < size, transferredBytes: size };
}

function harTimings(row: SqlRow): HarExchangeTimings {
  const stages = parsed<(number | null)[]>(row["timings"]) ?? [];
  const stage = (place: number): number | undefined => stages[place] ?? undefined;
  return {
    blocked: stage(0),
    dns: stage(1),
    connect: stage(2),
    tls: stage(3),
    send: stage(4),
    wait: stage(5),
    receive: stage(6),
  };
}
