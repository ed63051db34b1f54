import type { ExchangeView } from "#exchange/exchange.ts";
import type { ReaderPool } from "../read/reader-pool.ts";
import { STREAM_KINDS } from "./stream-message.ts";
import type {
  FrameListener,
  FrameQuery,
  StoredFrame,
  StreamGroup,
  StreamGroupQuery,
  StreamKind,
  StreamQuery,
  StreamRecorder,
  StreamRow,
  StreamStats,
  StreamStore,
} from "./stream-store.ts";
import type { WriterClient } from "../write/writer-client.ts";

/** The proxy thread's side of the stream tables. */
export class ThreadedStreamStore implements StreamStore {
  readonly #writer: WriterClient;
  readonly #readers: ReaderPool;

  constructor(writer: WriterClient, readers: ReaderPool) {
    this.#writer = writer;
    this.#readers = readers;
  }

  open(exchange: ExchangeView, kind: StreamKind): StreamRecorder {
    return this.#writer.frames.open(exchange, kind);
  }

  async listStreams(query: StreamQuery, signal?: AbortSignal): Promise<{ streams: StreamRow[]; total: number }> {
    return await this.#readers.ask("quick", () => ({ op: "streams", query, sessions: this.#sessions }), signal);
  }

  async listGroups(query: StreamGroupQuery, signal?: AbortSignal): Promise<{ groups: StreamGroup[]; total: number }> {
    return await this.#readers.ask("scan", () => ({ op: "streamGroups", query, sessions: this.#sessions }), signal);
  }

  async getStream(id: string): Promise<StreamRow | undefined> {
    return await this.#readers.ask("quick", () => ({ op: "stream", id, sessions: this.#sessions }));
  }

  async listFrames(query: FrameQuery, signal?: AbortSignal): Promise<{ frames: StoredFrame[]; total: number }> {
    const reader = query.search === undefined || query.search === "" ? "quick" : "scan";
    return await this.#readers.ask(reader, () => ({ op: "frames", query, sessions: this.#sessions }), signal);
  }

  async frameBytes(streamId: string, ordinal: number): Promise<Buffer | undefined> {
    const question = () => ({ op: "frameBytes", id: streamId, ordinal, sessions: this.#sessions }) as const;
    const { bytes } = await this.#readers.ask<{ bytes?: Uint8Array }>("quick", question);
    return bytes === undefined ? undefined : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  async clear(kind: StreamKind): Promise<void> {
    await this.#writer.call({ op: "clearStreams", kind: STREAM_KINDS.indexOf(kind) });
  }

  async stats(kind: StreamKind): Promise<StreamStats> {
    return await this.#readers.ask("quick", () => ({ op: "streamStats", kind, sessions: this.#sessions }));
  }

  onOpened(listener: (exchange: ExchangeView) => void): void {
    this.#writer.frames.onOpened(listener);
  }

  onFrame(listener: FrameListener): void {
    this.#writer.frames.onFrame(listener);
  }

  get #sessions(): WriterClient["sessions"] {
    return this.#writer.sessions;
  }
}
