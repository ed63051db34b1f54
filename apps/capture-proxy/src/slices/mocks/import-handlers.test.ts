import assert from "node:assert/strict";
import { request } from "node:http";
import { test } from "node:test";
import { MAX_MOCK_DOCUMENT_BYTES } from "@headworks/capture-contract";
import type { MockRule } from "@headworks/capture-contract";
import { startApi } from "../../../test/api-rig.ts";
import type { ApiRig } from "../../../test/api-rig.ts";
import { readDocumentApart } from "./import-handlers.ts";
import { createMocksSlice } from "./mocks.slice.ts";

const startMocks = (): Promise<ApiRig> => startApi({ slices: (host) => [createMocksSlice(host)] });
const list = async (api: ApiRig): Promise<MockRule[]> => (await api.call("GET", "/api/mocks")).json as MockRule[];

const YAML = `
openapi: 3.1.0
paths:
  /a/{id}:
    get: { responses: { "200": { content: { application/json: { example: { id: 1 } } } }, "404": {} } }
`;

test("a dry run shows the rules of an import and creates none", async () => {
  await using api = await startMocks();
  const body = { format: "openapi", data: YAML, dry_run: true, enabled: false };
  const { status, json } = await api.call("POST", "/api/mocks/import", body);
  assert.equal(status, 200, JSON.stringify(json));
  const preview = json as { imported: number; dry_run: boolean; rules: MockRule[] };
  assert.deepEqual([preview.imported, preview.dry_run], [2, true]);
  assert.deepEqual(
    preview.rules.map(({ name, enabled }) => [name, enabled]),
    [
      ["OpenAPI: GET /a/{id} -> 200", false],
      ["OpenAPI: GET /a/{id} -> 404", false],
    ],
  );
  assert.deepEqual(await list(api), []);
});

test("an import creates its rules, in a collection if given", async () => {
  await using api = await startMocks();
  const collection = (await api.call("POST", "/api/mocks/collections", { name: "Pets" })).json as { id: string };
  const { status, json } = await api.call("POST", "/api/mocks/import", {
    format: "openapi",
    data: YAML,
    collection_id: collection.id,
  });
  assert.equal(status, 201, JSON.stringify(json));
  const made = json as { imported: number; format: string; ids: string[] };
  assert.deepEqual([made.imported, made.format], [2, "openapi"]);
  const rules = await list(api);
  assert.deepEqual(
    rules.map(({ id, collection_id: collectionId }) => [id, collectionId]),
    made.ids.toReversed().map((id) => [id, collection.id]),
  );
});

test("an export imports again, as text and as object, with the same rules under new ids", async () => {
  await using api = await startMocks();
  const config = {
    type: "sequence",
    responses: [
      { status_code: 201, body: "a" },
      { headers: { "X-A": ["1", "2"] }, body_base64: "AP8=" },
    ],
    cycle: false,
  };
  const condition = { type: "not", condition: { type: "json_path", path: "$.a", value: [1] } };
  await api.call("POST", "/api/mocks/advanced", {
    name: "A",
    condition,
    response_config: config,
    tags: ["t"],
    priority: 7,
  });
  await api.call("POST", "/api/mocks", {
    name: "B",
    condition: { type: "all" },
    response: { body: "x" },
    enabled: false,
  });
  const exported = (await api.call("GET", "/api/mocks/export")).json as MockRule[];
  const told = (rules: readonly MockRule[]) =>
    rules.map(({ id: _id, created_at: _c, updated_at: _u, ...rest }) => rest);
  for (const data of [exported, JSON.stringify(exported), { mocks: exported }]) {
    const { status, json } = await api.call("POST", "/api/mocks/import", { format: "json", data });
    assert.equal(status, 201, JSON.stringify(json));
    const again = ((await api.call("GET", "/api/mocks/export")).json as MockRule[]).slice(-2);
    assert.deepEqual(told(again), told(exported));
    assert.equal(new Set([...again, ...exported].map(({ id }) => id)).size, 4);
  }
});

