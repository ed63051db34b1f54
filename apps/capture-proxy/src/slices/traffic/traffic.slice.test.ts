import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import type { MatchPreview, TrafficEntry, TrafficEvent, TrafficSnapshot } from "@headworks/capture-contract";
import { FakeClock, oldSpaceGrowthBytes, temporaryDirectory } from "@headworks/testkit";
import type { ExchangeView } from "#exchange/exchange.ts";
import { sampleExchange } from "#storage/read/sample-exchange.ts";
import { openRig, type StoreRig } from "#storage/store-rig.ts";
import { type ApiRig, startApi } from "../../../test/api-rig.ts";
import { beginSession, testsSharing } from "../../../test/shared-rig.ts";
import { createTrafficSlice, parseRange, TrafficObserver } from "./traffic.slice.ts";

interface Rig {
  readonly api: ApiRig;
  readonly stored: StoreRig;
  [Symbol.asyncDispose](): Promise<void>;
}

async function startTraffic(): Promise<Rig> {
  const directory = await temporaryDirectory();
  const stored = await openRig(directory.path);
  const api = await startApi({ slices: (host) => [createTrafficSlice({ ...host, store: stored.store })] });
  return {
    api,
    stored,
    [Symbol.asyncDispose]: async () => {
      await api[Symbol.asyncDispose]();
      await stored[Symbol.asyncDispose]();
      await directory.remove();
    },
  };
}

const inSession = testsSharing("the traffic API", startTraffic, async ({ stored }) => await beginSession(stored));

async function get<T>({ api }: Rig, path: string, status = 200): Promise<{ body: T; headers: Headers }> {
  const response = await api.call("GET", `/api/traffic${path}`);
  assert.equal(response.status, status, `${path}: ${JSON.stringify(response.json)}`);
  return { body: response.json as T, headers: response.headers };
}

interface Page {
  readonly entries: TrafficEntry[];
  readonly next_cursor: string | null;
}

inSession("lists are plain arrays, newest first, with their total; rows, counts and summaries agree", async (rig) => {
  const ids = [200, 404, 500].map((status) => rig.stored.add({ status, responseBody: ["text"] }).id);
  await rig.stored.store.flush();
  const list = await get<TrafficEntry[]>(rig, "?limit=2");
  assert.deepEqual(
    list.body.map((entry) => entry.id),
    [ids[2], ids[1]],
  );
  assert.equal(list.headers.get("x-total-count"), "3");
  assert.equal(list.body[0]?.response?.body, null);
  const withBodies = await get<TrafficEntry[]>(rig, "?limit=1&include_bodies=true");
  assert.equal(withBodies.body[0]?.response?.body, "text");
  const page = await get<Page>(rig, "?cursor=&limit=2");
  const rest = await get<Page>(rig, `?cursor=${page.body.next_cursor}&limit=2`);
  assert.deepEqual(
    [...page.body.entries, ...rest.body.entries].map((entry) => entry.id),
    ids.toReversed(),
  );
  assert.equal(rest.body.next_cursor, null);
  const rows = await get<{ total: number; total_complete: boolean; rows: TrafficSnapshot[] }>(
    rig,
    "/rows?sort=status&order=asc&status=4xx,5xx",
  );
  assert.deepEqual([rows.body.total, rows.body.total_complete], [2, true]);
  assert.deepEqual(
    rows.body.rows.map((row) => row.status_code),
    [404, 500],
  );
  assert.deepEqual((await get(rig, "/count?status_code=404")).body, { count: 1 });
  assert.equal((await get<{ errors: number }>(rig, "/summary")).body.errors, 2);
  assert.equal((await get<unknown[]>(rig, "/tree")).body.length, 1);
  assert.deepEqual((await get(rig, "/values?field=host")).body, [{ value: "example.com", count: 3 }]);
});

