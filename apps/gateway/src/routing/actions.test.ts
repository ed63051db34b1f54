import assert from "node:assert/strict";
import { test } from "node:test";
import type { Action } from "@headworks/gateway-contract";
import { compileResponseAction } from "./actions.ts";
import { routeWith } from "../../test/routing/requests.ts";

const path = { type: "prefix", value: "/" } as const;

function response(action: Action, target = "/a/b?c=d", authority: string | undefined = "gw.test:8080") {
  return compileResponseAction(routeWith("r", { path }, { action }))({ target, authority });
}

type Redirect = Extract<Action, { type: "redirect" }>;
const REDIRECTS: readonly (readonly [string, Omit<Redirect, "type" | "status">, string])[] = [
  ["scheme and host: absolute, path and query kept", { scheme: "https", host: "b.test" }, "https://b.test/a/b?c=d"],
  ["host alone: the scheme of the request", { host: "b.test" }, "//b.test/a/b?c=d"],
  ["path alone: same host", { path: "/new" }, "/new"],
  ["a path replaces the query too", { scheme: "https", host: "b.test", path: "/new?x=1" }, "https://b.test/new?x=1"],
  ["nothing: path and query of the request", {}, "/a/b?c=d"],
  ["a port", { scheme: "https", host: "b.test", port: 8443 }, "https://b.test:8443/a/b?c=d"],
  ["a host with a port of its own", { scheme: "http", host: "b.test:81" }, "http://b.test:81/a/b?c=d"],
  ["scheme alone: the host of the request without its port", { scheme: "https" }, "https://gw.test/a/b?c=d"],
  ["port alone: the host of the request with that port", { port: 9443 }, "//gw.test:9443/a/b?c=d"],
];
for (const [name, fields, location] of REDIRECTS) {
  test(`redirect with ${name}`, () => {
    const got = response({ type: "redirect", status: 308, ...fields });
    assert.deepEqual(got, { status: 308, fields: ["Location", location], body: "" });
  });
}

test("redirect keeps the host of an IPv6 request", () => {
  const got = response({ type: "redirect", status: 301, scheme: "https" }, "/", "[::1]:80");
  assert.deepEqual(got, { status: 301, fields: ["Location", "https://[::1]/"], body: "" });
});

test("a path that begins with // is not taken for a host by a redirect", () => {
  const got = response({ type: "redirect", status: 302 }, "//evil.test/x");
  assert.ok("status" in got);
  const location = new URL(got.fields[1] ?? "", "http://gw.test:8080/");
  assert.equal(location.host, "gw.test:8080");
  assert.equal(location.pathname, "//evil.test/x");
});

test("a redirect that needs the host of a request without one is refused", () => {
  const got = compileResponseAction(
    routeWith("r", { path }, { action: { type: "redirect", status: 301, scheme: "https" } }),
  )({
    target: "/",
    authority: undefined,
  });
  assert.deepEqual(got, { code: "bad_request", message: "The request does not say for which host it is" });
});

for (const target of ["/a\r\nSet-Cookie: x=y", "/a b", "/é", "/a\u0000"]) {
  test(`a redirect to ${JSON.stringify(target)} is refused: it cannot be written as a header`, () => {
    assert.deepEqual(response({ type: "redirect", status: 301 }, target), { code: "invalid_redirect_target" });
  });
}

test("respond sends text/plain by default", () => {
  const got = response({ type: "respond", status: 404, body: "gone" });
  assert.deepEqual(got, { status: 404, fields: ["Content-Type", "text/plain"], body: Buffer.from("gone") });
});

test("respond declares the encoding of text beyond ASCII", () => {
  const got = response({ type: "respond", status: 200, body: "é" });
  assert.deepEqual(got, {
    status: 200,
    fields: ["Content-Type", "text/plain; charset=utf-8"],
    body: Buffer.from([0xc3, 0xa9]),
  });
});

test("respond: a configured content type replaces the default, in any letter case; headers keep order and spelling", () => {
  const headers = { "X-A": "1", "content-TYPE": "application/json", b: "é" };
  const got = response({ type: "respond", status: 200, headers, body: "{}" });
  assert.ok("status" in got);
  assert.deepEqual(got.fields, ["X-A", "1", "content-TYPE", "application/json", "b", "\u00c3\u00a9"]);
});

test("respond without content has no content type", () => {
  for (const status of [204, 304]) {
    assert.deepEqual(response({ type: "respond", status }), { status, fields: [], body: "" });
  }
});

test("respond: changes to the fields of one response do not affect the next", () => {
  const respond = compileResponseAction(
    routeWith("r", { path }, { action: { type: "respond", status: 200, body: "a" } }),
  );
  const first = respond({ target: "/", authority: undefined });
  assert.ok("status" in first);
  first.fields.push("X", "1");
  const second = respond({ target: "/", authority: undefined });
  assert.ok("status" in second);
  assert.deepEqual(second.fields, ["Content-Type", "text/plain"]);
});

test("a proxy route has no response of its own", () => {
  assert.throws(() => compileResponseAction(routeWith("r", { path })), TypeError);
});
