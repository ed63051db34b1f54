// Tested by stream-store.test.ts
import type { ExchangeView } from "#exchange/exchange.ts";
import type { ReaderPool } from "./reader-pool.ts";
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
import type { WriterClient } from "./writer-client.ts";

/** The streams' face on the proxy thread, over the threads of the traffic store. */
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
    const request = { op: "streams", query, sessions: this.#writer.sessions } as const;
    return (await this.#readers.ask("quick", request, signal)) as { streams: StreamRow[]; total: number };
  }

  async listGroups(query: StreamGroupQuery, signal?: AbortSignal): Promise<{ groups: StreamGroup[]; total: number }> {
    const request = { op: "streamGroups", query, sessions: this.#writer.sessions } as const;
    return (await this.#readers.ask("scan", request, signal)) as { groups: StreamGroup[]; total: number };
  }

  async getStream(id: string): Promise<StreamRow | undefined> {
    const request = { op: "stream", id, sessions: this.#writer.sessions } as const;
    return (await this.#readers.ask("quick", request)) as StreamRow | undefined;
  }

  async listFrames(query: FrameQuery, signal?: AbortSignal): Promise<{ frames: StoredFrame[]; total: number }> {
    const request = { op: "frames", query, sessions: this.#writer.sessions } as const;
    const lane = query.search === undefined || query.search === "" ? "quick" : "scan";
    return (await this.#readers.ask(lane, request, signal)) as { frames: StoredFrame[]; total: number };
  }

  async frameBytes(streamId: string, ordinal: number): Promise<Buffer | undefined> {
    const request = { op: "frameBytes", id: streamId, ordinal, sessions: this.#writer.sessions } as const;
    const { bytes } = (await this.#readers.ask("quick", request)) as { bytes?: Uint8Array };
    return bytes === undefined ? undefined : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  async clear(kind: StreamKind): Promise<void> {
    await this.#writer.call({ op: "clearStreams", kind: STREAM_KINDS.indexOf(kind) });
  }

  async stats(kind: StreamKind): Promise<StreamStats> {
    const request = { op: "streamStats", kind, sessions: this.#writer.sessions } as const;
    return (await this.#readers.ask("quick", request)) as StreamStats;
  }

  onOpened(listener: (exchange: ExchangeView) => void): void {
    this.#writer.frames.onOpened(listener);
  }

  onFrame(listener: FrameListener): void {
    this.#writer.frames.onFrame(listener);
  }
}
