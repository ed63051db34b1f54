/**
 * The cost of finding a route, by the number of routes. Run:
 *
 *   node bench/gateway/routing.bench.ts [million lookups per row]
 *
 * Nanoseconds of CPU time per lookup, the minimum of several rounds that alternate between the sizes, and
 * the ratio to the table with one route. Lookups use paths of random routes of the table, so that
 * larger tables also pay for cache misses. The second ratio includes the check of the path, which precedes each
 * lookup; `empty loop` is the cost without a table.
 */
import { NO_BODY } from "@headworks/http1";
import {
  type CompiledRoute,
  type Generation,
  RequestContext,
  type RouteTable,
} from "../../apps/gateway/src/request/context.ts";
import { TrustedProxies } from "../../apps/gateway/src/request/forwarding-rules.ts";
import { checkPath } from "../../apps/gateway/src/routing/request-path.ts";
import { compileRouteTable } from "../../apps/gateway/src/routing/route-table.ts";

const lookups = Number(process.argv[2] ?? 0.5) * 1_000_000;
const SIZES = [1, 100, 5000] as const;
const ROUNDS = 7;
const SAMPLES = 1024;

type Match = CompiledRoute["document"]["match"];

interface Shape {
  readonly name: string;
  match(index: number): Match;
  target(index: number): string;
}

const SHAPES: readonly Shape[] = [
  {
    name: "prefix",
    match: (index) => ({ path: { type: "prefix", value: `/service-${index}/v1` } }),
    target: (index) => `/service-${index}/v1/users/12345?page=2`,
  },
  {
    name: "exact",
    match: (index) => ({ path: { type: "exact", value: `/service-${index}/v1/status` } }),
    target: (index) => `/service-${index}/v1/status`,
  },
  {
    name: "template",
    match: (index) => ({ path: { type: "exact", value: `/service-${index}/users/{id}/files/{file}` } }),
    target: (index) => `/service-${index}/users/12345/files/report`,
  },
  {
    name: "regex after a literal start",
    match: (index) => ({ path: { type: "regex", value: `^/service-${index}/users/[0-9]+$` } }),
    target: (index) => `/service-${index}/users/12345`,
  },
  {
    name: "prefix with host, header and accept",
    match: (index) => ({
      path: { type: "prefix", value: `/service-${index}/v1` },
      host: "api.example.com",
      headers: { "x-version": "2" },
      accept: "application/json",
    }),
    target: (index) => `/service-${index}/v1/users/12345?page=2`,
  },
  {
    name: "no route",
    match: (index) => ({ path: { type: "prefix", value: `/service-${index}/v1` } }),
    target: (index) => `/service-${index}/v2/users/12345?page=2`,
  },
];

const generation: Generation = {
  number: 1,
  contentHash: 0,
  document: {
    gateway: {},
    listeners: [],
    upstreams: [],
    services: [],
    routes: [],
    consumers: [],
    policies: [],
    webhooks: [],
    admin: undefined,
    analytics: undefined,
  },
  routes: { resolve: () => false },
  routeList: [],
  trustedProxies: new TrustedProxies([]),
  unroutedGates: new Map(),
};

function tableOf(shape: Shape, size: number): RouteTable {
  const routes = Array.from({ length: size }, (_, index): CompiledRoute => ({
    name: `r${index}`,
    document: { name: `r${index}`, service: "s", match: shape.match(index), action: { type: "proxy" } },
    index,
    gates: [],
    decorators: [],
    bodyFilters: [],
    responseStore: undefined,
    action: { kind: "response", response: () => ({ status: 200, fields: [], body: "" }) },
    priority: 5,
  }));
  return compileRouteTable(routes);
}

/** Requests for random routes of the table. Their paths are new strings, as from a parser. */
function requestsFor(shape: Shape, size: number): RequestContext[] {
  return Array.from({ length: SAMPLES }, (_, sample) => {
    const target = Buffer.from(shape.target(Math.floor((sample * 2_654_435_761) % size))).toString("latin1");
    return new RequestContext({
      generation,
      listener: { name: "public", isSecure: false, port: 8080 },
      peer: { address: "127.0.0.1", port: 40_000 },
      startedMs: 0,
      version: "1.1",
      method: "GET",
      target,
      authority: "api.example.com:8080",
      fields: [
        "Host",
        "api.example.com:8080",
        "User-Agent",
        "bench",
        "Accept",
        "text/html, application/json",
        "X-Version",
        "2",
      ],
      framing: NO_BODY,
      upgrade: undefined,
    });
  });
}

/** CPU time of `once` for each request, in nanoseconds. */
function measure(requests: readonly RequestContext[], once: (request: RequestContext) => unknown): number {
  let sink = 0;
  const before = process.cpuUsage();
  for (let done = 0; done < lookups; done += SAMPLES) {
    for (const request of requests) if (once(request) === true) sink += 1;
  }
  const { user, system } = process.cpuUsage(before);
  if (sink < 0) throw new Error("unreachable");
  return ((user + system) * 1000) / lookups;
}

function smallest(figures: readonly number[]): number {
  return Math.min(...figures);
}

const [firstShape = fail()] = SHAPES;
const requests = requestsFor(firstShape, 5000);
const rounds = Array.from({ length: ROUNDS });
const checkNs = smallest(rounds.map(() => measure(requests, ({ target }) => checkPath(target) === "ok")));
const emptyNs = smallest(rounds.map(() => measure(requests, ({ method }) => method === "GET")));
console.log(`checkPath ${checkNs.toFixed(0)} ns, empty loop ${emptyNs.toFixed(1)} ns\n`);
console.log(`${"".padEnd(38)}${SIZES.map((size) => `${size} routes`.padStart(14)).join("")}   ratio   with checkPath`);
for (const shape of SHAPES) {
  const rows = SIZES.map((size) => ({
    table: tableOf(shape, size),
    requests: requestsFor(shape, size),
    figures: [] as number[],
  }));
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const { table, requests, figures } of rows) {
      figures.push(measure(requests, (request) => table.resolve(request)));
    }
  }
  const best = rows.map(({ figures }) => smallest(figures));
  const [one = fail()] = best;
  const max = best.at(-1) ?? fail();
  const ratios = `${(max / one).toFixed(2).padStart(8)}${((max + checkNs) / (one + checkNs)).toFixed(2).padStart(17)}`;
  console.log(`${shape.name.padEnd(38)}${best.map((ns) => `${ns.toFixed(0)} ns`.padStart(14)).join("")}${ratios}`);
}

function fail(): never {
  throw new Error("empty measurement");
}
