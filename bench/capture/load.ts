import { createSecureContext, type SecureContext } from "node:tls";
import { answeredBody } from "./response-body.ts";
import { Http1Channel, type Channel } from "./channel.ts";
import { Http2Channel } from "./http2-channel.ts";
import type { LoadJob } from "./load-job.ts";
import { WebSocketChannel } from "./websocket-channel.ts";

/**
 * Commands for the load client, a process of its own: raw sockets through the proxy, one request in flight per connection. It
 * checks status and length of each response, and the content of the first one of each connection. Driven over IPC: `open`, then
 * any number of `run`s, each with a reply.
 */
export type LoadCommand =
  | { readonly do: "open"; readonly job: LoadJob }
  | { readonly do: "run"; readonly milliseconds: number; readonly requests: number }
  | { readonly do: "close" };

export interface LoadResult {
  readonly requests: number;
  readonly elapsedMs: number;
  /** Connections opened during the run; not 0 with kept connections means that the proxy closed some. */
  readonly opened: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export type LoadReply = { readonly result: LoadResult } | { readonly problem: string };

class Load {
  readonly #job: LoadJob;
  readonly #context: SecureContext;
  readonly #expected: Buffer;
  #channels: (Channel | undefined)[] = [];
  #sent = 0;
  #opened = 0;

  constructor(job: LoadJob) {
    this.#job = job;
    this.#context = createSecureContext({ ca: job.caPem });
    const { bodyBytes, edit } = job;
    const sent = answeredBody(bodyBytes);
    this.#expected = edit ? Buffer.from(sent.toString("latin1").replaceAll(edit.from, edit.to), "latin1") : sent;
  }

  /** Opens all connections and sends one request on each, to complete the setup before a run. */
  async open(): Promise<void> {
    this.#channels = Array.from({ length: this.#job.connections }, () => undefined);
    if (this.#job.isNewConnectionEach) return;
    for (const index of this.#channels.keys()) await this.#exchange(index);
  }

  async run(milliseconds: number, requests: number): Promise<LoadResult> {
    const latencies: number[] = [];
    this.#opened = 0;
    const startMs = performance.now();
    const endMs = startMs + milliseconds;
    let started = 0;
    const worker = async (index: number): Promise<void> => {
      while (started < requests && performance.now() < endMs) {
        started += 1;
        const sentMs = performance.now();
        await this.#exchange(index);
        latencies.push(performance.now() - sentMs);
      }
    };
    await Promise.all([...this.#channels.keys()].map(worker));
    const elapsedMs = performance.now() - startMs;
    latencies.sort((a, b) => a - b);
    const at = (share: number): number => latencies[Math.floor((latencies.length - 1) * share)] ?? 0;
    return { requests: latencies.length, elapsedMs, opened: this.#opened, p50Ms: at(0.5), p99Ms: at(0.99) };
  }

  close(): void {
    for (const channel of this.#channels) channel?.end();
    this.#channels = [];
  }

  async #openChannel(): Promise<Channel> {
    const { inside } = this.#job;
    const kind = inside === "http2" ? Http2Channel : inside === "websocket" ? WebSocketChannel : Http1Channel;
    return await kind.open(this.#job, this.#context, this.#expected);
  }

  async #exchange(index: number): Promise<void> {
    let channel = this.#channels[index];
    if (channel === undefined || channel.isClosed) {
      this.#opened += 1;
      channel = await this.#openChannel();
    }
    this.#channels[index] = channel;
    await channel.request((this.#sent += 1));
    if (this.#job.isNewConnectionEach) {
      channel.end();
      this.#channels[index] = undefined;
    }
  }
}

let load: Load | undefined;

async function obey(command: LoadCommand): Promise<LoadResult> {
  const nothing: LoadResult = { requests: 0, elapsedMs: 0, opened: 0, p50Ms: 0, p99Ms: 0 };
  if (command.do === "open") {
    load = new Load(command.job);
    await load.open();
    return nothing;
  }
  if (command.do === "run" && load) return load.run(command.milliseconds, command.requests);
  load?.close();
  return nothing;
}

process.on("message", (command: LoadCommand) => {
  obey(command).then(
    (result) => process.send?.({ result } satisfies LoadReply),
    (error: Error) => process.send?.({ problem: error.message } satisfies LoadReply),
  );
});
process.on("disconnect", () => process.exit());