inSession("a page of a filter on entry content states whether its total is final", async (rig) => {
  for (let count = 0; count < 200; count += 1) rig.stored.add({ responseBody: ["needle"] });
  await rig.stored.store.flush();
  const announced = async (query: string): Promise<(string | null)[]> => {
    const { headers } = await get(rig, `?q=resp.body:needle&limit=5${query}`);
    return [headers.get("x-total-complete"), headers.get("x-total-count")];
  };
  const [isComplete, count] = await announced("&cursor=");
  assert.equal(isComplete, "false", "the page was full long before everything was looked at");
  assert.ok(Number(count) > 5 && Number(count) < 200, `${count}`);
  assert.deepEqual(await announced(""), ["true", "200"]);
  assert.deepEqual(await announced("&cursor="), ["true", "200"]);
  assert.deepEqual((await get(rig, "/rows?q=resp.body:needle&limit=5")).body, {
    total: 200,
    total_complete: true,
    rows: (await get<{ rows: unknown[] }>(rig, "/rows?limit=5")).body.rows,
  });
});

inSession(
  "the first entry of a list always has its bodies; at the size limit a page ends or bodies are omitted and counted",
  async (rig) => {
    for (const sizeBytes of [1, 20_000_000, 40_000_000]) {
      rig.stored.add({ responseBody: [Buffer.alloc(sizeBytes, "x")], limitBytes: 40_000_000 });
    }
    await rig.stored.store.flush();
    const sizes = (entries: readonly TrafficEntry[]) => entries.map(({ response }) => response?.body?.length);
    const list = await get<TrafficEntry[]>(rig, "?include_bodies=true");
    assert.deepEqual(sizes(list.body), [40_000_000, undefined, undefined]);
    assert.equal(list.headers.get("x-bodies-omitted"), "2");
    const pages: (number | undefined)[][] = [];
    let cursor: string | null = "";
    while (cursor !== null) {
      const { body, headers }: { body: Page; headers: Headers } = await get<Page>(
        rig,
        `?include_bodies=true&cursor=${cursor}`,
      );
      assert.equal(headers.get("x-bodies-omitted"), null);
      pages.push(sizes(body.entries));
      cursor = body.next_cursor;
    }
    assert.deepEqual(pages, [[40_000_000], [20_000_000, 1]]);
    assert.equal((await get(rig, "")).headers.get("x-bodies-omitted"), null);
  },
);

inSession("original bodies count towards the size limit of a page, and so do bodies in both messages", async (rig) => {
  const { request, response } = sampleExchange();
  assert.ok(response);
  const replaced = Buffer.alloc(20_000_000, "x");
  rig.stored.add({ originalResponse: { message: response, body: replaced } });
  rig.stored.add({ originalRequest: { message: request, body: replaced } });
  rig.stored.add({
    responseBody: [Buffer.alloc(12_000_000, "x")],
    originalResponse: { message: response, body: undefined },
  });
  await rig.stored.store.flush();
  const sizes = (entries: readonly TrafficEntry[]) =>
    entries.map(({ original_request: sent, original_response: received }) => (sent ?? received)?.body?.length);
  const list = await get<TrafficEntry[]>(rig, "?include_bodies=true");
  assert.deepEqual(sizes(list.body), [12_000_000, undefined, undefined]);
  assert.equal(list.headers.get("x-bodies-omitted"), "2");
  const { body } = await get<Page>(rig, "?include_bodies=true&cursor=");
  assert.deepEqual(sizes(body.entries), [12_000_000]);
});

inSession("an invalid filter is rejected with the parameter and position", async (rig) => {
  const bad: readonly [query: string, path: string][] = [
    ["?q=status:(", "query/q"],
    ["/rows?q=nofield:1", "query/q"],
    ["/count?status_code=many", "query/status_code"],
    ["/summary?file_type=.", "query/file_type"],
    ["/rows?sort=color", "query/sort"],
    ["?limit=0", "query/limit"],
    ["?offset=99999999999999999999", "query/offset"],
    ["/rows?offset=9007199254740992", "query/offset"],
    ["?cursor=&offset=2", "query/offset"],
    ["?min_size=99999999999999999999", "query/min_size"],
  ];
  for (const [query, path] of bad) {
    const { body } = await get<{ code: string; details: { path: string }[] }>(rig, query, 400);
    assert.equal(body.code, "VALIDATION_ERROR", query);
    assert.equal(body.details[0]?.path, path, query);
  }
  const refused = await get<{ error: string }>(rig, "?q=nofield:1", 400);
  assert.match(refused.body.error, /\(at character 1\)$/);
  const { body } = await get<{ code: string; error: string }>(rig, "?cursor=nonsense", 400);
  assert.deepEqual([body.code, body.error], ["VALIDATION_ERROR", "cursor: this is not a cursor of this service"]);
});

