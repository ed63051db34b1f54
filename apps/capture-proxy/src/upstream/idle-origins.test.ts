import assert from "node:assert/strict";
import { test } from "node:test";
import { ConnectionHistory, type SharedRequest, type SharedResponse } from "./idle-origins.ts";

const request = (changes: Partial<SharedRequest> = {}, ...more: string[]): SharedRequest => ({
  method: "GET",
  fields: ["Host", "shop.example", "User-Agent", "browser/1", ...more],
  hasBody: false,
  upgrade: undefined,
  ...changes,
});
const response = (changes: Partial<SharedResponse> = {}): SharedResponse => ({
  version: "1.1",
  status: 200,
  fields: ["Content-Length", "0"],
  ...changes,
});

interface Exchanged {
  readonly request?: SharedRequest;
  readonly response?: SharedResponse;
}

function historyOf(exchanges: readonly Exchanged[]): ConnectionHistory {
  const history = new ConnectionHistory(0);
  for (const exchanged of exchanges) {
    history.requestSent(exchanged.request ?? request());
    history.responseStarted(exchanged.response ?? response());
  }
  return history;
}

const shared: Readonly<Record<string, readonly Exchanged[]>> = {
  "one GET": [{}],
  "sixty-four of them": Array.from({ length: 64 }, () => ({})),
  "a HEAD": [{ request: request({ method: "HEAD" }) }],
  "credentials of each request": [
    { request: request({}, "Authorization", "Bearer abc") },
    { request: request({}, "authorization", "basic YTpi") },
    { request: request({}, "Authorization", 'Digest username="a"') },
  ],
  "a redirection": [{ response: response({ status: 302 }) }],
  "a validation": [{ response: response({ status: 304 }) }],
  "something that is not there": [{ response: response({ status: 404 }) }],
};

for (const [what, exchanges] of Object.entries(shared)) {
  test(`a connection that carried ${what} may serve the same program again`, () => {
    assert.equal(historyOf(exchanges).agent, "browser/1");
  });
}

const owned: Readonly<Record<string, readonly Exchanged[]>> = {
  nothing: [],
  "sixty-five requests": Array.from({ length: 65 }, () => ({})),
  "a POST": [{ request: request({ method: "POST" }) }],
  "a POST before a GET": [{ request: request({ method: "POST" }) }, {}],
  "a DELETE": [{ request: request({ method: "DELETE" }) }],
  "a GET with a body": [{ request: request({ hasBody: true }) }],
  "an offer to upgrade": [{ request: request({ upgrade: "websocket" }) }],
  "credentials by NTLM": [{ request: request({}, "Authorization", "NTLM TlRMTVNTUAAB") }],
  "credentials by Negotiate": [{ request: request({}, "Authorization", "Negotiate YII=") }],
  "credentials by NTLM behind others": [
    { request: request({}, "Authorization", "Basic YTpi", "Authorization", "NTLM TlRMTVNTUAAB") },
  ],
  "credentials of an unknown kind": [{ request: request({}, "Authorization", "Basically YII=") }],
  "two programs": [{}, { request: request({ fields: ["Host", "shop.example", "User-Agent", "tool/2"] }) }],
  "a program and one that says nothing": [{}, { request: request({ fields: ["Host", "shop.example"] }) }],
  "a name longer than any program's": [{ request: request({ fields: ["User-Agent", "x".repeat(1025)] }) }],
  "a demand for credentials": [{ response: response({ status: 401 }) }],
  "a request that took too long": [{ response: response({ status: 408 }) }],
  "a name that the origin does not serve there": [{ response: response({ status: 421 }) }],
  "a limit that was reached": [{ response: response({ status: 429 }) }],
  "a failure": [{ response: response({ status: 500 }) }],
  "an answer in HTTP/1.0": [{ response: response({ version: "1.0" }) }],
  "another protocol": [{ response: response({ status: 101 }) }],
};

for (const [what, exchanges] of Object.entries(owned)) {
  test(`a connection that carried ${what} is not shared`, () => {
    assert.equal(historyOf(exchanges).agent, undefined);
  });
}

test("clients without User-Agent count as one program", () => {
  assert.equal(historyOf([{ request: request({ fields: [] }) }]).agent, "");
});

const waits: Readonly<Record<string, number>> = {
  "timeout=5": 4000,
  "timeout=5, max=100": 4000,
  "max=100,timeout=15": 14_000,
  "Timeout=60": 59_000,
  "timeout=1": 0,
  "timeout=0": -1000,
  "mytimeout=5": Number.POSITIVE_INFINITY,
  "timeout=soon": Number.POSITIVE_INFINITY,
  "max=100": Number.POSITIVE_INFINITY,
};

for (const [value, milliseconds] of Object.entries(waits)) {
  test(`"Keep-Alive: ${value}" of an origin is honoured`, () => {
    const history = historyOf([{ response: response({ fields: ["Keep-Alive", value] }) }]);
    assert.equal(history.originKeepsMs, milliseconds);
  });
}
