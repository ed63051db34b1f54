import assert from "node:assert/strict";
import { test } from "node:test";
import { fakeRow } from "../../../../test/fake-rows.ts";
import {
  barTone,
  isOpen,
  portSuffix,
  protocolLabel,
  rowSentence,
  statusTone,
  tunnelPort,
  typeLabel,
} from "./cell-text.ts";

test("types are short, and images show their format", () => {
  assert.equal(typeLabel(fakeRow(1, { resource_type: "document" })), "html");
  assert.equal(typeLabel(fakeRow(1, { resource_type: "image", response_content_type: "image/webp" })), "webp");
  assert.equal(typeLabel(fakeRow(1, { resource_type: "image", response_content_type: "image/svg+xml" })), "svg");
  assert.equal(typeLabel(fakeRow(1, { resource_type: "image", response_content_type: null })), "image");
  assert.equal(typeLabel(fakeRow(1, { resource_type: "grpc" })), "grpc");
});

const tunnel = { is_passthrough: true, resource_type: "tunnel", method: "CONNECT", path: "/" } as const;
const socks = { ...tunnel, http_version: "SOCKS5" };

test("channels show their protocol", () => {
  const cases: readonly [Parameters<typeof fakeRow>[1], type: string, protocol: string][] = [
    [tunnel, "tunnel", "CONNECT"],
    [socks, "socks", "SOCKS5"],
    [{ resource_type: "websocket" }, "ws", "WebSocket"],
    [{ resource_type: "websocket", http_version: "HTTP/2" }, "ws", "WebSocket, HTTP/2"],
    [{ resource_type: "event-stream" }, "sse", "HTTP/1.1"],
    [{ resource_type: "grpc", http_version: "HTTP/2" }, "grpc", "gRPC, HTTP/2"],
    [{}, "json", "HTTP/1.1"],
    [{ http_version: null }, "json", "—"],
  ];
  for (const [changes, type, protocol] of cases) {
    const row = fakeRow(1, changes);
    assert.deepEqual([typeLabel(row), protocolLabel(row)], [type, protocol]);
    assert.equal(barTone(row), type === "json" ? "data" : "stream");
  }
});

test("a tunnel shows its port, since it has no path", () => {
  assert.equal(tunnelPort(fakeRow(1)), null);
  assert.equal(tunnelPort(fakeRow(1, { ...tunnel, url: "https://a.example/" })), "port 443");
  assert.equal(tunnelPort(fakeRow(1, { ...tunnel, url: "tcp://a.example:8443/" })), "port 8443");
  assert.equal(tunnelPort(fakeRow(1, { ...tunnel, url: "tcp://[::1]:80/" })), "port 80");
  assert.equal(tunnelPort(fakeRow(1, { ...tunnel, url: "what" })), null);
  assert.equal(rowSentence(fakeRow(1, { ...tunnel, url: "tcp://a.example:22/" })), "tunnel to a.example, port 22, 200");
});

test("a host is shown with a non-default port", () => {
  const cases: readonly [url: string, suffix: string][] = [
    ["https://a.example/x", ""],
    ["https://a.example:443/x", ""],
    ["http://a.example:443/x", ":443"],
    ["http://localhost:8080/x", ":8080"],
    ["wss://[::1]:9000/x", ":9000"],
    ["ws://a.example/x", ""],
    ["what", ""],
  ];
  for (const [url, suffix] of cases) assert.equal(portSuffix(fakeRow(1, { url })), suffix, url);
  assert.equal(portSuffix(fakeRow(1, { ...tunnel, url: "tcp://a.example:22/" })), "");
  const row = fakeRow(1, { method: "GET", host: "localhost", path: "/x", url: "http://localhost:8080/x" });
  assert.equal(rowSentence(row), "GET localhost:8080/x, 200");
});

test("a channel is open from its response to its end", () => {
  assert.equal(isOpen(fakeRow(1, { resource_type: "websocket", state: "pending", status_code: 101 })), true);
  assert.equal(isOpen(fakeRow(1, { resource_type: "websocket", state: "pending", status_code: null })), false);
  assert.equal(isOpen(fakeRow(1, { resource_type: "websocket", state: "complete", status_code: 101 })), false);
  assert.equal(isOpen(fakeRow(1, { state: "pending" })), false);
});

test("failures determine the colour before everything else", () => {
  assert.equal(statusTone({ state: "failed", status_code: 200 }), "failed");
  assert.equal(statusTone({ state: "closed", status_code: 200 }), "ok");
  assert.equal(statusTone({ state: "pending", status_code: null }), "waiting");
  assert.equal(statusTone({ state: "complete", status_code: 101 }), "ok");
  assert.equal(statusTone({ state: "complete", status_code: 304 }), "redirect");
  assert.equal(statusTone({ state: "complete", status_code: 599 }), "server");
  assert.equal(barTone(fakeRow(1, { method: "POST", status_code: 503 })), "server");
  assert.equal(barTone(fakeRow(1, { method: "POST" })), "change");
  assert.equal(barTone(fakeRow(1, { method: "POST", resource_type: "grpc" })), "stream");
  assert.equal(barTone(fakeRow(1)), "data");
});

test("a row is described in one sentence", () => {
  assert.equal(rowSentence(fakeRow(7)), "GET a.example/7, 200");
  assert.equal(
    rowSentence(fakeRow(7, { state: "failed", status_code: null, failure_code: "UPSTREAM_REFUSED" })),
    "GET a.example/7, failed, UPSTREAM_REFUSED",
  );
  assert.equal(rowSentence(fakeRow(7, { state: "pending", status_code: null })), "GET a.example/7, waiting");
});
