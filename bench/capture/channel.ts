import { connect, type Socket } from "node:net";
import { connect as connectTls, type SecureContext, type TLSSocket } from "node:tls";
import { once } from "node:events";
import { ResponseReader } from "@headworks/http1";
import { Socks5ClientHandshake } from "@headworks/socks5";
import type { LoadJob } from "./load-job.ts";

/** One connection through the proxy; call `request` again only after its promise has settled. */
export interface Channel {
  readonly isClosed: boolean;
  /** Rejects for any response other than the expected one. */
  request(number: number): Promise<void>;
  end(): void;
}

/** Fields similar to a browser's. */
export const FIELDS = [
  "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36",
  "Accept: application/json",
  "Accept-Language: en-GB,en;q=0.9",
  "Cookie: session=8f14e45fceea167a5a36dedd4bea2543; theme=dark",
  "Referer: https://www.example.com/shop/items?page=2",
  "\r\n",
].join("\r\n");

/** The response differs from the expected one. */
export class LoadError extends Error {}

/** Uses HTTP/1.1 with the origin. */
export class Http1Channel implements Channel {
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

  static async open(job: LoadJob, context: SecureContext, expected: Buffer): Promise<Http1Channel> {
    const raw = await openToProxy(job);
    if (job.bySocks5 === true) await openBySocks5(raw, job);
    const socket = job.scheme === "http" ? raw : await openTls(raw, job, context, "http/1.1");
    return new Http1Channel(job, socket, expected);
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
          // The beginning of an unexpected response is enough.
          if (this.#bytes <= this.#expected.length) this.#firstBody?.push(Buffer.from(piece));
        },
        onEnd: () => this.#responded(),
        onError: (error) => this.#fail(new LoadError(`The response cannot be parsed: ${error.message}`)),
      },
      { lenient: true },
    );
    socket.on("data", (chunk: Buffer) => void this.#reader.read(chunk));
    socket.on("end", () => this.#reader.end());
    socket.on("error", (error) => this.#fail(error));
    socket.on("close", () => {
      this.isClosed = true;
      this.#fail(new LoadError("The proxy closed the connection during an exchange"));
    });
  }

  request(number: number): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#settled = { resolve, reject };
    this.#bytes = 0;
    this.#reader.expect("GET");
    const { scheme, bySocks5, originHost, originPort } = this.#job;
    const targetPrefix = scheme === "http" && bySocks5 !== true ? `http://${originHost}:${originPort}` : "";
    this.#socket.write(`GET ${targetPrefix}/${this.#job.bodyBytes}?n=${number} HTTP/1.1\r\n${this.#head}`, "latin1");
    return promise;
  }

  end(): void {
    this.isClosed = true;
    this.#socket.end();
  }

  #responded(): void {
    const settled = this.#settled;
    this.#settled = undefined;
    const first = this.#firstBody;
    this.#firstBody = undefined;
    if (this.#closesAfter) this.end();
    if (this.#status !== 200 || this.#bytes !== this.#job.bodyBytes) {
      const text = first === undefined ? "" : `: ${Buffer.concat(first).toString("latin1").slice(0, 300)}`;
      settled?.reject(new LoadError(`Response ${this.#status} with ${this.#bytes} bytes${text}`));
    } else if (first && !Buffer.concat(first).equals(this.#expected)) {
      settled?.reject(new LoadError("The response's body was changed"));
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

/** Opens a tunnel by name; the origin sends nothing first, so nothing follows the reply. */
async function openBySocks5(raw: Socket, { originHost, originPort }: LoadJob): Promise<void> {
  const handshake = new Socks5ClientHandshake(
    { host: { kind: "name", name: originHost }, port: originPort },
    undefined,
  );
  raw.write(handshake.start());
  for (;;) {
    const [piece] = (await once(raw, "data")) as [Buffer];
    const { send, outcome } = handshake.read(piece);
    if (outcome.kind === "open") return;
    if (outcome.kind === "failed") throw new LoadError(`SOCKS5 was refused: ${JSON.stringify(outcome.failure)}`);
    if (send.length > 0) raw.write(send);
  }
}

/** Number of loopback addresses of the load client. */
const SOURCES = 200;
let opened = 0;

/**
 * The load uses its own addresses, because mockttp mistakes a client whose port equals that of one of its own connections
 * to the origin for itself, and reports a loop. It uses many, because the system searches a free port of an address among
 * all those in TIME_WAIT, which took tens of milliseconds after some thousand connections from one address.
 */
async function openToProxy({ proxyPort }: LoadJob): Promise<Socket> {
  opened += 1;
  const localAddress = `127.0.0.${2 + (opened % SOURCES)}`;
  const raw = connect({ port: proxyPort, host: "127.0.0.1", localAddress, noDelay: true });
  raw.on("error", () => undefined);
  await once(raw, "connect");
  return raw;
}

/** A TLS session with the origin, intercepted by the proxy, inside a CONNECT tunnel. */
export async function openSecure(
  job: LoadJob,
  context: SecureContext,
  protocol: "h2" | "http/1.1",
): Promise<TLSSocket> {
  return await openTls(await openToProxy(job), job, context, protocol);
}

async function openTls(
  raw: Socket,
  { originHost, originPort }: LoadJob,
  context: SecureContext,
  protocol: "h2" | "http/1.1",
): Promise<TLSSocket> {
  const authority = `${originHost}:${originPort}`;
  raw.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\nProxy-Connection: keep-alive\r\n\r\n`);
  let response = "";
  while (!response.includes("\r\n\r\n")) {
    const [piece] = (await once(raw, "data")) as [Buffer];
    response += piece.toString("latin1");
  }
  if (!/^HTTP\/1\.[01] 200 /.test(response) || !response.endsWith("\r\n\r\n")) {
    throw new LoadError(`CONNECT failed with ${JSON.stringify(response.slice(0, 200))}`);
  }
  const offered = protocol === "h2" ? { ALPNProtocols: ["h2"] } : {};
  const secure = connectTls({ socket: raw, servername: originHost, secureContext: context, ...offered });
  await once(secure, "secureConnect");
  if (protocol === "h2" && secure.alpnProtocol !== "h2") throw new LoadError("The proxy does not support HTTP/2");
  return secure;
}
