/**
 * How close the throttle comes to its profile: a whole Weir in a process of its own, an origin and clients in this one.
 * For each line the bandwidth of one and of eight transfers at a time, down and up; the latency of requests one after
 * the other, less what they take without it; and last a change while a transfer runs. Prints what was asked for, what
 * came, and the difference.
 *
 * Latency is the difference of two lower quartiles, since whatever disturbs a machine only adds: of requests to a host on
 * the line, and in turn with them of requests to a host beside it that the client sends after a rest of the same length,
 * since processes that rested take longer for the same work.
 *
 *   node bench/throttle/throttle.ts [seconds=3]
 */
import { once } from "node:events";
import { Agent, createServer, request } from "node:http";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { performance } from "node:perf_hooks";
import { setTimeout as delay } from "node:timers/promises";
import { startWeir } from "../ui/running-weir.ts";
import type { RunningWeir } from "../ui/running-weir.ts";

interface LineUnderTest {
  readonly name: string;
  readonly download_bps: number;
  readonly upload_bps: number;
  readonly latency_ms: number;
}

const LINES: readonly LineUnderTest[] = [
  { name: "50 KB/s", download_bps: 50_000, upload_bps: 20_000, latency_ms: 500 },
  { name: "400 KB/s", download_bps: 400_000, upload_bps: 200_000, latency_ms: 200 },
  { name: "1 MB/s", download_bps: 1_000_000, upload_bps: 500_000, latency_ms: 100 },
  { name: "2 MB/s", download_bps: 2_000_000, upload_bps: 500_000, latency_ms: 20 },
  { name: "10 MB/s", download_bps: 10_000_000, upload_bps: 5_000_000, latency_ms: 30 },
  { name: "50 MB/s", download_bps: 50_000_000, upload_bps: 50_000_000, latency_ms: 5 },
];
const AT_ONCE = 8;
/** So long a latency is measured, with at least so many requests of each kind. */
const LATENCY_SECONDS = 8;
const MIN_LATENCY_REQUESTS = 15;
/** Both are this machine's loopback. */
const LINE_HOST = "127.0.0.1";
const HOST_BESIDE = "127.0.0.2";
const PIECE = Buffer.alloc(65_536, "t");

async function measure(seconds: number): Promise<void> {
  const origin = await originAt(LINE_HOST, 0);
  const { port } = origin.address() as AddressInfo;
  const beside = await originAt(HOST_BESIDE, port);
  {
    await using weir = await startWeir();
    const transfers = new Transfers(weir, port);
    await measureLines(transfers, seconds);
    await measureChange(transfers, seconds);
    transfers.close();
  }
  for (const server of [origin, beside]) {
    server.close();
    server.closeAllConnections();
  }
}

async function originAt(host: string, port: number): Promise<Server> {
  const server = createServer(response);
  server.listen(port, host);
  await once(server, "listening");
  return server;
}

async function measureLines(transfers: Transfers, seconds: number): Promise<void> {
  // The first exchanges of a process take longer by a fifth of a second, whatever the line.
  await transfers.warmUp();
  for (const line of LINES) {
    const { latency_ms: latencyMs, name, download_bps, upload_bps } = line;
    await transfers.throttle({ name, download_bps, upload_bps, enabled: true });
    print(name, "down, 1 transfer", download_bps, await transfers.down(1, download_bps * seconds));
    print(name, `down, ${AT_ONCE} at once`, download_bps, await transfers.down(AT_ONCE, download_bps * seconds));
    print(name, "up, 1 transfer", upload_bps, await transfers.up(1, upload_bps * seconds));
    print(name, `up, ${AT_ONCE} at once`, upload_bps, await transfers.up(AT_ONCE, upload_bps * seconds));
    await transfers.throttle({ name, latency_ms: latencyMs, hosts: [LINE_HOST], enabled: true });
    print(name, "latency ms", latencyMs, await transfers.latencyMs(latencyMs));
  }
}

/** Half of a transfer on one line, the other half on one that is four times as fast. */
async function measureChange(transfers: Transfers, seconds: number): Promise<void> {
  const slow = 500_000;
  const fast = 2_000_000;
  await transfers.throttle({ download_bps: slow, enabled: true });
  const startedMs = performance.now();
  const timer = setTimeout(() => void transfers.throttle({ download_bps: fast, enabled: true }), seconds * 1000);
  await transfers.down(1, (slow + fast) * seconds);
  clearTimeout(timer);
  print("changed", "seconds", 2 * seconds, (performance.now() - startedMs) / 1000);
}

