import assert from "node:assert/strict";
import { test } from "node:test";
import { gunzipSync, gzipSync } from "node:zlib";
import type { BreakpointDecision } from "@headworks/capture-contract";
import { ApiError } from "#api/api-error.ts";
import type { RequestMessage, ResponseMessage } from "#exchange/exchange.ts";
import { parseDecision } from "./decision.ts";
import { editableBody } from "./editable-body.ts";
import { type DraftBody, edited, type Edited, requestChanges, responseChanges } from "./message-draft.ts";

const request = (more: Partial<RequestMessage> = {}): RequestMessage => ({
  method: "POST",
  scheme: "https",
  host: "a.test",
  port: 443,
  path: "/x?y=1",
  version: "HTTP/1.1",
  fields: ["Host", "a.test", "Cookie", "a=1", "Cookie", "b=2", "Content-Type", "text/plain"],
  trailers: undefined,
  ...more,
});
const response = (fields: string[] = ["Content-Type", "text/plain"]): ResponseMessage => ({
  status: 200,
  reason: "OK",
  version: "HTTP/1.1",
  fields,
  trailers: undefined,
});

async function whole(content: Buffer, fields: string[]): Promise<DraftBody> {
  return { kind: "whole", content, editable: await editableBody(content, fields, 1_000_000) };
}

async function editRequest(
  decision: Omit<BreakpointDecision, "action">,
  content = Buffer.from("hello"),
  message = request(),
): Promise<Edited & { side: "request" }> {
  const parsed = parseDecision({ action: "modify", ...decision });
  assert(parsed.action === "modify");
  const result = await edited({ side: "request", message }, await whole(content, message.fields), parsed.steps);
  assert(result.side === "request");
  return result;
}

async function editResponse(
  decision: Omit<BreakpointDecision, "action">,
  content: Buffer,
  message: ResponseMessage,
): Promise<Edited & { side: "response" }> {
  const parsed = parseDecision({ action: "modify", ...decision });
  assert(parsed.action === "modify");
  const result = await edited({ side: "response", message }, await whole(content, message.fields), parsed.steps);
  assert(result.side === "response");
  return result;
}

const refusal = (path: string) => (error: unknown) =>
  error instanceof ApiError && error.code === "VALIDATION_ERROR" && error.details?.[0]?.path === path;

test("a list of modifications is made in order", async () => {
  const before = request();
  const { message, content } = await editRequest({
    modifications: [
      { type: "set_header", name: "x-new", value: "1" },
      { type: "remove_header", name: "COOKIE" },
      { type: "set_url", url: "http://B.test:8080/p?q=ä#f" },
      { type: "url_regex_replace", pattern: "/p\\?(.*)$", replacement: "/$1" },
      { type: "set_method", method: "PUT" },
      { type: "set_body", content: "hello hello" },
      { type: "regex_replace", pattern: "h(.)llo", replacement: "j$1lly" },
    ],
  });
  assert.deepEqual(message, {
    ...before,
    method: "PUT",
    scheme: "http",
    host: "b.test",
    port: 8080,
    path: "/q=%C3%A4",
    fields: ["Host", "a.test", "Content-Type", "text/plain", "x-new", "1"],
  });
  assert.equal(content?.toString(), "jelly jelly");
  assert.deepEqual(requestChanges(before, message), [
    "method POST to PUT",
    "url https://a.test/x?y=1 to http://b.test:8080/q=%C3%A4",
    "set header x-new",
    "removed header Cookie",
  ]);
});

test("a replacement sets what it names; header fields as they were shown keep their duplicates and places", async () => {
  const { message, content } = await editRequest({
    modifications: {
      method: "PATCH",
      path: "/other",
      headers: { host: "a.test", cookie: "a=1, b=2", "X-A": "1" },
      body: "bye",
    },
  });
  assert.equal(message.method, "PATCH");
  assert.equal(message.path, "/other");
  assert.deepEqual(message.fields, ["host", "a.test", "cookie", "a=1", "cookie", "b=2", "X-A", "1"]);
  assert.equal(content?.toString(), "bye");
});

test("a replacement's header fields are all there are, and Host, which goes only when it is removed by name", async () => {
  const few = await editRequest({ modifications: { url: "https://c.test/", headers: { "X-A": "1" } } });
  assert.deepEqual(few.message.fields, ["Host", "a.test", "X-A", "1"]);
  const listed = await editRequest({ modifications: { headers_list: [["X-A", "1"]] } });
  assert.deepEqual(listed.message.fields, ["X-A", "1"]);
});

