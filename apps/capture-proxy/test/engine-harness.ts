import { pino } from "pino";
import { CertificateAuthority } from "@headworks/tls-authority";
import { DeadlineSweep } from "@headworks/sockets";
import { CertificateRefusals, LeafContexts } from "#connection/client-tls.ts";
import { ProxyListener } from "#connection/listener.ts";
import type { ProxyServices, TrafficPolicy } from "#connection/proxy-services.ts";
import type { BodySpool } from "#exchange/body.ts";
import type { ExchangeView } from "#exchange/exchange.ts";
import { newGauges } from "#exchange/gauges.ts";
import type { Interceptor, Observer } from "#exchange/phases.ts";
import { Pipeline } from "#exchange/pipeline.ts";
import { Dialer } from "#upstream/dial.ts";
import { IdleOrigins } from "#upstream/idle-origins.ts";
import { OwnListeners } from "#upstream/loop-detector.ts";
import type { ProxyAddress } from "#upstream/proxy-failure.ts";
import { ProxyRoutes } from "#upstream/proxy-route.ts";
import type { ProxyChoices } from "#upstream/proxy-route.ts";
import { newViaPseudonym } from "#upstream/origin-fields.ts";
import { UpstreamTrust } from "#upstream/trust.ts";

/** The data path alone: real sockets, no store, no API; finished exchanges are kept for the test to look at. */
export interface Engine {
  readonly port: number;
  readonly ca: CertificateAuthority;
  readonly finished: ExchangeView[];
  readonly services: ProxyServices;
  /** Who is refused as a destination; the listener is among them already. */
  readonly own: OwnListeners;
  /** Which destinations go by way of the upstream proxy. */
  readonly routes: ProxyRoutes;
  /** The next exchange that finishes, or the last one when `count` have finished already. */
  waitFor(count: number): Promise<ExchangeView[]>;
  stop(graceMs?: number): Promise<void>;
}

export interface EngineOptions {
  readonly policy?: Partial<TrafficPolicy>;
  readonly interceptors?: readonly Interceptor[];
  readonly observers?: readonly Observer[];
  readonly insecureHosts?: readonly string[];
  readonly upstreamRoots?: string;
  readonly connectTimeoutMs?: number;
  /** For how long connections to origins wait for another one of their client; not at all without. */
  readonly keepAliveMs?: number;
  readonly upstreamProxy?: ProxyAddress & Partial<ProxyChoices>;
  readonly spool?: BodySpool;
  readonly host?: string;
}

const authority = CertificateAuthority.create();
const silent = pino({ level: "silent" });

/** A spool that keeps large bodies in memory. */
function memorySpool(): BodySpool & { readonly bodies: Map<number, Buffer[]> } {
  const bodies = new Map<number, Buffer[]>();
  let last = 0;
  return {
    bodies,
    open() {
      const id = (last += 1);
      const pieces: Buffer[] = [];
      bodies.set(id, pieces);
      return {
        id,
        write(piece) {
          pieces.push(piece);
          return true;
        },
        end() {},
        discard() {
          bodies.delete(id);
        },
      };
    },
  };
}

export async function startEngine(options: EngineOptions = {}): Promise<Engine> {
  const finished: ExchangeView[] = [];
  const waiters = new Set<() => void>();
  const pipeline = new Pipeline(
    options.interceptors ?? [],
    [
      ...(options.observers ?? []),
      {
        name: "traffic",
        onFinished(exchange) {
          finished.push(exchange);
          for (const wake of waiters) wake();
        },
      },
    ],
    new Set(["blocklist"]),
    (slice, phase, error) => {
      throw new Error(`${slice} failed in ${phase}`, { cause: error });
    },
  );
  const own = new OwnListeners();
  const trust = new UpstreamTrust({
    extraRootsPem: options.upstreamRoots ?? null,
    insecure: false,
    insecureHosts: options.insecureHosts ?? [],
    clientCertificates: [],
    minVersions: [],
  });
  const { upstreamProxy: proxy } = options;
  const routes = new ProxyRoutes(proxy, { credentials: proxy?.credentials, bypass: proxy?.bypass ?? [] });
  const policy: TrafficPolicy = {
    interceptsTls: true,
    offersHttp2: false,
    records: () => true,
    passesThrough: () => false,
    allowsClient: () => true,
    maxBodyBytes: 20_971_520,
    capturesRequestBodies: true,
    capturesResponseBodies: true,
    idleTimeoutMs: 30_000,
    headTimeoutMs: 10_000,
    headLimits: { headBytes: 262_144, fieldCount: 2000 },
    ...options.policy,
  };
  const deadlines = new DeadlineSweep(50);
  const gauges = newGauges();
  const services: ProxyServices = {
    pipeline,
    dialer: new Dialer({
      trust,
      own,
      routes,
      viaPseudonym: newViaPseudonym(),
      timeoutMs: () => options.connectTimeoutMs ?? 5000,
    }),
    idleOrigins: new IdleOrigins({ deadlines, gauges, keepMs: () => options.keepAliveMs ?? 0 }),
    leafContexts: new LeafContexts(
      () => authority,
      () => false,
    ),
    refusals: new CertificateRefusals(() => authority, deadlines),
    deadlines,
    gauges,
    log: silent,
    spool: options.spool ?? memorySpool(),
    policy: () => policy,
    ownPages: ({ path }) => {
      const body = Buffer.from(`own page ${path}`);
      return { status: 200, fields: ["Content-Type", "text/plain", "Content-Length", String(body.length)], body };
    },
  };
  const listener = new ProxyListener(services);
  const address = await listener.listen(0, options.host ?? "127.0.0.1");
  own.add(address.address, address.port);
  return {
    port: address.port,
    ca: authority,
    finished,
    services,
    own,
    routes,
    async waitFor(count) {
      while (finished.length < count) {
        await new Promise<void>((resolve, reject) => {
          const timer = setTimeout(
            () => reject(new Error(`only ${finished.length} of ${count} exchanges finished`)),
            10_000,
          );
          const wake = (): void => {
            clearTimeout(timer);
            waiters.delete(wake);
            resolve();
          };
          waiters.add(wake);
        });
      }
      return finished;
    },
    async stop(graceMs = 0) {
      await listener.close(graceMs);
      services.idleOrigins.close();
      deadlines.stop();
    },
  };
}
