import assert from "node:assert/strict";
import { test } from "node:test";
import type { Cache } from "@headworks/gateway-contract";
import { CHUNKED, lengthFraming, UNTIL_CLOSE, type Framing, type RawFields } from "@headworks/http1";
import { compiledRoute, requestFor, routeWith, type RequestParts } from "../../../test/routing/requests.ts";
import { acceptedCodings, cacheKey, contentCoding, isUnchanged, mayStore, requestPolicyOf } from "./cache-rules.ts";

for (const [parts, expected] of [
  [{}, true],
  [{ fields: ["Accept", "*/*", "Orange", "1", "X-Tenants", "k", "Cache-Control", "no-cache"] }, true],
  [{ method: "HEAD" }, true],
  [{ method: "POST" }, false],
  [{ method: "get" }, false],
  [{ fields: ["Authorization", "Bearer x"] }, false],
  [{ fields: ["cOOkie", ""] }, false],
  [{ fields: ["Range", "bytes=0-1"] }, false],
] as const satisfies readonly (readonly [RequestParts, boolean])[]) {
  test(`not cached: neither GET nor HEAD, with body, Authorization/Cookie, upgrade: ${JSON.stringify(parts)} ${expected ? "may be" : "is not"}`, () => {
    const { fields = [], ...rest }: { fields?: readonly string[]; method?: string } = parts;
    assert.equal(requestPolicyOf(requestFor({ ...rest, fields: [...fields] }), []) !== undefined, expected);
  });
}

for (const name of ["X-API-Key", "X-Gateway-Key-Id", "x-gateway-signature"]) {
  test(`not cached: what only the upstream knows whose it is, by ${name}, unless the field or the consumer tells answers apart`, () => {
    const request = requestFor({ fields: [name, "k"] });
    assert.equal(requestPolicyOf(request, []), undefined);
    assert.ok(requestPolicyOf(request, [name.toLowerCase()]));
    assert.ok(requestPolicyOf(Object.assign(request, { consumer: { name: "alice" } }), []));
  });
}

const ok = (
  fields: readonly string[] = [],
  status = 200,
  framing: Framing = lengthFraming(5),
  cache: Partial<Cache> = {},
) => ({ fields, status, framing, cache }) as const;
for (const [what, { fields, status, framing, cache }, expected] of [
  ["a plain 200", ok(), true],
  ["of unknown length", ok([], 200, CHUNKED), true],
  ["until the end of the connection", ok([], 200, UNTIL_CLOSE), true],
  ["identity named", ok(["Content-Encoding", "Identity"]), true],
  ["Vary: Accept-Encoding of an answer that is not encoded", ok(["Vary", "accept-encoding"]), true],
  [
    "Vary of what the operator names",
    ok(["Vary", "Accept-Language, X-Tenant"], 200, undefined, { vary: ["x-tenant", "accept-language"] }),
    true,
  ],
  [
    "Vary of anything else",
    ok(["Vary", "Accept-Language", "vary", "X-Tenant"], 200, undefined, { vary: ["x-tenant"] }),
    false,
  ],
  ["Vary: *", ok(["Vary", "*"]), false],
  ["non-200", ok([], 203), false],
  ["a part", ok([], 206), false],
  ["not found", ok([], 404), false],
  ["in one coding", ok(["Content-Encoding", "gzip"]), true],
  ["in an unknown coding", ok(["Content-Encoding", "dcb"]), false],
  ["in two codings", ok(["Content-Encoding", "gzip", "Content-Encoding", "br"]), false],
  ["a length above max_body_bytes", ok([], 200, lengthFraming(6), { max_body_bytes: 5 }), false],
  ["a length above 1 MiB, the default", ok([], 200, lengthFraming(1024 * 1024 + 1)), false],
] as const) {
  test(`${expected ? "may be kept" : "not kept"}: ${what}`, () => {
    const head = { status, reason: "", fields: [...fields] };
    assert.equal(mayStore(head, framing, cache.vary ?? [], cache.max_body_bytes ?? 1024 * 1024), expected);
  });
}

function keyOf(
  parts: RequestParts & { readonly consumer?: string; readonly route?: string },
  vary: readonly string[] = [],
): string {
  const request = requestFor(parts);
  request.route = compiledRoute(routeWith(parts.route ?? "r", { path: { type: "prefix", value: "/" } }), 0);
  if (parts.consumer !== undefined) {
    request.consumer = { name: parts.consumer, groups: [], priority: undefined, credential: "api_key" };
  }
  return cacheKey(request, vary);
}

