import assert from "node:assert/strict";
import { test } from "node:test";
import { NOT_READ } from "@headworks/match-condition";
import type { MatchSubject } from "@headworks/match-condition";
import type { RequestMessage, ResponseMessage } from "#exchange/exchange.ts";
import { ExchangeSubject } from "./exchange-subject.ts";

const message = (path: string): RequestMessage => ({
  method: "GET",
  scheme: "https",
  host: "api.test",
  port: 8443,
  path,
  version: "HTTP/1.1",
  fields: ["Host", "api.test:8443"],
  trailers: undefined,
});
const response: ResponseMessage = {
  status: 404,
  reason: "Not Found",
  version: "HTTP/1.1",
  fields: ["Age", "1"],
  trailers: undefined,
};

const urlParts = ({ url, path, query, port }: MatchSubject): unknown[] => [url, path, query, port];

test("a subject reads the current messages, not the original ones", () => {
  const exchange = { request: message("/a?x=1?y"), response: response };
  const subject = new ExchangeSubject(exchange, "response");
  assert.deepEqual(urlParts(subject), ["https://api.test:8443/a?x=1?y", "/a", "x=1?y", 8443]);
  exchange.request = { ...message("/b"), port: 443 };
  assert.deepEqual(urlParts(subject), ["https://api.test/b", "/b", "", 443]);
  const original = new ExchangeSubject(exchange, "response", undefined, message("/before"));
  assert.deepEqual(urlParts(original), ["https://api.test:8443/before", "/before", "", 8443]);
  assert.equal(original.status, 404);
});

test("a subject in the request phase has no response", () => {
  const exchange = { request: message("/"), response: response };
  const texts = { request: "asked", response: "answered" };
  const early = new ExchangeSubject(exchange, "request", texts);
  assert.deepEqual([early.status, early.responseFields(), early.responseText()], [undefined, [], undefined]);
  assert.equal(early.requestText(), "asked");
  const late = new ExchangeSubject(exchange, "response", texts);
  assert.deepEqual([late.status, late.responseFields(), late.responseText()], [404, ["Age", "1"], "answered"]);
  assert.equal(new ExchangeSubject(exchange, "response").responseText(), NOT_READ);
});
