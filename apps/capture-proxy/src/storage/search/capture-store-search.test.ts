import assert from "node:assert/strict";
import { test } from "node:test";
import { brotliCompressSync, gzipSync } from "node:zlib";
import type { TrafficFilter } from "@headworks/capture-contract";
import fc from "fast-check";
import type { SampleOptions } from "../read/sample-exchange.ts";
import { planFilter } from "./filtered-set.ts";
import { beginSession, openTemporaryStore, testsSharing } from "../../../test/shared-rig.ts";
import { NEVER } from "../store-rig.ts";
import type { StoreRig } from "../store-rig.ts";

const ENTRIES: Readonly<Record<string, SampleOptions>> = {
  login: {
    method: "POST",
    host: "Auth.example.com".toLowerCase(),
    path: "/login?next=%2Fhome",
    status: 302,
    requestFields: [
      "Host",
      "auth.example.com",
      "Content-Type",
      "application/x-www-form-urlencoded",
      "Cookie",
      "sid=abc; theme=dark",
    ],
    responseFields: ["Location", "/home", "Set-Cookie", "sid=new; HttpOnly"],
    requestBody: ["user=anna&password=secret"],
    durationMs: 80,
  },
  image: {
    host: "cdn.example.com",
    path: "/logo.png",
    responseFields: ["Content-Type", "image/png"],
    responseBody: [new Uint8Array([137, 80, 78, 71, 0, 1, 2, 3])],
    durationMs: 3,
  },
  orders: {
    host: "api.example.com",
    path: "/v1/orders",
    responseFields: ["Content-Type", "application/json", "Content-Encoding", "gzip"],
    responseBody: [gzipSync('{"items":[{"id":42,"name":"Straße"}]}')],
    durationMs: 1500,
  },
  report: {
    host: "api.example.com",
    path: "/v1/report.csv?year=2026",
    status: 500,
    responseFields: ["Content-Type", "text/csv; charset=iso-8859-1", "Content-Encoding", "br"],
    responseBody: [brotliCompressSync(Buffer.from("größe;1", "latin1"))],
  },
  failed: {
    host: "down.test",
    path: "/",
    scheme: "http",
    port: 80,
    state: {
      step: "failed",
      failure: { stage: "connect", side: "upstream", code: "UPSTREAM_REFUSED", message: "refused" },
    },
  },
};

const CASES: readonly [filter: TrafficFilter, found: string][] = [
  [{}, "login image orders report failed"],
  [{ method: "post" }, "login"],
  [{ host: "example.com" }, "login image orders report"],
  [{ host: "api.*" }, "orders report"],
  [{ url: "*/v1/*" }, "orders report"],
  [{ url: "https://cdn" }, "image"],
  [{ status_code: "302,5xx" }, "login report"],
  [{ status: "200-299" }, "image orders"],
  [{ content_type: "json" }, "orders"],
  [{ content_type: "text/csv; charset=iso-8859-1" }, "report"],
  [{ file_type: "png" }, "image"],
  [{ file_type: ".csv" }, "report"],
  [{ header: "location" }, "login"],
  [{ header: "content-encoding:gzip" }, "orders"],
  [{ cookie: "theme=dark" }, "login"],
  [{ cookie: "sid" }, "login"],
  [{ is_passthrough: "true" }, ""],
  [{ min_time: 1000 }, "orders"],
  [{ max_time: 5 }, "image"],
  [{ min_size: 1 }, "login image orders report"],
  [{ search: "password=secret" }, "login"],
  [{ search: "STRASSE" }, ""],
  [{ search: "straße" }, "orders"],
  [{ search: "größe" }, "report"],
  [{ search: "content-encoding: br" }, "report"],
  [{ search: "down.test" }, "failed"],
  [{ q: "body:anna" }, "login"],
  [{ q: "resp.body:/name.:./" }, "orders"],
  [{ q: "json(resp,$.items[0].id):42" }, "orders"],
  [{ q: "status:>=500 OR state:failed" }, "report failed"],
  [{ q: "-host:example.com" }, "failed"],
  [{ q: "type:image" }, "image"],
  [{ q: "dur:>1s host:api" }, "orders"],
  [{ q: "@errors", host: "api" }, "report"],
  [{ q: "host:api", search: "items" }, "orders"],
  [{ q: "query:year" }, "report"],
  [{ q: "ext:.csv host:=[api.example.com]" }, "report"],
  [{ q: "resp.body:*" }, "image orders report"],
  [{ q: "-body:*" }, "failed"],
  [{ q: "seq:<0" }, ""],
  [{ q: "seq:2..3 OR seq:>4" }, "image orders failed"],
  [{ q: "-seq:<=3 host:api" }, "report"],
  [{ q: "seq:>1 id:!=nothing", search: "items" }, "orders"],
  [{ q: "seq:<5 -id:nothing query:year" }, "report"],
];

