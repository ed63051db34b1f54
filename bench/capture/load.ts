import { connect, type Socket } from "node:net";
import { connect as connectTls, createSecureContext, type SecureContext } from "node:tls";
import { once } from "node:events";
import { ResponseReader } from "@headworks/http1";
import { answeredBody } from "./answered-body.ts";

/**
 * The load client, a process of its own: raw sockets through the proxy, one request in flight per connection, every
 * answer checked for status and length, the first of each connection for its content. Driven over IPC: `open`, then
 * any number of `run`s, each answered.
 */
export interface LoadJob {
  readonly proxyPort: number;
  readonly scheme: "http" | "https";
  readonly originHost: string;
  readonly originPort: number;
  readonly bodyBytes: number;
  readonly connections: number;
  /** Each request on a new connection (TCP, CONNECT, TLS without resumption) instead of kept ones. */
  readonly isNewConnectionEach: boolean;
  /** The proxy's CA, PEM. */
  readonly caPem: string;
  /** What the proxy is to change in every body; both texts have the same length. */
  readonly edit?: BodyEdit | undefined;
}

/** Every occurrence of a text is to come as another one of the same length. */
export interface BodyEdit {
  readonly from: string;
  readonly to: string;
}

export type LoadCommand =
  | { readonly do: "open"; readonly job: LoadJob }
  | { readonly do: "run"; readonly milliseconds: number; readonly requests: number }
  | { readonly do: "close" };

export interface LoadResult {
  readonly requests: number;
  readonly elapsedMs: number;
  /** Connections opened during the run; not 0 in a kept-alive row means that the proxy closed some. */
  readonly opened: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export type LoadReply = { readonly result: LoadResult } | { readonly problem: string };

const FIELDS = [
  "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36",
  "Accept: application/json",
  "Accept-Language: en-GB,en;q=0.9",
  "Cookie: session=8f14e45fceea167a5a36dedd4bea2543; theme=dark",
  "Referer: https://www.example.com/shop/items?page=2",
  "\r\n",
].join("\r\n");

class LoadError extends Error {}

/** One connection through the proxy; `request` may be called again when its promise is settled. */
class Channel {
  readonly #job: LoadJob;
  readonly #socket: Socket;
  readonly #reader: ResponseReader;
  readonly #head: string;
  readonly #expected: Buffer;
  #settled: { resolve: () => void; reject: (error: Error) => void } | undefined;
  #status = 0;
  #bytes = 0;
  #firstBody: Buffer[] | undefined = [];
  #closesAfter = false;
  isClosed = false;

  static async open(job: LoadJob, context: SecureContext, expected: Buffer): Promise<Channel> {
    // From an address of its own: mockttp takes a client whose port is by chance that of one of its own connections to
    // the origin for itself, and refuses to go round in circles.
    const raw = connect({ port: job.proxyPort, host: "127.0.0.1", localAddress: "127.0.0.2", noDelay: true });
    raw.on("error", () => undefined);
    await once(raw, "connect");
    if (job.scheme === "http") return new Channel(job, raw, expected);
    const authority = `${job.originHost}:${job.originPort}`;
    raw.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\nProxy-Connection: keep-alive\r\n\r\n`);
    let answer = "";
    while (!answer.includes("\r\n\r\n")) {
      const [piece] = (await once(raw, "data")) as [Buffer];
      answer += piece.toString("latin1");
    }
    if (!/^HTTP\/1\.[01] 200 /.test(answer) || !answer.endsWith("\r\n\r\n")) {
      throw new LoadError(`CONNECT was answered with ${JSON.stringify(answer.slice(0, 200))}`);
    }
    const secure = connectTls({ socket: raw, servername: job.originHost, secureContext: context });
    await once(secure, "secureConnect");
    return new Channel(job, secure, expected);
  }

  private constructor(job: LoadJob, socket: Socket, expected: Buffer) {
    this.#job = job;
    this.#socket = socket;
    this.#expected = expected;
    const authority = `${job.originHost}:${job.originPort}`;
    this.#head = `Host: ${authority}\r\n${FIELDS}`;
    this.#reader = new ResponseReader(
      {
        onInformational: () => undefined,
        onHead: (head) => {
          this.#status = head.status;
          this.#closesAfter = !head.keepAlive;
        },
        onData: (piece) => {
          this.#bytes += piece.length;
          // An unexpected answer may be long, and its beginning tells enough.
          if (this.#bytes <= this.#expected.length) this.#firstBody?.push(Buffer.from(piece));
        },
        onEnd: () => this.#answered(),
        onError: (error) => this.#fail(new LoadError(`The answer cannot be read: ${error.message}`)),
      },
      { lenient: true },
    );
    socket.on("data", (chunk: Buffer) => void this.#reader.read(chunk));
    socket.on("end", () => this.#reader.end());
    socket.on("error", (error) => this.#fail(error));
    socket.on("close", () => {
      this.isClosed = true;
      this.#fail(new LoadError("The proxy closed the connection in the middle of an exchange"));
    });
  }

  request(number: number): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#settled = { resolve, reject };
    this.#bytes = 0;
    this.#reader.expect("GET");
    const place = this.#job.scheme === "http" ? `http://${this.#job.originHost}:${this.#job.originPort}` : "";
    this.#socket.write(`GET ${place}/${this.#job.bodyBytes}?n=${number} HTTP/1.1\r\n${this.#head}`, "latin1");
    return promise;
  }

  end(): void {
    this.isClosed = true;
    this.#socket.end();
  }

  #answered(): void {
    const settled = this.#settled;
    this.#settled = undefined;
    const first = this.#firstBody;
    this.#firstBody = undefined;
    if (this.#closesAfter) this.end();
    if (this.#status !== 200 || this.#bytes !== this.#job.bodyBytes) {
      const text = first === undefined ? "" : `: ${Buffer.concat(first).toString("latin1").slice(0, 300)}`;
      settled?.reject(new LoadError(`Answer ${this.#status} with ${this.#bytes} bytes${text}`));
    } else if (first && !Buffer.concat(first).equals(this.#expected)) {
      settled?.reject(new LoadError("The answer's body was changed on its way"));
    } else {
      settled?.resolve();
    }
  }

  #fail(error: Error): void {
    const settled = this.#settled;
    this.#settled = undefined;
    settled?.reject(error);
  }
}

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

  /** Opens every connection and sends one request on each, so that a run finds everything set up. */
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

  async #exchange(index: number): Promise<void> {
    let channel = this.#channels[index];
    if (channel === undefined || channel.isClosed) {
      this.#opened += 1;
      channel = await Channel.open(this.#job, this.#context, this.#expected);
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