test("an invalid document is rejected with its issues, and nothing is created", async () => {
  await using api = await startMocks();
  const cases: readonly (readonly [object, RegExp])[] = [
    [{ format: "har", data: "{}" }, /^Import failed: .*log\.entries/],
    [{ format: "openapi", data: "{" }, /^Import failed: .*not JSON/],
    [{ format: "json", data: "[" }, /^Import failed: .*not JSON/],
    [{ format: "json", data: {} }, /^Import failed: .*list of mock rules/],
    [{ format: "json", data: [5] }, /body\/data\/0/],
    [
      { format: "json", data: [{ name: "x", condition: { type: "all" }, response: {} }, { name: "y" }] },
      /body\/data\/1\/condition: is required/,
    ],
    [
      { format: "json", data: [{ name: "x", condition: { type: "all" }, response: {}, colour: 1 }] },
      /body\/data\/0\/colour/,
    ],
    [{ format: "soap", data: "" }, /body\/format/],
    [{ format: "har" }, /body\/data/],
    [{ format: "har", data: {}, collection_id: "none" }, /body\/collection_id/],
  ];
  for (const [body, message] of cases) {
    const { status, json } = await api.call("POST", "/api/mocks/import", body);
    assert.equal(status, 400, JSON.stringify(body));
    assert.match((json as { error: string }).error, message);
  }
  assert.deepEqual(await list(api), []);
});

const ENTRY = (url: string, text: string) => ({
  startedDateTime: "2026-01-01T00:00:00.000Z",
  request: { method: "GET", url, headers: [] },
  response: { status: 200, headers: [], content: { mimeType: "text/plain", text } },
});

interface Response {
  readonly status: number;
  readonly json: { readonly imported?: number; readonly skipped?: number; readonly error?: string };
}

/** Uploads a document as the request body; `pieces` without a content length. */
async function send(
  api: ApiRig,
  query: string,
  document: string | AsyncIterable<Uint8Array>,
  type = "application/octet-stream",
): Promise<Response> {
  const response = await fetch(`${api.url}/api/mocks/import/document?${query}`, {
    method: "POST",
    headers: { "content-type": type },
    body: document,
    duplex: "half",
  });
  return { status: response.status, json: (await response.json()) as Response["json"] };
}

test("an uploaded document makes the same rules as one inside a JSON request", async () => {
  await using api = await startMocks();
  const har = JSON.stringify({
    log: { entries: [ENTRY("https://a.test/1", "one"), ENTRY("https://a.test/2", "two")] },
  });
  const postman = JSON.stringify({
    info: { name: "c" },
    item: [{ name: "x", request: { method: "GET", url: "https://a.test/p" }, response: [{ code: 200, body: "p" }] }],
  });
  const documents = [
    ["har", har, "application/json"],
    ["openapi", YAML, "application/yaml"],
    ["postman", postman, "application/octet-stream"],
  ] as const;
  for (const [format, document, type] of documents) {
    const preview = await send(api, `format=${format}&dry_run=true`, document, type);
    assert.equal(preview.status, 200, JSON.stringify(preview.json));
    const inside = await api.call("POST", "/api/mocks/import", { format, data: document, dry_run: true });
    const told = ({ rules, ...rest }: { rules?: MockRule[] }) => ({
      ...rest,
      rules: rules?.map(({ name, condition, response_config: config }) => ({ name, condition, config })),
    });
    assert.deepEqual(told(preview.json as object), told(inside.json as object), format);
  }
  assert.deepEqual(await list(api), []);
  const made = await send(api, "format=har&enabled=false", har);
  assert.deepEqual([made.status, made.json.imported], [201, 2]);
  const exported = JSON.stringify((await api.call("GET", "/api/mocks/export")).json);
  assert.deepEqual((await send(api, "format=json", exported)).json.imported, 2);
  assert.deepEqual(
    (await list(api)).map(({ name, enabled }) => [name, enabled]),
    [2, 1, 2, 1].map((place) => [`HAR: GET https://a.test/${place}`, false]),
  );
});

