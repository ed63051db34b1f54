import assert from "node:assert/strict";
import { test } from "node:test";
import type { RequestData, ResponseData } from "@headworks/capture-contract";
import { parseSetCookie } from "@headworks/http-fields";
import { cookieConcerns, cookieCount, cookieLife } from "./cookie-rows.ts";

test("cookies of all fields in both directions are counted", () => {
  const request = {
    headers_list: [
      ["Cookie", "a=1; b=2"],
      ["cookie", "c=3"],
    ],
  } as unknown as RequestData;
  const response = { headers_list: [["Set-Cookie", "d=4"]] } as unknown as ResponseData;
  assert.equal(cookieCount({ request, response }), 4);
  assert.equal(cookieCount({ request, response: null }), 3);
});

test("a cookie's life is told in words", () => {
  const now = Date.parse("2026-01-01T00:00:00Z");
  assert.equal(cookieLife(parseSetCookie("a=1"), now), "Session");
  assert.equal(cookieLife(parseSetCookie("a=1; Max-Age=120"), now), "2 min");
  assert.equal(cookieLife(parseSetCookie("a=1; Max-Age=-1"), now), "Removed");
  assert.equal(cookieLife(parseSetCookie("a=1; Expires=Fri, 02 Jan 2026 00:00:00 GMT"), now), "1 d");
});

test("cookies that browsers refuse are named", () => {
  assert.deepEqual(cookieConcerns(parseSetCookie("a=1; Secure; HttpOnly; SameSite=Lax"), true), []);
  assert.match(cookieConcerns(parseSetCookie("a=1; SameSite=None"), true)[0] ?? "", /without Secure/u);
  assert.match(cookieConcerns(parseSetCookie("a=1; Secure"), false)[0] ?? "", /plain HTTP/u);
  assert.match(cookieConcerns(parseSetCookie("__Host-a=1; Secure"), true)[0] ?? "", /__Host-/u);
});
