import assert from "node:assert/strict";
import { gzipSync } from "node:zlib";
import { test } from "node:test";
import type { Condition } from "@headworks/capture-contract";
import { temporaryDirectory } from "@headworks/testkit";
import { CancelledError } from "../search/filtered-set.ts";
import { matchPreview } from "./match-preview.ts";
import type { PreviewRequest } from "./reader-client.ts";
import { NEVER, openRig } from "../store-rig.ts";
import type { StoreRig } from "../store-rig.ts";

interface Rig extends AsyncDisposable {
  readonly stored: StoreRig;
  preview(condition: Condition, question?: Partial<Omit<PreviewRequest, "op" | "scope">>): Promise<PreviewSums>;
}

interface PreviewSums {
  readonly examined: number;
  readonly matched: number;
  readonly complete: boolean;
  readonly ids: readonly string[];
}

async function startRig(): Promise<Rig> {
  const directory = await temporaryDirectory();
  const stored = await openRig(directory.path);
  return {
    stored,
    preview: async (condition, { phases = ["request", "response"] as const, limit = 1000, sample = 20 } = {}) => {
      await stored.store.flush();
      const question = { condition, phases, limit, sample, explain: undefined, sessionId: undefined };
      const { sample: rows, ...sums } = await stored.store.previewMatches(question, NEVER);
      return { ...sums, ids: rows.map(({ id }) => id) };
    },
    [Symbol.asyncDispose]: async () => {
      await stored[Symbol.asyncDispose]();
      await directory.remove();
    },
  };
}

test("the newest entries are tried, and the newest matches are returned", async () => {
  await using rig = await startRig();
  const ids = Array.from(
    { length: 30 },
    (_, number) => rig.stored.add({ path: number % 3 === 0 ? `/users/${number}` : "/other", host: "a.test" }).id,
  );
  const users: Condition = { type: "path_pattern", pattern: "/users/*" };
  const matching = ids.filter((_, number) => number % 3 === 0).toReversed();
  assert.deepEqual(await rig.preview(users), { examined: 30, matched: 10, complete: true, ids: matching });
  assert.deepEqual(await rig.preview(users, { limit: 6, sample: 1 }), {
    examined: 6,
    matched: 2,
    complete: true,
    ids: matching.slice(0, 1),
  });
  assert.deepEqual(await rig.preview(users, { sample: 0 }), { examined: 30, matched: 10, complete: true, ids: [] });
});

test("bodies are matched decoded, in the requested phase", async () => {
  await using rig = await startRig();
  const json = ["content-type", "application/json"];
  rig.stored.add({
    method: "POST",
    requestFields: [...json, "content-encoding", "gzip"],
    requestBody: [gzipSync('{"query":"mutation { a }"}')],
    responseFields: json,
    responseBody: ['{"errors":[1]}'],
    status: 502,
  });
  const mutation: Condition = { type: "graphql_type", operation_type: "mutation" };
  const errors: Condition = { type: "json_path", path: "$.errors[0]", value: 1 };
  assert.equal((await rig.preview(mutation)).matched, 1);
  assert.equal((await rig.preview(errors)).matched, 1);
  assert.equal((await rig.preview(errors, { phases: ["request"] })).matched, 0);
  assert.equal((await rig.preview({ type: "status_code", range: "5xx" }, { phases: ["request"] })).matched, 0);
  assert.equal((await rig.preview({ type: "status_code", range: "5xx" }, { phases: ["response"] })).matched, 1);
  assert.equal((await rig.preview({ type: "and", conditions: [mutation, errors] })).matched, 1);
});

