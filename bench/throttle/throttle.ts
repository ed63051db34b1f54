/**
 * The accuracy of throttling: Weir in a process of its own, origin and clients in this one.
 * For each profile the bandwidth of one and of eight concurrent transfers, down and up; the latency of sequential
 * requests, minus their time without throttling; and a change during a transfer. Prints the configured value,
 * the measured value, and the difference.
 *
 * Latency is the difference of two lower quartiles, because disturbances only add time: of requests to a throttled
 * host, and alternating with them of requests to another host that the client sends after a pause of the same length,
 * because a process takes longer for the same work after a pause.
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

const PROFILES: readonly LineUnderTest[] = [
  { name: "50 KB/s", download_bps: 50_000, upload_bps: 20_000, latency_ms: 500 },
  { name: "400 KB/s", download_bps: 400_000, upload_bps: 200_000, latency_ms: 200 },
  { name: "1 MB/s", download_bps: 1_000_000, upload_bps: 500_000, latency_ms: 100 },
  { name: "2 MB/s", download_bps: 2_000_000, upload_bps: 500_000, latency_ms: 20 },
  { name: "10 MB/s", download_bps: 10_000_000, upload_bps: 5_000_000, latency_ms: 30 },
  { name: "50 MB/s", download_bps: 50_000_000, upload_bps: 50_000_000, latency_ms: 5 },
];
const CONCURRENT = 8;
/** Duration of a latency measurement, and its minimum number of requests of each kind. */
const LATENCY_SECONDS = 8;
const MIN_LATENCY_REQUESTS = 15;
/** Both are loopback names. */
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
    await measureProfiles(transfers, seconds);
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

async function measureProfiles(transfers: Transfers, seconds: number): Promise<void> {
  // The first exchanges of a process take a fifth of a second longer, whatever the profile.
  await transfers.warmUp();
  for (const profile of PROFILES) {
    const { latency_ms: latencyMs, name, download_bps, upload_bps } = profile;
    await transfers.throttle({ name, download_bps, upload_bps, enabled: true });
    print(name, "down, 1 transfer", download_bps, await transfers.down(1, download_bps * seconds));
    print(
      name,
      `down, ${CONCURRENT} concurrent`,
      download_bps,
      await transfers.down(CONCURRENT, download_bps * seconds),
    );
    print(name, "up, 1 transfer", upload_bps, await transfers.up(1, upload_bps * seconds));
    print(name, `up, ${CONCURRENT} concurrent`, upload_bps, await transfers.up(CONCURRENT, upload_bps * seconds));
    await transfers.throttle({ name, latency_ms: latencyMs, hosts: [LINE_HOST], enabled: true });
    print(name, "latency ms", latencyMs, await transfers.latencyMs(latencyMs));
  }
}

/** Half of a transfer with one profile, the other half with one that is four times as fast. */
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

function print(name: string, what: string, configured: number, measured: number): void {
  const difference = ((measured / configured - 1) * 100).toFixed(2).padStart(7);
  const columns = [
    name.padEnd(10),
    what.padEnd(18),
    String(configured).padStart(9),
    measured.toFixed(measured < 1000 ? 1 : 0).padStart(10),
  ];
  console.log(`${columns.join("  ")}  ${difference} %`);
}

/** `/down/<bytes>` sends that many; every other path counts received bytes. */
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
  /** New connections would add more noise than the measured difference. */
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

  /** Bytes per second of `count` concurrent responses with `bytes` in total. */
  async down(count: number, bytes: number): Promise<number> {
    const each = Math.round(bytes / count);
    const startedMs = performance.now();
    await Promise.all(Array.from({ length: count }, () => this.#exchange("GET", `/down/${each}`, 0)));
    return (each * count) / ((performance.now() - startedMs) / 1000);
  }

  /** The same for request bodies. */
  async up(count: number, bytes: number): Promise<number> {
    const each = Math.round(bytes / count);
    const startedMs = performance.now();
    await Promise.all(Array.from({ length: count }, () => this.#exchange("POST", "/up", each)));
    return (each * count) / ((performance.now() - startedMs) / 1000);
  }

  /** Milliseconds that throttling adds to small requests. */
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
    const responded = once(outgoing, "response") as Promise<[IncomingMessage]>;
    for (let leftBytes = bytes; leftBytes > 0; leftBytes -= PIECE.length) {
      const isTaken = outgoing.write(leftBytes < PIECE.length ? PIECE.subarray(0, leftBytes) : PIECE);
      if (!isTaken) await once(outgoing, "drain");
    }
    outgoing.end();
    const [response] = await responded;
    for await (const _piece of response);
  }
}

function lowerQuartile(values: readonly number[]): number {
  return values.toSorted((left, right) => left - right)[values.length >> 2] ?? Number.NaN;
}

await measure(Number(process.argv[2] ?? "3"));
