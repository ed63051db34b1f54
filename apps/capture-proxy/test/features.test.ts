import assert from "node:assert/strict";
import { test } from "node:test";
import type { StreamSummary } from "@headworks/capture-contract";
import { frameMessage } from "@headworks/grpc-framing";
import { temporaryDirectory } from "@headworks/testkit";
import { pino } from "pino";
import { createProxy } from "#proxy.ts";
import { startProxyRig } from "./proxy-rig.ts";

const GRPC_WEB = { "content-type": "application/grpc-web+proto" };

test("without the feature grpc calls pass and are entries, nothing of them is decoded, and its operations answer 501", async () => {
  await using rig = await startProxyRig({ "disable-feature": "grpc" });
  const body = frameMessage(Buffer.from("a"));
  rig.respond = (seen, response) => void response.writeHead(200, GRPC_WEB).end(seen.body);
  const got = await rig.send({ method: "POST", path: "/shop.v1.Orders/Get", headers: GRPC_WEB, body });
  assert.deepEqual(got.body, body);
  const entries = await rig.api<unknown[]>("GET", "/traffic?q=grpc.service:Orders");
  assert.equal(entries.length, 1);
  assert.deepEqual(await rig.api<StreamSummary[]>("GET", "/streams"), []);
  for (const [method, path, sent] of [
    ["GET", "/grpc/streams", undefined],
    ["GET", "/grpc/frames?color=red", undefined],
    ["POST", "/grpc/clear", undefined],
    ["POST", "/grpc/schemas", { nonsense: true }],
  ] as const) {
    const { code, error } = await rig.api<{ code: string; error: string }>(method, path, sent, 501);
    assert.deepEqual([code, error], ["NOT_IMPLEMENTED", "The feature grpc is switched off (disabled_features)"]);
  }
});

test("without the feature scripting its operations answer 501", async () => {
  await using rig = await startProxyRig({ "disable-feature": "scripting" });
  for (const [method, path, sent] of [
    ["GET", "/scripts", undefined],
    ["POST", "/scripts", { nonsense: true }],
    ["GET", "/scripts/config", undefined],
    ["GET", "/traffic/any/script-traces", undefined],
  ] as const) {
    const { code, error } = await rig.api<{ code: string; error: string }>(method, path, sent, 501);
    assert.deepEqual([code, error], ["NOT_IMPLEMENTED", "The feature scripting is switched off (disabled_features)"]);
  }
});

test("a feature that there is not cannot be switched off", async () => {
  await using directory = await temporaryDirectory();
  const options = { dataDir: directory.path, environment: {}, log: pino({ level: "silent" }) };
  await assert.rejects(createProxy({ ...options, flags: { "disable-feature": "http" } }), /disable-feature.*grpc/);
});