test("what was shown and is sent back whole changes nothing, whatever was edited beside it", async () => {
  const shown = {
    method: "POST",
    url: "https://a.test/x?y=1",
    host: "a.test",
    path: "/x?y=1",
    headers: { Host: "a.test", Cookie: "a=1, b=2", "Content-Type": "text/plain" },
    headers_list: request().fields.flatMap((name, at, all): [string, string][] =>
      at % 2 === 0 ? [[name, all[at + 1] ?? ""]] : [],
    ),
    content_type: "text/plain",
    http_version: "HTTP/1.1",
    body: "hello",
    body_encoding: "utf8" as const,
    body_size: 5,
    body_state: "complete" as const,
    charset: "utf-8",
  };
  const same = await editRequest({ request: shown });
  assert.deepEqual([same.message, same.content], [request(), undefined]);
  assert.equal((await editRequest({ request: { ...shown, path: "/z" } })).message.path, "/z");
  assert.equal((await editRequest({ request: { ...shown, url: "https://c.test/z" } })).message.host, "c.test");
  const fewer = await editRequest({ request: { ...shown, headers: { Host: "a.test" } } });
  assert.deepEqual(fewer.message.fields, ["Host", "a.test"]);
});

test("a response's status sets its usual reason, its cookies stay apart", async () => {
  const before = response(["Set-Cookie", "a=1", "Set-Cookie", "b=2", "X", "1"]);
  const { message } = await editResponse(
    { status_code: 404, headers: { "Set-Cookie": "a=1\nc=3" } },
    Buffer.alloc(0),
    before,
  );
  assert.deepEqual(message, {
    ...before,
    status: 404,
    reason: "Not Found",
    fields: ["Set-Cookie", "a=1", "Set-Cookie", "c=3"],
  });
  assert.deepEqual(responseChanges(before, message), [
    "status 200 to 404",
    "status message",
    "set header Set-Cookie",
    "removed header X",
  ]);
});

test("a coded body that was not edited passes byte for byte, an edited one is coded again", async () => {
  const fields = ["Content-Type", "text/plain", "Content-Encoding", "gzip"];
  const coded = gzipSync(Buffer.from("hello"), { level: 1 });
  assert.equal((await editResponse({ body: "hello" }, coded, response(fields))).content, undefined);
  assert.equal((await editResponse({ status_code: 500 }, coded, response(fields))).content, undefined);
  const { content } = await editResponse({ body: "bye" }, coded, response(fields));
  assert.equal(gunzipSync(content ?? Buffer.alloc(0)).toString(), "bye");
});

test("a body whose Content-Encoding is taken away is sent plain", async () => {
  const fields = ["Content-Encoding", "gzip", "X", "1"];
  const { content, message } = await editResponse(
    { modifications: [{ type: "remove_header", name: "content-encoding" }] },
    gzipSync(Buffer.from("hello")),
    response(fields),
  );
  assert.equal(content?.toString(), "hello");
  assert.deepEqual(message.fields, ["X", "1"]);
});

test("binary bodies are edited as base64, with the mark or with the encoding named", async () => {
  const bytes = Buffer.of(1, 2, 0xff);
  const base64 = bytes.toString("base64");
  for (const given of [{ body: `base64:${base64}` }, { body: base64, body_encoding: "base64" as const }]) {
    assert.deepEqual((await editRequest(given)).content, bytes);
  }
  assert.deepEqual(
    (await editRequest({ modifications: [{ type: "set_body_base64", content: base64 }] })).content,
    bytes,
  );
  assert.equal((await editRequest({ body: "base64:no!" })).content?.toString(), "base64:no!");
  assert.equal(
    (await editRequest({ body: `base64:${base64}`, body_encoding: "utf8" })).content?.toString(),
    `base64:${base64}`,
  );
  await assert.rejects(editRequest({ body: "no!", body_encoding: "base64" }), refusal("body/body"));
});

test("a body that cannot be edited is refused, other edits of its message are not", async () => {
  const parsed = parseDecision({ action: "modify", body: "x", method: "PUT" });
  assert(parsed.action === "modify");
  const fixed: DraftBody = { kind: "fixed", why: "too large" };
  await assert.rejects(edited({ side: "request", message: request() }, fixed, parsed.steps), { code: "CONFLICT" });
  const withoutBody = parsed.steps.filter(({ kind }) => kind !== "set-body");
  const result = await edited({ side: "request", message: request() }, fixed, withoutBody);
  assert.equal(result.content, undefined);
});

