import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { startOrigin } from "@headworks/testkit";
import { ECHO_PORT, echo, sink, SINK_PORT } from "./quickstart-origins.ts";

test("the echo server responds with the request", async () => {
  await using origin = await startOrigin({ handler: echo });
  const response = await fetch(`${origin.url}/a?b`, { method: "POST", body: "hello" });
  const seen = (await response.json()) as Record<string, unknown>;
  assert.deepEqual([seen["method"], seen["path"], seen["body"]], ["POST", "/a?b", "hello"]);
});

test("the receiver prints each event in one line without terminal sequences", async () => {
  const lines: string[] = [];
  await using origin = await startOrigin({ handler: sink((line) => lines.push(line)) });
  assert.equal((await fetch(origin.url, { method: "POST", body: '{"kind":"x"}\u001b[2J\n' })).status, 204);
  assert.deepEqual(lines, ['webhook: {"kind":"x"}.[2J.']);
});

test("the quickstart has the ports of these servers", () => {
  const text = readFileSync(new URL("../examples/gateway/quickstart.yaml", import.meta.url), "utf8");
  assert.ok(text.includes(`port: ${ECHO_PORT} `));
  assert.ok(text.includes(`127.0.0.1:${SINK_PORT}/`));
});
