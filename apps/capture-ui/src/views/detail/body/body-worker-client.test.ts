import assert from "node:assert/strict";
import { test } from "node:test";
import { serveBody } from "./body-worker-client.ts";
import type { BodyCallName, WorkerResponse } from "./body-worker-client.ts";

/** Opens a body through the worker's messages; returns a function that makes one call. */
async function client(body: string, contentType = "application/json") {
  const responses: WorkerResponse[] = [];
  const serve = serveBody(
    (response) => responses.push(structuredClone(response)),
    () => Promise.resolve(new Response(body)),
  );
  await serve({ kind: "open", source: { url: "/body?", contentType } });
  let id = 0;
  return async (name: BodyCallName, ...parameters: unknown[]): Promise<unknown> => {
    await serve({ kind: "call", id: ++id, name, parameters });
    const response = responses.at(-1);
    assert.ok(response !== undefined && response.kind !== "progress" && response.id === id);
    if (response.kind === "failure") throw new Error(response.message);
    return response.value;
  };
}

test("nodes of the tree are expanded and read", async () => {
  const call = await client('{"a":[{"b":"x"}]}');
  assert.equal(await call("openTree"), 3);
  assert.equal(await call("collapseTree"), 2);
  assert.deepEqual(await call("expandNode", 0), { complete: true, rows: 4 });
  assert.equal(await call("nodePath", 3), "$.a[0].b");
  assert.equal(await call("nodeValue", 3), "x");
  assert.equal(await call("nodeValue", 1), '[{"b":"x"}]');
});

test("tables, text, search and wrapping work on the same body", async () => {
  const call = await client('[{"id":1},{"id":2}]');
  assert.deepEqual(await call("tables"), [{ node: 0, path: "$", count: 2 }]);
  assert.deepEqual(await call("openTable", 0), { columns: ["id"], rows: 2 });
  assert.equal(((await call("tableRows", 0, 5)) as unknown[]).length, 2);
  assert.equal(await call("text", "raw"), '[{"id":1},{"id":2}]');
  assert.deepEqual(await call("search", "pretty", { text: "id", regex: false, matchCase: false }), {
    matches: [
      { row: 2, startColumn: 5, endColumn: 7 },
      { row: 5, startColumn: 5, endColumn: 7 },
    ],
    more: false,
  });
});

test("rows are available while a large body is formatted; its text only afterwards", async () => {
  const body = `[${'{"id":1,"text":"abc"},'.repeat(40_000)}0]`;
  const responses: WorkerResponse[] = [];
  const ask = (name: BodyCallName, ...parameters: unknown[]): void =>
    // Delivered like a message: not before the current work yields.
    void setTimeout(() => void serve({ kind: "call", id: 0, name, parameters }), 0);
  const serve = serveBody(
    (response) => {
      if (responses.length === 0) {
        ask("rows", "pretty", 0, 2);
        ask("text", "raw");
      }
      responses.push(response);
    },
    () => Promise.resolve(new Response(body)),
  );
  await serve({ kind: "open", source: { url: "/body?", contentType: "application/json" } });
  const whole = responses.findIndex((response) => response.kind === "progress" && response.progress.done);
  const [rows, text] = responses.filter((response) => response.kind === "result");
  assert.ok(rows !== undefined && responses.indexOf(rows) < whole);
  assert.deepEqual(
    (rows.value as { text: string }[]).map((row) => row.text),
    ["[", "  {"],
  );
  assert.ok(text !== undefined && responses.indexOf(text) > whole);
  assert.equal(text.value, body);
});

test("parts of a multipart body have a preview and can be downloaded", async () => {
  const type = "multipart/form-data; boundary=b";
  const call = await client('--b\r\nContent-Disposition: form-data; name="n"\r\n\r\nhello\r\n--b--', type);
  const { parts } = (await call("parts", type)) as {
    parts: { name: string; preview: string; start: number; end: number }[];
  };
  assert.deepEqual(
    parts.map(({ name, preview }) => [name, preview]),
    [["n", "hello"]],
  );
  const bytes = await call("bytes", parts[0]?.start, parts[0]?.end);
  assert.equal(new TextDecoder().decode(bytes as Uint8Array), "hello");
});

test("a failed call is rejected with the reason, and the next call works", async () => {
  const call = await client("not json");
  await assert.rejects(call("openTree"), /Not valid JSON/u);
  assert.equal(await call("text", "raw"), "not json");
  await assert.rejects(call("search", "raw", { text: "(", regex: true, matchCase: false }), /regular expression/iu);
});