async function named(rig: StoreRig, hasFieldLines = true): Promise<Map<string, string>> {
  const names = new Map<string, string>();
  for (const [name, options] of Object.entries(ENTRIES)) names.set(rig.add({ ...options, hasFieldLines }).id, name);
  await rig.store.flush();
  return names;
}

test("every filter counts, lists and summarizes the same entries, over HTTP/1.1", async () => {
  await everyFilter(true);
});

test("every filter counts, lists and summarizes the same entries, over HTTP/2", async () => {
  await everyFilter(false);
});

async function everyFilter(hasFieldLines: boolean): Promise<void> {
  await using rig = await openTemporaryStore();
  const names = await named(rig, hasFieldLines);
  for (const [filter, expected] of CASES) {
    const shown = JSON.stringify(filter);
    const { rows, total } = await rig.rows(filter, { order: "asc" });
    assert.equal(rows.map((row) => names.get(row.id)).join(" "), expected, shown);
    assert.equal(total, rows.length, shown);
    assert.equal(await rig.store.count(filter, NEVER), total, shown);
    assert.equal((await rig.store.summarize(filter, NEVER)).matched, total, shown);
    const tree = await rig.store.tree(filter, undefined, NEVER);
    assert.equal(
      tree.reduce((sum, node) => sum + node.count, 0),
      total,
      shown,
    );
    const { json } = await rig.store.listEntries({
      filter,
      limit: 100,
      offset: 0,
      cursor: undefined,
      includeBodies: false,
      signal: NEVER,
    });
    const entries = JSON.parse(new TextDecoder().decode(json)) as { id: string }[];
    assert.deepEqual(
      entries.map((entry) => entry.id).reverse(),
      rows.map((row) => row.id),
      shown,
    );
  }
}

const inSession = testsSharing("a search of one session", openTemporaryStore, beginSession);

inSession("a filter asked of an empty session finds what arrives afterwards", async (rig) => {
  const filters: TrafficFilter[] = [{ method: "GET" }, { q: "body:abc" }];
  for (const filter of filters) assert.equal((await rig.rows(filter)).total, 0);
  for (const expected of [1, 2]) {
    rig.add({ responseBody: ["abc"] });
    await rig.store.flush();
    for (const filter of filters) assert.equal((await rig.rows(filter)).total, expected, JSON.stringify(filter));
  }
});

inSession(
  "a coded body that decodes to more than a search looks at is searched in its beginning, as a plain one is",
  async (rig) => {
    const body = Buffer.from(`begins ${"abcdefghij ".repeat(800_000)} ends`);
    for (const coding of ["identity", "gzip"]) {
      const fields = ["Content-Type", "text/plain", "Content-Encoding", coding];
      rig.add({ responseFields: fields, responseBody: [coding === "gzip" ? gzipSync(body, { level: 1 }) : body] });
    }
    await rig.store.flush();
    for (const [q, expected] of [
      ['body:"begins abc"', 2],
      ["resp.body:*", 2],
      ["-resp.body:*", 0],
      ['body:"hij  ends"', 0],
    ] as const) {
      assert.equal((await rig.rows({ q })).total, expected, q);
    }
  },
);

test("conditions on numbers and ids need no scan", () => {
  for (const q of [
    "seq:<0",
    "seq:>7 status:200",
    "-seq:3..5",
    "id:0190a1b2-0000-7000-8000-00000000000a",
    "-id:0190*",
  ]) {
    assert.equal(planFilter({ q }, 0).predicate, undefined, q);
  }
});