inSession("an entry is read, noted and deleted by its id; unknown ids are 404 everywhere", async (rig) => {
  const { id } = rig.stored.add({ responseBody: ["text"] });
  await rig.stored.store.flush();
  assert.equal((await get<TrafficEntry>(rig, `/${id}`)).body.response?.body, "text");
  assert.equal((await get<TrafficEntry>(rig, `/${id}?include_bodies=false`)).body.response?.body, null);
  assert.deepEqual((await rig.api.call("PATCH", `/api/traffic/${id}`, { notes: "look" })).json, { id, notes: "look" });
  assert.equal((await get<TrafficEntry>(rig, `/${id}`)).body.notes, "look");
  for (const path of ["/unknown", "/unknown/body/response"]) {
    const { body } = await get<{ code: string; error: string }>(rig, path, 404);
    assert.deepEqual([body.code, body.error], ["NOT_FOUND", "Entry not found"], path);
  }
  assert.equal((await rig.api.call("PATCH", "/api/traffic/unknown", { notes: null })).status, 404);
  assert.equal((await rig.api.call("DELETE", `/api/traffic/${id}`)).status, 204);
  assert.equal((await rig.api.call("DELETE", `/api/traffic/${id}`)).status, 404);
});

inSession("bodies are served whole or in ranges, never with their captured type", async (rig) => {
  const text = "0123456789".repeat(300_000);
  const { id } = rig.stored.add({ responseFields: ["Content-Type", "text/html"], responseBody: [text] });
  await rig.stored.store.flush();
  const url = `${rig.api.url}/api/traffic/${id}/body/response`;
  const whole = await fetch(url);
  assert.equal(whole.headers.get("content-type"), "application/octet-stream");
  assert.equal(whole.headers.get("x-content-type-options"), "nosniff");
  assert.equal(await whole.text(), text);
  const ranges: readonly [field: string, status: number, expected: string][] = [
    ["bytes=2999995-", 206, "56789"],
    ["bytes=-3", 206, "789"],
    ["bytes=0-0", 206, "0"],
    ["bytes=2000000-2000004", 206, "01234"],
    ["bytes=3000000-", 416, ""],
    ["lines=1-2", 200, text],
  ];
  for (const [range, status, expected] of ranges) {
    const response = await fetch(url, { headers: { range } });
    assert.equal(response.status, status, range);
    const body = await response.text();
    if (status !== 416) assert.equal(body, expected, range);
    if (status === 416) assert.equal(response.headers.get("content-range"), "bytes */3000000");
    if (status === 206) assert.match(response.headers.get("content-range") ?? "", /^bytes \d+-\d+\/3000000$/u);
  }
  const download = await fetch(`${url}?download=true&charset=utf-8&decoded=true`, { headers: { range: "bytes=0-3" } });
  assert.equal(download.headers.get("content-type"), "text/plain; charset=utf-8");
  assert.match(download.headers.get("content-disposition") ?? "", /^attachment; filename="response-/u);
  assert.equal(await download.text(), "0123");
});

inSession(
  "undecodable bodies are served as far as they decode, with header fields that explain the rest",
  async (rig) => {
    const packed = gzipSync(Buffer.from("0123456789".repeat(1000)));
    const cases = [
      ["br", Buffer.from("no brotli"), "false", "true", 9],
      ["gzip", Buffer.from('{"plain": true}'), "false", "true", 15],
      ["gzip", Buffer.concat([packed, Buffer.from("\r\n")]), "true", "true", 10_000],
      ["gzip", packed.subarray(0, -20), "true", "true", undefined],
      ["unheard-of", Buffer.from("text"), "false", "true", 4],
      ["UTF-8", Buffer.from("grün"), "false", "true", 5],
      ["none", Buffer.from("text"), "false", "true", 4],
      ["gzip", packed, "false", "false", 10_000],
    ] as const;
    for (const [coding, body, partial, undecodable, length] of cases) {
      const { id } = rig.stored.add({ responseFields: ["Content-Encoding", coding], responseBody: [body] });
      await rig.stored.store.flush();
      const url = `${rig.api.url}/api/traffic/${id}/body/response`;
      const decoded = await fetch(`${url}?decoded=true`);
      const facts = [decoded.headers.get("x-body-partial"), decoded.headers.get("x-body-undecodable")];
      assert.deepEqual(facts, [partial, undecodable], coding);
      const bytes = Buffer.from(await decoded.arrayBuffer());
      if (length !== undefined) assert.equal(bytes.length, length, coding);
      const beginning = await fetch(`${url}?decoded=true`, { headers: { range: "bytes=0-9" } });
      assert.equal(beginning.status, bytes.length === 0 ? 200 : 206, coding);
      await beginning.arrayBuffer();
      const raw = await fetch(url);
      assert.equal(raw.headers.get("x-body-undecodable"), "false");
      assert.deepEqual(Buffer.from(await raw.arrayBuffer()), body);
    }
  },
);

inSession("clearing removes the named entries, or the session's; other sessions stay", async (rig) => {
  const { store } = rig.stored;
  const ids = Array.from({ length: 4 }, () => rig.stored.add().id);
  await store.flush();
  assert.equal((await rig.api.call("POST", `/api/traffic/clear?ids=${ids[0]},unknown`)).status, 204);
  assert.equal((await rig.api.call("POST", "/api/traffic/clear", { ids: [ids[1]] })).status, 204);
  assert.equal(store.status().entryCount, 2);
  const other = await store.createSession("other", null);
  const both: readonly [query: string, body: object | undefined, path: string][] = [
    [`?session_id=${other.id}&ids=${ids[2]}`, undefined, "query/ids"],
    [`?session_id=${other.id}`, { ids: [ids[2]] }, "body/ids"],
    [`?session_id=unknown&ids=`, undefined, "query/ids"],
  ];
  for (const [query, body, path] of both) {
    const { status, json } = await rig.api.call("POST", `/api/traffic/clear${query}`, body);
    assert.deepEqual([status, (json as { details: { path: string }[] }).details[0]?.path], [400, path], query);
  }
  assert.equal(store.status().entryCount, 2);
  assert.equal((await rig.api.call("POST", `/api/traffic/clear?session_id=${other.id}`)).status, 204);
  assert.equal(store.status().entryCount, 2);
  assert.equal((await rig.api.call("POST", "/api/traffic/clear?session_id=unknown")).status, 404);
  assert.equal((await rig.api.call("POST", "/api/traffic/clear")).status, 204);
  assert.equal(store.status().entryCount, 0);
});

inSession("a HAR is imported into a new session; a bad one is rejected", async (rig) => {
  rig.stored.add({ responseBody: ["answer"] });
  await rig.stored.store.flush();
  const { chunks } = await rig.stored.store.exportHar({}, undefined, new AbortController().signal);
  const har = Buffer.concat(await Array.fromAsync(chunks));
  const imported = await rig.api.call("POST", "/api/traffic/import/har?session_name=Copy", JSON.parse(har.toString()));
  assert.equal(imported.status, 200, JSON.stringify(imported.json));
  const { session_id: sessionId, ...counts } = imported.json as { session_id: string };
  assert.deepEqual(counts, { imported_count: 1, skipped_count: 0, errors: [] });
  const copy = await get<TrafficEntry[]>(rig, `?session_id=${sessionId}&include_bodies=true`);
  assert.equal(copy.body[0]?.response?.body, "answer");
  const refused = await rig.api.call("POST", "/api/traffic/import/har", { log: {} });
  assert.equal(refused.status, 400);
  assert.equal((refused.json as { code: string }).code, "BAD_REQUEST");
});

inSession("an import reports progress to listeners, under the task id of its caller", async (rig) => {
  const announced: object[] = [];
  const slice = createTrafficSlice({
    ...rig.api.host,
    store: rig.stored.store,
    events: {
      traffic: () => undefined,
      changed: (topic) => announced.push({ topic }),
      notice: () => undefined,
      task: async (start, run) => {
        announced.push(start);
        return await run((soFar) => announced.push(soFar));
      },
      hasListeners: true,
    },
  });
  const har = Buffer.from('{"log":{"entries":[]}}');
  await slice.operations.importHar({
    params: undefined,
    query: { task_id: "mine" },
    body: Readable.from([har]),
    headers: { "content-length": String(har.length) },
    signal: new AbortController().signal,
  });
  assert.deepEqual(announced[0], { id: "mine", kind: "import-har", contentLength: String(har.length) });
  assert.deepEqual(announced.at(-2), { bytes: har.length, entries: 0 });
  assert.deepEqual(announced.at(-1), { topic: "sessions" });
});

interface Watched {
  readonly events: TrafficEvent[];
  readonly slice: ReturnType<typeof createTrafficSlice>;
  readonly stored: StoreRig;
  readonly clock: ApiRig["clock"];
  [Symbol.dispose](): void;
}

/** A slice with its recorded events. */
function watchTraffic(rig: Rig, hasListeners = true): Watched {
  const events: TrafficEvent[] = [];
  const slice = createTrafficSlice({
    ...rig.api.host,
    store: rig.stored.store,
    events: {
      traffic: (event) => void events.push(event),
      changed: () => undefined,
      notice: () => undefined,
      task: async (_start, run) => await run(() => undefined),
      hasListeners,
    },
  });
  const stop = new AbortController();
  slice.task?.start(stop.signal);
  return {
    events,
    slice,
    stored: rig.stored,
    clock: rig.api.clock,
    [Symbol.dispose]: () => stop.abort(),
  };
}

const kinds = (events: readonly TrafficEvent[]): string[] =>
  events.flatMap((event) =>
    event.type === "Added" || event.type === "Updated" ? [`${event.type} ${event.data.state}`] : [],
  );

inSession(
  "an exchange that becomes a stream is recorded at once, before or after it was announced, so that frames have an entry",
  async (rig) => {
    using watched = watchTraffic(rig);
    const { slice, events, stored } = watched;
    const late = sampleExchange({ state: { step: "responding" } });
    slice.observer?.onStarted?.(late);
    assert.deepEqual(kinds(events), []);
    stored.store.streams.open(late, "sse");
    assert.deepEqual(kinds(events), ["Added pending"]);
    const early = sampleExchange({ state: { step: "responding" } });
    stored.store.streams.open(early, "grpc");
    slice.observer?.onStarted?.(early);
    assert.deepEqual(kinds(events), ["Added pending", "Added pending"]);
    await stored.store.flush();
    for (const { id } of [late, early]) assert.ok((await stored.store.getRow(id)) !== undefined);
  },
);

inSession(
  "a short exchange is announced once, at its end; a long one while it runs and again at its end",
  async (rig) => {
    using watched = watchTraffic(rig);
    const { slice, events, stored, clock } = watched;
    const short = sampleExchange();
    slice.observer?.onStarted?.(short);
    await clock.advance(60);
    slice.observer?.onFinished?.(short);
    assert.deepEqual(kinds(events), ["Added complete"]);
    const long = sampleExchange({ state: { step: "forwarding" } });
    slice.observer?.onStarted?.(long);
    await clock.advance(90);
    assert.deepEqual(kinds(events), ["Added complete"]);
    await clock.advance(100);
    assert.deepEqual(kinds(events), ["Added complete", "Added pending"]);
    await stored.store.flush();
    assert.deepEqual(
      (await stored.rows()).rows.map((row) => row.state),
      ["pending", "complete"],
    );
    const ended = Object.assign(long, { state: { step: "completed" }, response: sampleExchange().response });
    slice.observer?.onFinished?.(ended);
    assert.deepEqual(kinds(events), ["Added complete", "Added pending", "Updated complete"]);
    await stored.store.flush();
    const { rows } = await stored.rows();
    const announced = events.flatMap((event) => (event.type === "Updated" ? [event.data] : []));
    assert.deepEqual(rows[0], JSON.parse(JSON.stringify(announced[0])), "the announced entry equals the stored one");
  },
);

inSession(
  "a shown long exchange is updated and stored again when its response begins, a short one is not",
  async (rig) => {
    using watched = watchTraffic(rig);
    const { slice, events, stored, clock } = watched;
    const long = sampleExchange({ state: { step: "forwarding" } });
    slice.observer?.onStarted?.(long);
    await clock.advance(200);
    Object.assign(long, { state: { step: "responding" }, response: sampleExchange({ status: 203 }).response });
    slice.observer?.onResponding?.(long);
    assert.deepEqual(kinds(events), ["Added pending", "Updated pending"]);
    await stored.store.flush();
    assert.deepEqual(
      (await stored.rows()).rows.map((row) => [row.state, row.status_code]),
      [["pending", 203]],
    );
    const short = sampleExchange({ state: { step: "responding" } });
    slice.observer?.onStarted?.(short);
    slice.observer?.onResponding?.(short);
    assert.deepEqual(kinds(events), ["Added pending", "Updated pending"]);
  },
);

inSession(
  "unrecorded exchanges are neither stored nor announced, and nothing is announced without listeners",
  async (rig) => {
    using watched = watchTraffic(rig, false);
    const { slice, events, stored } = watched;
    const hidden = { ...sampleExchange(), isRecorded: false };
    slice.observer?.onStarted?.(hidden);
    slice.observer?.onFinished?.(hidden);
    slice.observer?.onFinished?.(sampleExchange());
    await stored.store.flush();
    assert.equal(stored.store.status().entryCount, 1);
    assert.deepEqual(events, []);
  },
);

inSession("clearing removes running entries, but not those shown only afterwards", async (rig) => {
  using watched = watchTraffic(rig);
  const { slice, stored, clock } = watched;
  const shown = sampleExchange({ state: { step: "forwarding" } });
  slice.observer?.onStarted?.(shown);
  await clock.advance(200);
  const fresh = sampleExchange();
  slice.observer?.onStarted?.(fresh);
  const finished = sampleExchange();
  slice.observer?.onFinished?.(finished);
  await slice.operations.clearTraffic({
    params: undefined,
    query: {},
    body: undefined,
    headers: {},
    signal: new AbortController().signal,
  });
  slice.observer?.onFinished?.(Object.assign(shown, { state: { step: "completed" } }));
  slice.observer?.onFinished?.(fresh);
  await stored.store.flush();
  assert.deepEqual(
    (await stored.rows()).rows.map((row) => row.id),
    [fresh.id],
  );
  assert.equal(stored.store.status().entryCount, 1);
});

inSession("a changed count of entries is announced, at most once a second", async (rig) => {
  using watched = watchTraffic(rig);
  const { slice, events, stored, clock } = watched;
  slice.observer?.onFinished?.(sampleExchange());
  slice.observer?.onFinished?.(sampleExchange());
  await stored.store.flush();
  await clock.advance(3300);
  assert.deepEqual(
    events.filter((event) => event.type === "CountUpdate"),
    [{ type: "CountUpdate", data: 2 }],
  );
});

inSession("a preview counts the newest entries that a condition matches", async (rig) => {
  const ids = ["/api/users", "/api/teams", "/index.html"].map((path) => rig.stored.add({ path, host: "a.test" }).id);
  await rig.stored.store.flush();
  const preview = async (body: object): Promise<{ status: number; json: unknown }> =>
    await rig.api.call("POST", "/api/traffic/match-preview", body);
  const api = await preview({ condition: { type: "path_pattern", pattern: "/api/*" } });
  const { sample, ...sums } = api.json as MatchPreview;
  assert.deepEqual(sums, { examined: 3, matched: 2, complete: true });
  assert.deepEqual(
    sample.map(({ id }) => id),
    [ids[1], ids[0]],
  );
  const short = await preview({ url_pattern: "*/api/*", method: "GET", sample: 0, direction: "request" });
  assert.deepEqual(short.json, { examined: 3, matched: 2, complete: true, sample: [] });
  assert.equal(((await preview({ condition: { type: "all" }, limit: 2 })).json as MatchPreview).examined, 2);
  const why = await preview({ condition: { type: "path_pattern", pattern: "/api/*" }, sample: 0, explain: ids[2] });
  assert.deepEqual((why.json as MatchPreview).explanation, {
    outcome: "fails",
    pointer: "",
    text: "The path matches `/api/*`: no, it is `/index.html`",
    parts: [],
  });
  assert.equal((await preview({ condition: { type: "all" }, explain: "unknown" })).status, 404);
});

inSession("a preview rejects an invalid condition with the path", async (rig) => {
  const cases: readonly (readonly [body: object, path: string])[] = [
    [{}, "body/condition"],
    [{ condition: { type: "host", pattern: "(" } }, "body/condition/pattern"],
    [{ condition: { type: "hosts", pattern: "a" } }, "body/condition"],
    [{ condition: { type: "and", conditions: [{ type: "port", port: "x" }] } }, "body/condition/conditions/0/port"],
    [{ condition: { type: "all" }, limit: 10_001 }, "body/limit"],
    [{ condition: { type: "all" }, other: 1 }, "body/other"],
    [{ condition: { type: "all" }, url_pattern: "a" }, "body/url_pattern"],
  ];
  for (const [body, path] of cases) {
    const { status, json } = await rig.api.call("POST", "/api/traffic/match-preview", body);
    assert.equal(status, 400, JSON.stringify(body));
    const { code, details } = json as { code: string; details: readonly { path: string }[] };
    assert.deepEqual([code, details[0]?.path], ["VALIDATION_ERROR", path]);
  }
});

test("ranges are parsed as RFC 9110 defines them; unreadable ones mean the whole body", () => {
  const cases: readonly [field: string | undefined, totalBytes: number, expected: ReturnType<typeof parseRange>][] = [
    [undefined, 10, undefined],
    ["bytes=0-", 10, { start: 0, end: 10 }],
    ["BYTES=2-4", 10, { start: 2, end: 5 }],
    ["bytes=2-400", 10, { start: 2, end: 10 }],
    ["bytes=-3", 10, { start: 7, end: 10 }],
    ["bytes=-30", 10, { start: 0, end: 10 }],
    ["bytes=-0", 10, "outside"],
    ["bytes=10-", 10, "outside"],
    ["bytes=0-", 0, undefined],
    ["bytes=-3", 0, undefined],
    ["bytes=4-2", 10, undefined],
    ["bytes=0-1,3-4", 10, undefined],
    ["bytes=-", 10, undefined],
    ["lines=0-1", 10, undefined],
    ["bytes=1e3-", 10, undefined],
    ["bytes=99999999999999999-", 10, undefined],
  ];
  for (const [field, totalBytes, expected] of cases) {
    assert.deepEqual(parseRange(field, totalBytes), expected, String(field));
  }
});

test("finished exchanges are not promoted to the old generation", () => {
  const recorded: number[] = [];
  let lastSeq = 0;
  const store = { nextSeq: () => (lastSeq += 1), record: (seq: number) => void (recorded[0] = seq) };
  const host = { clock: new FakeClock(), events: { hasListeners: false }, store };
  const observer = new TrafficObserver(host as unknown as ConstructorParameters<typeof TrafficObserver>[0]);
  const running: ExchangeView[] = [];
  const exchanges = 200;
  let number = 0;
  const growth = oldSpaceGrowthBytes(50, () => {
    for (let count = 0; count < exchanges; count += 1) {
      number += 1;
      const exchange = { id: `exchange-${number}`, isRecorded: true, head: Array.from({ length: 250 }, () => count) };
      observer.onStarted(exchange as unknown as ExchangeView);
      running.push(exchange as unknown as ExchangeView);
      const ending = running.length > 64 ? running.shift() : undefined;
      if (ending !== undefined) observer.onFinished(ending);
    }
  });
  assert.equal(recorded[0], lastSeq - running.length);
  // An exchange of this test has over 2,000 bytes; its id and number may be kept.
  assert.ok(growth / (50 * exchanges) < 400, `${growth / (50 * exchanges)} bytes of each exchange are kept`);
});
