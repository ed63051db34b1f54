import assert from "node:assert/strict";
import { after, test } from "node:test";
import { brotliCompressSync, gzipSync } from "node:zlib";
import fc from "fast-check";
import type { RequestData, RewriteAction, TrafficEntry } from "@headworks/capture-contract";
import { dryRun } from "./dry-run.ts";
import { newRewrite } from "./rewrite-rule.ts";
import { actionIssues } from "./rewrites.check.ts";
import { compileOnce } from "./rewrites.compile.ts";
import { createTextThread } from "./text-thread.ts";

const thread = createTextThread();
after(() => thread.close());
const files = {
  problem: () => undefined,
  read: () => Promise.resolve({ kind: "missing" as const, reason: "gone" }),
};
const limits = () => ({ bodyBytes: 5000, waitMs: 1000, after: () => () => undefined });

function entryOf(method: string, path: string, status: number, fields: [string, string][], body: Buffer): TrafficEntry {
  const message = {
    headers: {},
    headers_list: fields,
    body: `base64:${body.toString("base64")}`,
    body_encoding: "base64",
    body_size: body.length,
    body_stored_size: body.length,
    body_state: body.length === 0 ? "none" : "complete",
    truncated: false,
    content_type: null,
    http_version: "HTTP/1.1",
  } as const;
  const request: RequestData = { ...message, method, url: `http://a.test${path}`, host: "a.test", path };
  return {
    request,
    response: { ...message, status_code: status, status_message: null, duration_ms: 1 },
    original_request: null,
    original_response: null,
  } as unknown as TrafficEntry;
}

const word = fc.constantFrom("a", "b", "ab", "é", "", "=", '"');
const actions: fc.Arbitrary<RewriteAction> = fc.oneof(
  fc.record({
    type: fc.constant("url_rewrite" as const),
    pattern: fc.constantFrom("a", "test", "^.*$", "/"),
    replacement: word,
  }),
  fc.record({
    type: fc.constant("set_header" as const),
    name: fc.constantFrom("A", "Content-Type", "Content-Encoding"),
    value: word,
  }),
  fc.record({
    type: fc.constant("remove_header" as const),
    name: fc.constantFrom("a", "content-type", "content-encoding"),
  }),
  fc.record({
    type: fc.constant("header_rewrite" as const),
    name: fc.constantFrom("A", "content-type"),
    pattern: fc.constantFrom("[a-z]", "$"),
    replacement: word,
  }),
  fc.record({
    type: fc.constant("body_rewrite" as const),
    pattern: fc.constantFrom("a", "b*", "(a|b)", "."),
    replacement: word,
  }),
  fc.record({ type: fc.constant("query_param" as const), name: fc.constantFrom("a", "é"), value: word }),
  fc.record({ type: fc.constant("remove_query_param" as const), name: fc.constantFrom("a", "b") }),
  fc.constant({ type: "map_to_file" as const, path: "x" }),
  fc.record({ type: fc.constant("map_to_url" as const), url: fc.constantFrom("http://b.test", "https://b.test/x?y") }),
  fc.record({ type: fc.constant("set_status" as const), code: fc.constantFrom(200, 204, 205, 304, 404) }),
  fc.record({ type: fc.constant("set_method" as const), method: fc.constantFrom("GET", "POST", "HEAD") }),
  fc.record({ type: fc.constant("set_body" as const), content: word }),
  fc.constant({ type: "json_patch" as const, patch: [{ op: "add" as const, path: "/a", value: 1 }] }),
  fc.constant({ type: "json_merge" as const, patch: { a: null, b: 2 } }),
);

const contents = fc.oneof(
  fc.uint8Array({ maxLength: 60 }).map((octets) => Buffer.from(octets)),
  fc.constantFrom('{"a":1,"b":[1.0]}', "abé", "a".repeat(6000), "").map((text) => Buffer.from(text)),
);
const CODED: Readonly<Record<string, (plain: Buffer) => Buffer>> = {
  "": (plain) => plain,
  gzip: (plain) => gzipSync(plain),
  br: (plain) => brotliCompressSync(plain),
  unknown: (plain) => plain,
  // The declared codings do not match the actual one.
  "br, gzip": (plain) => gzipSync(plain),
};

test("any rule on any message is applied or reports why not, and its report is accurate", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(actions, { minLength: 1, maxLength: 5 }),
      contents,
      fc.constantFrom(...Object.keys(CODED)),
      fc.constantFrom(
        "",
        "text/html; charset=shift_jis",
        "application/json",
        "image/png",
        "text/event-stream",
        "multipart/form-data",
      ),
      fc.constantFrom("GET", "POST", "HEAD", "OPTIONS"),
      fc.constantFrom(200, 204, 206, 304),
      async (rewrites, plain, coding, type, method, status) => {
        fc.pre(actionIssues({ rewrites, direction: "both" }, files).length === 0);
        const body = CODED[coding]?.(plain) ?? plain;
        const fields: [string, string][] = [
          ["A", "ab"],
          ["Content-Length", String(body.length)],
        ];
        if (coding !== "") fields.push(["Content-Encoding", coding]);
        if (type !== "") fields.push(["Content-Type", type]);
        const entry = entryOf(method, method === "OPTIONS" ? "*" : "/a?a=1&b", status, fields, body);
        const rule = newRewrite("r", { name: "r", direction: "both", rewrites }, { type: "all" }, 0);
        const { request, response, trace, changed } = await dryRun(entry, compileOnce([rule], files, thread), limits);
        const isSame =
          JSON.stringify(request.before) === JSON.stringify(request.after) &&
          JSON.stringify(response?.before) === JSON.stringify(response?.after);
        const says = trace.some(({ changes }) => !changes.includes("matched, changed nothing"));
        if (!changed) assert.ok(isSame);
        assert.equal(changed, says, JSON.stringify(trace));
        for (const { changes } of trace) assert.ok(changes.length > 0);
      },
    ),
    { numRuns: 600 },
  );
});