const REFUSED: readonly (readonly [string, Omit<BreakpointDecision, "action">, string])[] = [
  [
    "a line end in a value",
    { modifications: [{ type: "set_header", name: "A", value: "1\r\nB: 2" }] },
    "body/modifications/0",
  ],
  ["a name that is no token", { headers: { "a b": "1" } }, "body/headers"],
  ["a control character in a value", { headers_list: [["A", "日\u0001"]] }, "body/headers_list"],
  ["a relative URL", { url: "/x" }, "body/url"],
  ["another scheme", { url: "ftp://a.test/" }, "body/url"],
  ["credentials in a URL", { url: "http://u:p@a.test/" }, "body/url"],
  ["a host that is none", { url: "http://a b/" }, "body/url"],
  ["a path without its slash", { path: "x" }, "body/path"],
  ["a method that is no token", { method: "G T" }, "body/method"],
  ["CONNECT", { method: "CONNECT" }, "body/method"],
  ["a status on a request", { status_code: 200 }, "body/status_code"],
  [
    "a pattern that cannot be read",
    { modifications: [{ type: "regex_replace", pattern: "(", replacement: "" }] },
    "body/modifications/0/pattern",
  ],
  [
    "a group that is not there",
    { modifications: [{ type: "regex_replace", pattern: "a", replacement: "$1" }] },
    "body/modifications/0/replacement",
  ],
  [
    "a modification without its field",
    { modifications: [{ type: "set_header", name: "A" }] },
    "body/modifications/0/value",
  ],
  [
    "a field of another modification",
    { modifications: [{ type: "delay", ms: 1, name: "A" }] },
    "body/modifications/0/name",
  ],
  [
    "a length, which the engine writes,",
    { modifications: [{ type: "set_header", name: "Content-Length", value: "1" }] },
    "body/modifications/0/name",
  ],
  [
    "removing the framing",
    { modifications: [{ type: "remove_header", name: "transfer-Encoding" }] },
    "body/modifications/0/name",
  ],
];
for (const [what, decision, path] of REFUSED) {
  test(`${what} is refused where it stands`, async () => {
    await assert.rejects(editRequest(decision), refusal(path));
  });
}

test("values go out in Latin-1 where that has all of a text, in UTF-8 otherwise, however they are set", async () => {
  for (const [value, octets] of [
    ["café", "caf\xe9"],
    ["café €", Buffer.from("café €").toString("latin1")],
  ] as const) {
    for (const decision of [
      { headers_list: [["A", value]] },
      { headers: { A: value } },
      { modifications: [{ type: "set_header", name: "A", value }] },
    ] as Omit<BreakpointDecision, "action">[]) {
      const { message } = await editRequest(decision);
      assert.equal(message.fields[message.fields.indexOf("A") + 1], octets, JSON.stringify(decision));
    }
  }
});

test("every accepted form says the same", () => {
  const flat = parseDecision({ action: "continue" });
  for (const body of [
    { decision: "allow" },
    { action: "allow" },
    { action: { action: "continue" } },
    { decision: "continue", modifications: [] },
    { action: "continue", modifications: {}, body: null },
  ] as const) {
    assert.deepEqual(parseDecision(body as BreakpointDecision), flat);
  }
  for (const body of [{ decision: "reject" }, { action: "abort" }, { action: { action: "abort" } }] as const) {
    assert.deepEqual(parseDecision(body), { action: "abort" });
  }
  const response = { status_code: 418, headers: { A: "1" }, body: "tea" };
  assert.deepEqual(
    parseDecision({ action: "respond", ...response }),
    parseDecision({ action: { action: "respond", ...response } }),
  );
  const replaced = (body: BreakpointDecision): unknown => {
    const parsed = parseDecision(body);
    return parsed.action === "modify" && parsed.steps.map(({ path: _path, ...step }) => step);
  };
  const plain = [{ kind: "set-body", body: { form: "text", text: "x" } }];
  assert.deepEqual(replaced({ decision: "modify", body: "x" }), plain);
  assert.deepEqual(replaced({ action: { action: "modify", body: "x" } }), plain);
  assert.deepEqual(replaced({ action: "modify", modifications: { body: "x" } }), plain);
  assert.deepEqual(replaced({ action: "modify", modifications: [{ type: "set_body", content: "x" }] }), plain);
});

test("a decision that contradicts itself is refused", () => {
  for (const [body, path] of [
    [{}, "body/action"],
    [{ action: "continue", decision: "reject" }, "body/decision"],
    [{ action: { action: "continue" }, body: "x" }, "body/body"],
    [{ action: "continue", body: "x" }, "body/body"],
    [{ action: "abort", modifications: [{ type: "delay", ms: 1 }] }, "body/modifications"],
    [{ action: "respond", method: "GET" }, "body/method"],
    [{ action: "respond", headers: {}, headers_list: [] }, "body/headers_list"],
  ] as const) {
    assert.throws(() => parseDecision(body as unknown as BreakpointDecision), refusal(path), JSON.stringify(body));
  }
});
