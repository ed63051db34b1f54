import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { decodeValue, span } from "./decoded-value.ts";

const now = Date.parse("2026-01-01T00:00:00Z");
const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
const token = (payload: object) => `${part({ alg: "HS256", typ: "JWT" })}.${part(payload)}.c2ln`;

test("a bearer token shows its expiry, and its claims with readable times", () => {
  const decoded = decodeValue("Authorization", `Bearer ${token({ sub: "42", exp: now / 1000 + 660 })}`, now);
  assert.equal(decoded?.mark, "JWT, expires in 11 min");
  assert.deepEqual(
    decoded?.details.find(([name]) => name === "sub"),
    ["sub", "42"],
  );
  assert.match(decoded?.details.find(([name]) => name === "exp")?.[1] ?? "", /2026-01-01 00:11:00 UTC/u);
});

test("a token that has expired or is not valid yet is a warning", () => {
  assert.equal(
    decodeValue("authorization", `Bearer ${token({ exp: now / 1000 - 7200 })}`, now)?.mark,
    "JWT, expired 2 h ago",
  );
  assert.equal(decodeValue("authorization", `Bearer ${token({ nbf: now / 1000 + 60 })}`, now)?.tone, "warning");
});

test("a token is found in any field, also inside other text", () => {
  assert.match(decodeValue("x-session", `token=${token({ a: 1 })};`, now)?.mark ?? "", /^JWT/u);
});

test("Basic credentials are shown as user name and password", () => {
  const decoded = decodeValue("authorization", `Basic ${Buffer.from("ann:se:cret").toString("base64")}`, now);
  assert.deepEqual(decoded?.details, [
    ["user name", "ann"],
    ["password", "se:cret"],
  ]);
});

test("cookies are counted, and Set-Cookie shows its lifetime", () => {
  assert.equal(decodeValue("cookie", "a=1; b=2", now)?.mark, "2 cookies");
  assert.equal(decodeValue("set-cookie", "sid=x; Max-Age=3600; HttpOnly", now)?.mark, "sid: expires in 1 h");
  assert.equal(decodeValue("set-cookie", "sid=; Max-Age=0", now)?.tone, "warning");
  assert.equal(decodeValue("set-cookie", "sid=x; Path=/", now)?.mark, "sid: Session cookie");
});

test("decoding never throws", () => {
  const name = fc.constantFrom("authorization", "cookie", "set-cookie", "x-other");
  const value = fc.oneof(
    fc.string(),
    fc.string().map((text) => `Bearer eyJ${text}.eyJ${text}.x`),
    fc.base64String().map((text) => `Basic ${text}`),
  );
  fc.assert(fc.property(name, value, (field, text) => void decodeValue(field, text, now)));
});

test("durations use their largest unit", () => {
  assert.deepEqual([5000, 60_000, 7_200_000, 86_400_000 * 40, 3e12].map(span), ["5 s", "1 min", "2 h", "40 d", "95 y"]);
});