function print(name: string, what: string, asked: number, got: number): void {
  const difference = ((got / asked - 1) * 100).toFixed(2).padStart(7);
  const columns = [
    name.padEnd(10),
    what.padEnd(18),
    String(asked).padStart(9),
    got.toFixed(got < 1000 ? 1 : 0).padStart(10),
  ];
  console.log(`${columns.join("  ")}  ${difference} %`);
}

/** `/down/<bytes>` sends so many, everything else counts what comes. */
function response(incoming: IncomingMessage, response: ServerResponse): void {
  const [, bytesText] = /^\/down\/(\d+)$/.exec(incoming.url ?? "") ?? [];
  incoming.resume();
  if (bytesText === undefined) {
    incoming.on("end", () => response.end());
    return;
  }
  let leftBytes = Number(bytesText);
  response.setHeader("content-length", leftBytes);
  const more = (): void => {
    while (leftBytes > 0) {
      const piece = leftBytes < PIECE.length ? PIECE.subarray(0, leftBytes) : PIECE;
      leftBytes -= piece.length;
      if (!response.write(piece)) {
        response.once("drain", more);
        return;
      }
    }
    response.end();
  };
  more();
}

/** Clients of the proxy under test. */
class Transfers {
  readonly #weir: RunningWeir;
  readonly #originPort: number;
  /** New connections would blur latencies by more than what is looked for. */
  readonly #agent = new Agent({ keepAlive: true });

  constructor(weir: RunningWeir, originPort: number) {
    this.#weir = weir;
    this.#originPort = originPort;
  }

  close(): void {
    this.#agent.destroy();
  }

  async throttle(profile: object): Promise<void> {
    await this.#weir.call("POST", "/throttle", profile);
  }

  /** Bytes per second of `count` answers at a time, `bytes` together. */
  async down(count: number, bytes: number): Promise<number> {
    const each = Math.round(bytes / count);
    const startedMs = performance.now();
    await Promise.all(Array.from({ length: count }, () => this.#exchange("GET", `/down/${each}`, 0)));
    return (each * count) / ((performance.now() - startedMs) / 1000);
  }

  /** The same of requests. */
  async up(count: number, bytes: number): Promise<number> {
    const each = Math.round(bytes / count);
    const startedMs = performance.now();
    await Promise.all(Array.from({ length: count }, () => this.#exchange("POST", "/up", each)));
    return (each * count) / ((performance.now() - startedMs) / 1000);
  }

  /** Milliseconds that the line adds to small requests. */
  async latencyMs(restMs: number): Promise<number> {
    const onLine: number[] = [];
    const beside: number[] = [];
    const pairs = Math.max(MIN_LATENCY_REQUESTS, Math.round((LATENCY_SECONDS * 1000) / 2 / restMs));
    for (let count = 0; count < pairs; count += 1) {
      await delay(restMs);
      beside.push(await this.#smallMs(HOST_BESIDE));
      onLine.push(await this.#smallMs(LINE_HOST));
    }
    return lowerQuartile(onLine) - lowerQuartile(beside);
  }

  async warmUp(): Promise<void> {
    for (let count = 0; count < MIN_LATENCY_REQUESTS; count += 1) await this.#smallMs(LINE_HOST);
  }

  async #smallMs(host: string): Promise<number> {
    const startedMs = performance.now();
    await this.#exchange("GET", "/small", 0, host);
    return performance.now() - startedMs;
  }

  async #exchange(method: string, path: string, bytes: number, host = LINE_HOST): Promise<void> {
    const origin = `${host}:${this.#originPort}`;
    const outgoing = request({
      host: "127.0.0.1",
      port: this.#weir.proxyPort,
      method,
      path: `http://${origin}${path}`,
      headers: { host: origin, ...(bytes > 0 ? { "content-length": bytes } : {}) },
      agent: this.#agent,
    });
    const answered = once(outgoing, "response") as Promise<[IncomingMessage]>;
    for (let leftBytes = bytes; leftBytes > 0; leftBytes -= PIECE.length) {
      const isTaken = outgoing.write(leftBytes < PIECE.length ? PIECE.subarray(0, leftBytes) : PIECE);
      if (!isTaken) await once(outgoing, "drain");
    }
    outgoing.end();
    const [response] = await answered;
    for await (const _piece of response);
  }
}

function lowerQuartile(values: readonly number[]): number {
  return values.toSorted((left, right) => left - right)[values.length >> 2] ?? Number.NaN;
}

await measure(Number(process.argv[2] ?? "3"));