const language = (...values: string[]): { fields: RawFields } => ({
  fields: values.flatMap((value) => ["Accept-Language", value]),
});
for (const [what, one, other, vary, isSame] of [
  ["route", { route: "a" }, { route: "b" }, [], false],
  ["path", { target: "/a" }, { target: "/b" }, [], false],
  ["query", { target: "/?a=1" }, { target: "/?a=2" }, [], false],
  ["consumer", { consumer: "a" }, { consumer: "b" }, [], false],
  ["consumer and nobody", { consumer: "a" }, {}, [], false],
  ["host, which upstreams are told of", { host: "a.test" }, { host: "evil.test" }, [], false],
  ["host in another spelling", { host: "A.test" }, { host: "a.TEST" }, [], true],
  ["a field that vary names", language("de"), language("en"), ["accept-language"], false],
  ["such a field, and none", language(""), {}, ["accept-language"], false],
  ["such a field in two lines", language("de", "en"), language("de, en"), ["accept-language"], true],
  ["a field that vary does not name", language("de"), language("en"), ["accept"], true],
  ["consumer that looks like a path", { consumer: "a", target: "/b" }, { target: "/b" }, [], false],
] as const) {
  test(`key: route, consumer, path+query, vary values: ${what} ${isSame ? "is the same" : "differs"}`, () => {
    assert.equal(keyOf(one, vary) === keyOf(other, vary), isSame);
  });
}

const modified = "Sun, 06 Nov 1994 08:49:37 GMT";
for (const [request, kept, expected] of [
  [[], ["ETag", '"a"'], false],
  [["If-None-Match", '"a"'], ["ETag", '"a"'], true],
  [["If-None-Match", 'W/"a"'], ["ETag", '"a"'], true],
  [["If-None-Match", '"b", W/"a"'], ["ETag", 'W/"a"'], true],
  [["If-None-Match", '"b"', "If-None-Match", '"a"'], ["ETag", '"a"'], true],
  [["If-None-Match", '"ab"'], ["ETag", '"a"'], false],
  [["If-None-Match", "a"], ["ETag", '"a"'], false],
  [["If-None-Match", "*"], [], true],
  [["If-None-Match", '"a"'], [], false],
  [["If-None-Match", '"b"', "If-Modified-Since", modified], ["ETag", '"a"', "Last-Modified", modified], false],
  [["If-Modified-Since", modified], ["Last-Modified", modified], true],
  [["If-Modified-Since", "Sun, 06 Nov 1994 08:49:36 GMT"], ["Last-Modified", modified], false],
  [["If-Modified-Since", "yesterday"], ["Last-Modified", modified], false],
  [["If-Modified-Since", modified], [], false],
  [["If-Modified-Since", modified], ["Date", modified], true],
] as const) {
  test(`${request.join(" ")} of an answer with ${kept.join(" ")} is ${expected ? "304" : "200"}`, () => {
    assert.equal(isUnchanged([...request], [...kept]), expected);
  });
}

for (const [value, codings, same] of [
  ["gzip, deflate, br, zstd", ["br", "zstd", "gzip", "deflate"], "zstd;q=1,br , GZIP,deflate"],
  ["", [], "identity"],
  ["gzip;q=0, br;q=0.5", ["br"], "br, sdch"],
  ["gzip;q=0.5, br", ["br", "gzip"], "gzip, br"],
  ["x-gzip", ["gzip"], "gzip"],
  ["*;q=0", [], ""],
  ["identity, gzip;q=0.5", [], ""],
] as const) {
  test(`Accept-Encoding: ${value} is ${codings.join(", ")} to the cache, and means what "${same}" means`, () => {
    const accepted = acceptedCodings(["Accept-Encoding", value]);
    assert.deepEqual(accepted.codings, codings);
    assert.equal(accepted.identity, acceptedCodings(["Accept-Encoding", same]).identity);
  });
}

test("the coding of a response: its own name, identity for none, none that can be stored for several", () => {
  assert.deepEqual(
    [[], ["Content-Encoding", "X-GZip"], ["Content-Encoding", "identity, br"], ["Content-Encoding", "br, gzip"]].map(
      (fields) => contentCoding(fields),
    ),
    ["identity", "gzip", "br", undefined],
  );
});