inSession("a filter that does not parse is refused by name", async (rig) => {
  await assert.rejects(rig.store.count({ q: "status:(" }, NEVER), { name: "FilterError" });
  await assert.rejects(rig.store.count({ status_code: "many" }, NEVER), {
    name: "FilterError",
    message: /status_code/u,
  });
});

inSession("completion gives the values of a field, most frequent first", async (rig) => {
  await named(rig);
  const values = async (field: string, prefix = ""): Promise<string[]> =>
    (await rig.store.values(field, prefix, undefined, 3)).map(({ value, count }) => `${value} ${count}`);
  assert.deepEqual(await values("host"), ["api.example.com 2", "auth.example.com 1", "cdn.example.com 1"]);
  assert.deepEqual(await values("host", "AU"), ["auth.example.com 1"]);
  assert.deepEqual(await values("status"), ["200 2", "302 1", "500 1"]);
  assert.deepEqual(await values("path", "/v1/r"), ["/v1/report.csv 1"]);
  assert.deepEqual(await values("mime", "t"), ["text/csv 1"]);
  assert.deepEqual(await values("client"), ["127.0.0.1 5"]);
  assert.deepEqual(await values("header", "set-"), ["set-cookie 1"]);
  assert.deepEqual(await values("method", "%"), []);
});

inSession("the tree names hosts with ports that are not their scheme's own, and the paths of one host", async (rig) => {
  await named(rig);
  rig.add({ host: "api.example.com", port: 8443, path: "/odd" });
  rig.add({ scheme: "http", host: "::1", port: 443, path: "/odd" });
  await rig.store.flush();
  const hosts = await rig.store.tree({}, undefined, NEVER);
  assert.deepEqual(
    hosts.map((node) => `${node.name} ${node.count} ${node.errors}`),
    [
      "api.example.com 2 1",
      "[::1]:443 1 0",
      "api.example.com:8443 1 0",
      "auth.example.com 1 0",
      "cdn.example.com 1 0",
      "down.test 1 1",
    ],
  );
  const paths = async (host: string): Promise<string[]> =>
    (await rig.store.tree({}, host, NEVER)).map((node) => node.name);
  for (const host of ["api.example.com", "API.example.com", "api.example.com:443"]) {
    assert.deepEqual(await paths(host), ["/v1/orders", "/v1/report.csv"], host);
  }
  for (const host of ["api.example.com:8443", "[::1]:443"]) assert.deepEqual(await paths(host), ["/odd"], host);
  for (const host of ["::1", "[::1]", "down.test:443", "nowhere"]) assert.deepEqual(await paths(host), [], host);
});

const SORTS = {
  seq: (row: Row) => row.seq,
  timestamp: (row: Row) => Date.parse(row.timestamp),
  method: (row: Row) => row.method,
  status: (row: Row) => row.status_code,
  host: (row: Row) => row.host,
  path: (row: Row) => row.path,
  type: (row: Row) => row.resource_type,
  size: (row: Row) => row.response_size,
  request_size: (row: Row) => row.request_size,
  duration: (row: Row) => row.duration_ms,
  ttfb: (row: Row) => row.ttfb_ms,
} as const;
type Row = Awaited<ReturnType<StoreRig["rows"]>>["rows"][number];

/** The body of a running exchange is not stored yet. */
function hasNeedle(row: Row): boolean {
  return row.path.includes("needle") || (row.has_response_body && row.state === "complete");
}

const FILTERS: readonly [TrafficFilter, (row: Row) => boolean][] = [
  [{}, () => true],
  [{ method: "PUT" }, (row) => row.method === "PUT"],
  [{ status_code: "4xx" }, (row) => row.status_code !== null && row.status_code >= 400 && row.status_code < 500],
  [{ q: "-host:a.test" }, (row) => row.host !== "a.test"],
  [
    { q: "query:x=1 OR dur:>20" },
    (row) => (row.path.split("?")[1] ?? "").includes("x=1") || (row.duration_ms ?? 0) > 20,
  ],
  [{ search: "needle" }, (row) => hasNeedle(row)],
  [{ search: "needle", method: "GET" }, (row) => row.method === "GET" && hasNeedle(row)],
];

