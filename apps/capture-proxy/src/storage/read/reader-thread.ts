import { statSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { parentPort, workerData } from "node:worker_threads";
import { fieldValue, fieldValues } from "@headworks/http1";
import type { BodyPart } from "../capture-store.ts";
import { DecodedBodies } from "./decoded-bodies.ts";
import { storedFields } from "./stored-entry.ts";
import { TrafficReader } from "./traffic-reader.ts";
import { CancelledError, type Cancellation } from "../search/filtered-set.ts";
import { readFilePart } from "../stored-bodies.ts";
import type { TrafficExport } from "../export/traffic-export.ts";
import type { BodyRequest, FromReader, ReaderRequest, ReaderSetup, ToReader } from "./reader-client.ts";
import { StreamReader } from "../streams/stream-reader.ts";

/** Maximum bytes per range request. */
const MAX_RANGE_BYTES = 16_777_216;
/** Indexing alternates between running and resting for this long, so it takes at most half a core. */
const INDEXING_MS = 10;
/** Interval of checks for unindexed entries. */
const INDEX_CHECK_MS = 10_000;

/** Handles messages on a reader thread; requests run interleaved. */
export class ReaderThread {
  readonly #setup: ReaderSetup;
  readonly #post: (message: FromReader, transfer: ArrayBuffer[]) => void;
  readonly #cancellations = new Map<number, { cancelled: boolean }>();
  readonly #decoded: DecodedBodies;
  readonly #exports = new Map<number, TrafficExport>();
  readonly #indexTimer: NodeJS.Timeout;
  #nextExport = 1;
  #isIndexing = false;
  #reader: TrafficReader;
  #streams: StreamReader | undefined;

  constructor(setup: ReaderSetup, post: (message: FromReader, transfer: ArrayBuffer[]) => void) {
    this.#setup = setup;
    this.#post = post;
    this.#decoded = new DecodedBodies(setup.decodedFolder);
    this.#reader = new TrafficReader(setup);
    this.#indexTimer = setInterval(() => this.#checkIndex(), INDEX_CHECK_MS).unref();
  }

  /** Returns false after the last message. */
  receive(message: ToReader): boolean {
    switch (message.kind) {
      case "request":
        void this.#serve(message.id, message.request);
        return true;
      case "cancel": {
        const cancellation = this.#cancellations.get(message.id);
        if (cancellation !== undefined) cancellation.cancelled = true;
        return true;
      }
      case "change":
        this.#reader.note(message);
        return true;
      case "reopen":
        this.#closeStreams();
        this.#reader.close();
        this.#reader = new TrafficReader(this.#setup);
        return true;
      case "close":
        clearInterval(this.#indexTimer);
        this.#closeStreams();
        this.#reader.close();
        this.#decoded.close();
        return false;
    }
  }

  async #serve(id: number, request: ReaderRequest): Promise<void> {
    const cancellation = { cancelled: false };
    this.#cancellations.set(id, cancellation);
    try {
      const value = await this.#response(request, cancellation);
      this.#post({ kind: "response", id, value }, transferable(value));
    } catch (error) {
      const known = error instanceof Error ? error : new Error(String(error));
      this.#post(
        { kind: "failed", id, name: cancellation.cancelled ? CancelledError.name : known.name, message: known.message },
        [],
      );
    } finally {
      this.#cancellations.delete(id);
      if (this.#reader.index?.isWanted === true) void this.#keepIndexing();
    }
  }

  #checkIndex(): void {
    this.#reader.index?.planUpdate();
    if (this.#reader.index?.isWanted === true) void this.#keepIndexing();
  }

  /** Indexes while no requests are pending. */
  async #keepIndexing(): Promise<void> {
    if (this.#isIndexing) return;
    this.#isIndexing = true;
    do await sleep(INDEXING_MS);
    while (this.#cancellations.size === 0 && this.#reader.index?.step(performance.now() + INDEXING_MS) === true);
    this.#isIndexing = false;
  }

  async #response(request: ReaderRequest, cancellation: Cancellation): Promise<unknown> {
    switch (request.op) {
      case "rows": {
        const { rows, total, isComplete } = await this.#reader.rows(request, cancellation);
        return { json: jsonBytes({ total, total_complete: isComplete, rows }), total };
      }
      case "entries": {
        const { page, ...totals } = await this.#reader.entries(request, cancellation);
        return { json: jsonBytes(page), ...totals };
      }
      case "latest":
        return await this.#reader.latest(request.scope, request.limit, request.filter, cancellation);
      case "count":
        return await this.#reader.count(request.scope, request.filter, cancellation);
      case "summary":
        return await this.#reader.summary(request.scope, request.filter, cancellation);
      case "tree":
        return await this.#reader.tree(request.scope, request.filter, request.ofHost, cancellation);
      case "values":
        return this.#reader.values(request.scope, request.field, request.prefix, request.limit);
      case "preview":
        return await this.#reader.preview(request, cancellation);
      case "row":
        return this.#reader.snapshot(request.id, request.sessions);
      case "entry":
        return await this.#reader.entryReader.entry(
          request.id,
          request.sessions,
          request.includeBodies,
          request.decompressed,
        );
      case "body":
        return await this.#body(request);
      case "exportOpen": {
        const document = await this.#reader.openExport(request, cancellation);
        this.#exports.set(this.#nextExport, document);
        return { handle: this.#nextExport++, total: document.total };
      }
      case "exportNext":
        return { bytes: this.#exports.get(request.handle)?.next() };
      case "exportClose":
        return this.#exports.delete(request.handle);
      case "streams":
        return this.#streamReader.listStreams(request.query, request.sessions);
      case "streamGroups":
        return this.#streamReader.listGroups(request.query, request.sessions);
      case "stream":
        return this.#streamReader.getStream(request.id, request.sessions);
      case "frames":
        return await this.#streamReader.listFrames(request.query, request.sessions, cancellation);
      case "frameBytes":
        return { bytes: this.#streamReader.frameBytes(request.id, request.ordinal, request.sessions) };
      case "streamStats":
        return this.#streamReader.stats(request.kind, request.sessions);
    }
  }

  /** Opened lazily. */
  get #streamReader(): StreamReader {
    return (this.#streams ??= new StreamReader(this.#setup.path));
  }

  #closeStreams(): void {
    this.#streams?.close();
    this.#streams = undefined;
  }

  async #body(request: BodyRequest): Promise<BodyPart | undefined> {
    const { side, start } = request;
    const row = this.#reader.entryReader.byId(request.id, request.sessions)?.row;
    if (row === undefined) return undefined;
    const seq = Number(row["seq"]);
    const fields = storedFields(row[`${side}_fields`]) ?? [];
    const type = row[`${side}_type`];
    // Imported entries may have a type without a field.
    const contentType = fieldValue(fields, "content-type") ?? (typeof type === "string" ? type : null);
    const isCut = Number(row[`${side}_body_stored`]) < Number(row[`${side}_body_size`]);
    const source = this.#reader.bodies.locate(seq, side) ?? new Uint8Array(0);
    if (!request.decoded && !request.utf8) {
      const totalBytes =
        typeof source === "string" ? (statSync(source, { throwIfNoEntry: false })?.size ?? 0) : source.length;
      const end = rangeEnd(request, totalBytes);
      const bytes = typeof source === "string" ? readFilePart(source, start, end) : source.slice(start, end);
      return { totalBytes, start, bytes: bytes ?? new Uint8Array(0), contentType, partial: isCut, undecodable: false };
    }
    const form = await this.#decoded.get({
      key: `${seq} ${side} ${request.decoded} ${request.utf8}`,
      source,
      contentEncoding: request.decoded ? fieldValues(fields, "content-encoding") : [],
      toUtf8From: request.utf8 ? (contentType ?? "text/plain") : undefined,
    });
    const bytes = form.read(start, rangeEnd(request, form.totalBytes));
    const { totalBytes, problem } = form;
    const undecodable = problem !== undefined;
    return { totalBytes, start, bytes, contentType, partial: problem === "partial" || isCut, undecodable };
  }
}

function rangeEnd(request: BodyRequest, totalBytes: number): number {
  return Math.max(request.start, Math.min(request.end ?? totalBytes, totalBytes, request.start + MAX_RANGE_BYTES));
}

function jsonBytes(value: unknown): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(value));
}

/** Transfers the bytes; views of pooled memory must be copied. */
function transferable(value: unknown): ArrayBuffer[] {
  if (typeof value !== "object" || value === null) return [];
  const bytes = "json" in value ? value.json : "bytes" in value ? value.bytes : undefined;
  if (!(bytes instanceof Uint8Array) || !(bytes.buffer instanceof ArrayBuffer)) return [];
  return bytes.byteLength === bytes.buffer.byteLength ? [bytes.buffer] : [];
}

// The entry of the thread; importing the class elsewhere has no side effect.
const port = parentPort;
if (port !== null) {
  const post = (message: FromReader, transfer: ArrayBuffer[]): void => port.postMessage(message, transfer);
  const thread = new ReaderThread(workerData as ReaderSetup, post);
  port.on("message", (message: ToReader) => {
    if (!thread.receive(message)) port.close();
  });
  post({ kind: "ready" }, []);
}