test("an invalid upload is rejected with its issues, and nothing is created", async () => {
  await using api = await startMocks();
  const cases: readonly (readonly [query: string, document: string, status: number, message: RegExp])[] = [
    ["format=har", "{}", 400, /^Import failed: .*log\.entries.*at byte/],
    ["format=har", '{"log":{"entries":[', 400, /^Import failed: the file stops in entry 0/],
    ["format=har", "\u0000", 400, /^Import failed: .*begins with/],
    ["format=openapi", "{", 400, /^Import failed: .*not JSON/],
    ["format=postman", "", 400, /a body is required/],
    ["format=json", "[5]", 400, /body\/data\/0/],
    ["format=soap", "{}", 400, /query\/format/],
    ["", "{}", 400, /query\/format/],
    ["format=har&collection_id=none", "{}", 400, /query\/collection_id/],
    ["format=har&colour=red", "{}", 400, /query\/colour/],
  ];
  for (const [query, document, status, message] of cases) {
    const response = await send(api, query, document);
    assert.equal(response.status, status, query);
    assert.match(response.json.error ?? "", message);
  }
  assert.equal((await send(api, "format=har", "{}", "text/plain")).status, 415);
  assert.deepEqual(await list(api), []);
});

test("an entry that cannot become a rule is skipped and named", async () => {
  await using api = await startMocks();
  const large = ENTRY("https://a.test/large", "x".repeat(5_300_000));
  const document = JSON.stringify({ log: { entries: [ENTRY("https://a.test/1", "one"), {}, large] } });
  const { status, json } = await send(api, "format=har&dry_run=true", document);
  assert.deepEqual([status, json.imported, json.skipped], [200, 1, 2]);
  const { warnings } = json as { warnings: string[] };
  assert.match(warnings.join("\n"), /^entry 1: has no request\nentry 2 \(https:\/\/a\.test\/large\): .* larger than/);
});

test("a document above the limit of its format is rejected with the limit, before it is read when its length is known", async () => {
  await using api = await startMocks();
  const sentence = (format: keyof typeof MAX_MOCK_DOCUMENT_BYTES): string => {
    const max = MAX_MOCK_DOCUMENT_BYTES[format];
    return `The document is larger than ${max} bytes (${max / 1_048_576} MiB), the limit for the format ${format}`;
  };
  for (const format of ["har", "openapi", "postman", "json"] as const) {
    const { promise, resolve, reject } = Promise.withResolvers<{ status: number | undefined; text: string }>();
    const headers = {
      "content-type": "application/octet-stream",
      "content-length": String(MAX_MOCK_DOCUMENT_BYTES[format] + 1),
    };
    const url = `${api.url}/api/mocks/import/document?format=${format}`;
    const outgoing = request(url, { method: "POST", headers }, (response) => {
      response.toArray().then((pieces) => {
        resolve({ status: response.statusCode, text: Buffer.concat(pieces as Buffer[]).toString() });
        outgoing.destroy();
      }, reject);
    });
    outgoing.on("error", reject);
    outgoing.write("{");
    const { status, text } = await promise;
    assert.equal(status, 413);
    assert.equal((JSON.parse(text) as { error: string }).error, sentence(format));
  }
  const endless = async function* (): AsyncGenerator<Uint8Array> {
    const spaces = Buffer.alloc(1_048_576, " ");
    for (let count = 0; count < 26; count += 1) yield spaces;
  };
  const { status, json } = await send(api, "format=openapi", endless());
  assert.deepEqual([status, json.error], [413, sentence("openapi")]);
});

test("an import reports progress and is cancelled when its client disconnects", async () => {
  await using api = await startMocks();
  const { clock } = api;
  const texts = ['{"log":{"entries":[', `${JSON.stringify(ENTRY("https://a.test/1", "one"))},`];
  const chunks = texts.map((text) => Buffer.from(text));
  const told: unknown[] = [];
  const controller = new AbortController();
  const source = async function* (): AsyncGenerator<Uint8Array> {
    for (const chunk of chunks) {
      yield chunk;
      await clock.advance(1000);
    }
    controller.abort();
    yield Buffer.from("1");
  };
  const wait = { clock, signal: controller.signal, onProgress: (soFar: unknown) => void told.push(soFar) };
  const reading = readDocumentApart({ format: "har", baseUrl: null }, source(), wait);
  await assert.rejects(reading, { name: "AbortError" });
  const [first = 0, second = 0] = chunks.map(({ length }) => length);
  assert.deepEqual(told, [
    { bytes: first, entries: 0 },
    { bytes: first + second, entries: 1 },
  ]);
});