const exchange = fc.record({
  method: fc.constantFrom("GET", "PUT", "DELETE"),
  host: fc.constantFrom("a.test", "b.test", "c.test"),
  path: fc.constantFrom("/", "/one?x=1", "/two?x=2", "/needle"),
  status: fc.constantFrom(200, 304, 404, 500),
  durationMs: fc.constantFrom(1, 10, 25),
  hasNeedle: fc.boolean(),
});
const action = fc.oneof(
  { weight: 8, arbitrary: exchange.map((value) => ({ kind: "add" as const, value })) },
  { weight: 2, arbitrary: fc.nat(40).map((place) => ({ kind: "delete" as const, place })) },
  { weight: 2, arbitrary: exchange.map((value) => ({ kind: "begin" as const, value })) },
  { weight: 2, arbitrary: fc.nat(3).map((place) => ({ kind: "end" as const, place })) },
  { weight: 3, arbitrary: fc.nat(FILTERS.length - 1).map((filter) => ({ kind: "look" as const, filter })) },
  { weight: 1, arbitrary: fc.constant({ kind: "clear" as const }) },
);

test(
  "whatever happens in between, every window of a filtered, sorted list equals the naive one",
  { timeout: 120_000 },
  async () => {
    await using rig = await openTemporaryStore();
    await fc.assert(
      fc.asyncProperty(
        fc.array(action, { maxLength: 40 }),
        fc.constantFrom(...FILTERS.keys()),
        async (actions, finalFilter) => {
          await beginSession(rig);
          await perform(rig, actions);
          const everything = (await rig.rows()).rows;
          for (const filterIndex of new Set([finalFilter, 0, 5])) await compare(rig, everything, filterIndex);
        },
      ),
      { numRuns: 12 },
    );
  },
);

type Action = typeof action extends fc.Arbitrary<infer T> ? T : never;

/** Queries in between fill the caches that later changes must update. */
async function perform(rig: StoreRig, actions: readonly Action[]): Promise<void> {
  const { store } = rig;
  const running: { seq: number; id: string; value: SampleOptions }[] = [];
  const sample = (value: SampleOptions & { hasNeedle: boolean }): SampleOptions => ({
    ...value,
    ...(value.hasNeedle && { responseBody: ["a needle here"] }),
  });
  for (const step of actions) {
    if (step.kind === "add") rig.add(sample(step.value));
    else if (step.kind === "begin") {
      const seq = store.nextSeq();
      const { id } = rig.addAs(seq, { ...sample(step.value), state: { step: "forwarding" } });
      running.push({ seq, id, value: sample(step.value) });
    } else if (step.kind === "end") {
      const [ended] = running.splice(step.place, 1);
      if (ended !== undefined) rig.addAs(ended.seq, { ...ended.value, id: ended.id });
    } else if (step.kind === "clear") await store.clearSession(store.activeSessionId);
    else {
      await store.flush();
      if (step.kind === "delete") {
        const id = (await rig.rows()).rows[step.place]?.id;
        if (id !== undefined) await store.deleteEntries([id]);
      } else await rig.rows(FILTERS[step.filter]?.[0], { limit: 3, sort: "duration" });
    }
  }
  await store.flush();
}

async function compare(rig: StoreRig, everything: readonly Row[], filterIndex: number): Promise<void> {
  const [filter, holds] = FILTERS[filterIndex] ?? [{}, () => true];
  const matching = everything.filter(holds);
  for (const [sort, key] of Object.entries(SORTS)) {
    for (const order of ["asc", "desc"] as const) {
      const expected = matching.toSorted((left, right) => {
        const natural = ranked(key(left), key(right)) || left.seq - right.seq;
        return order === "asc" ? natural : -natural;
      });
      for (const [offset, limit] of [
        [0, 1000],
        [1, 2],
        [3000, 5],
      ] as const) {
        const { rows, total } = await rig.rows(filter, { sort, order, offset, limit });
        const shown = `${JSON.stringify(filter)} by ${sort} ${order} from ${offset}`;
        assert.equal(total, matching.length, shown);
        assert.deepEqual(
          rows.map((row) => row.seq),
          expected.slice(offset, offset + limit).map((row) => row.seq),
          shown,
        );
      }
    }
  }
}

/** NULL sorts first, as in SQL. */
function ranked(left: string | number | null, right: string | number | null): number {
  if (left === right) return 0;
  if (left === null) return -1;
  if (right === null) return 1;
  return left < right ? -1 : 1;
}