test("operations of GraphQL are found in uploads and query strings", async () => {
  await using rig = await startRig();
  const part = (name: string, value: string): string =>
    `--B\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
  const operations = '{"query":"mutation Send($file: Upload) { a }","variables":{"file":null}}';
  const png = Buffer.concat([
    Buffer.from(part("0", "\x89PNG\0"), "latin1"),
    Buffer.of(0, 0xff),
    Buffer.from("\r\n--B--\r\n"),
  ]);
  rig.stored.add({
    method: "POST",
    requestFields: ["content-type", "multipart/form-data; boundary=B"],
    requestBody: [Buffer.from(part("operations", operations)), png],
  });
  rig.stored.add({ method: "GET", path: "/graphql?query=query%20Find%20%7B%20a%20%7D" });
  assert.equal((await rig.preview({ type: "graphql_operation", operation_name: "Send" })).matched, 1);
  assert.equal((await rig.preview({ type: "graphql_type", operation_type: "mutation" })).matched, 1);
  assert.equal((await rig.preview({ type: "graphql_operation", operation_name: "Find" })).matched, 1);
});

test("an entry without a response is not tried in the response phase", async () => {
  await using rig = await startRig();
  rig.stored.add({
    state: {
      step: "failed",
      failure: { stage: "connect", side: "upstream", code: "UPSTREAM_REFUSED", message: "refused" },
    },
  });
  assert.equal((await rig.preview({ type: "all" }, { phases: ["response"] })).matched, 0);
  assert.equal((await rig.preview({ type: "all" }, { phases: ["request"] })).matched, 1);
});

test("an empty session and an unknown one have no entries to try", async () => {
  await using rig = await startRig();
  assert.deepEqual(await rig.preview({ type: "all" }), { examined: 0, matched: 0, complete: true, ids: [] });
  const question = {
    condition: { type: "all" },
    phases: ["request"],
    limit: 10,
    sample: 5,
    explain: undefined,
    sessionId: "none",
  } as const;
  assert.equal((await rig.stored.store.previewMatches(question, NEVER)).examined, 0);
});

test("a slow search returns its partial result, and a cancelled one ends", async () => {
  const rows = Array.from({ length: 500 }, (_, index) => ({
    seq: 500 - index,
    id: `e${index}`,
    flags: 0,
    method: "GET",
    scheme: "http",
    host: "a.test",
    port: 80,
    path: "/",
    status: 200,
  }));
  let given = 0;
  const statement = { all: () => rows.slice(given, (given += 100)) };
  const source = { database: { prepare: () => statement }, bodies: {}, index: undefined } as unknown as Parameters<
    typeof matchPreview
  >[0];
  const request: PreviewRequest = {
    op: "preview",
    scope: { number: 1, id: "s", floorSeq: 0, entryCount: 500 },
    // Each access to a header of a slow row exceeds the time slice.
    condition: '{"type":"header","name":"a"}',
    phases: ["request"],
    limit: 500,
    sample: 5,
    explain: undefined,
  };
  for (const row of rows) {
    Object.defineProperty(row, "request_fields", {
      get: () => {
        const until = performance.now() + 12;
        while (performance.now() < until);
        return '["a","1"]';
      },
    });
  }
  const cut = await matchPreview(source, request, { cancelled: false }, 30);
  assert.equal(cut.complete, false);
  assert.ok(cut.examined > 0 && cut.examined < 500 && cut.matched === cut.examined);
  given = 0;
  await assert.rejects(matchPreview(source, request, { cancelled: true }), CancelledError);
});

test("the explanation of an entry says why it matches or not, in its last phase", async () => {
  await using rig = await startRig();
  const { id } = rig.stored.add({
    status: 404,
    responseBody: ["gone"],
    responseFields: ["content-type", "text/plain"],
  });
  await rig.stored.store.flush();
  const explained = async (explain: string, phases: PreviewRequest["phases"]): Promise<string | undefined> => {
    const condition: Condition = { type: "body_pattern", pattern: "^here" };
    const question = { condition, phases, limit: 1, sample: 0, explain, sessionId: undefined };
    return (await rig.stored.store.previewMatches(question, NEVER)).explanation?.text;
  };
  assert.equal(await explained(id, ["request", "response"]), "The body matches `^here`: no, the body has no match");
  assert.equal(await explained(id, ["request"]), "The body matches `^here`: no, there is no text body");
  assert.equal(await explained("unknown", ["request"]), undefined);
});
