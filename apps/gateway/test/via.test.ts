import assert from "node:assert/strict";
import { connect } from "node:http2";
import { test } from "node:test";
import { fieldValues } from "@headworks/http1";
import { startOrigin, type Origin } from "@headworks/testkit";
import type { DocumentInput } from "@headworks/gateway-contract";
import { serving, startGateway, type TestGateway } from "./gateway-rig.ts";
import { errorOf, proxied, responding } from "./route-documents.ts";
import { agentsOfWorkers, get, startWorkers } from "./workers-rig.ts";

const to = (port: number, more: Partial<DocumentInput> = {}): DocumentInput => ({
  ...serving("api", [port]),
  routes: [proxied("api")],
  ...more,
});

/** All of Via that the origin got, request by request. */
const viaAt = (origin: Origin): string[] =>
  origin.requests.map(({ rawHeaders }) => fieldValues([...rawHeaders], "via").join(", "));

const throughHttp2 = async (port: number): Promise<void> => {
  const session = connect(`http://127.0.0.1:${port}`);
  const stream = session.request({ ":path": "/" });
  stream.resume();
  await new Promise((resolve, reject) => stream.once("close", resolve).once("error", reject));
  session.close();
};

test("Via: upstreams learn which gateway a request came through and in which version it arrived, behind who was before", async () => {
  await using origin = await startOrigin({});
  await using gateway = await startGateway(to(origin.port, { gateway: { name: "edge" } }));
  await gateway.send({ path: "/" });
  await gateway.send({ path: "/", fields: ["Via: 1.0 fred", "Via: 1.1 cdn (a comment)"] });
  await throughHttp2(gateway.port());
  const [plain = "", behind, newer] = viaAt(origin);
  assert.match(plain, /^1\.1 edge-[0-9a-f]{16}$/);
  assert.equal(behind, `1.0 fred, 1.1 cdn (a comment), ${plain}`);
  assert.equal(newer, plain.replace("1.1", "2.0"));
});

test("Via: clients learn nothing of it unless the document says so, and the upstream's own stays", async () => {
  await using origin = await startOrigin({
    handler: (_request, response) => response.writeHead(200, { Via: "1.1 app" }).end(),
  });
  await using gateway = await startGateway(to(origin.port));
  assert.deepEqual((await gateway.send({ path: "/" })).header("via"), "1.1 app");
  await gateway.reload(to(origin.port, { via: { requests: false, answers: true } }));
  const response = await gateway.send({ path: "/" });
  const [own, ours] = fieldValues(response.headers.flat(), "via");
  assert.equal(own, "1.1 app");
  assert.match(ours ?? "", /^1\.1 gateway-[0-9a-f]{16}$/);
  assert.equal(viaAt(origin)[1], "", "requests: false");
});

test("Via: an answer that the gateway makes itself has none", async () => {
  await using gateway = await startGateway({ via: { answers: true }, routes: [responding("r")] });
  assert.equal((await gateway.send({ path: "/" })).header("via"), undefined);
});

async function inLoop(gateway: TestGateway, more: Partial<DocumentInput> = {}): Promise<void> {
  const outcome = await gateway.reload(to(gateway.port(), more));
  assert.equal(outcome.outcome, "published");
}

const countOf = async (gateway: TestGateway, status: string): Promise<number> => {
  const { body } = await gateway.send({ path: "/metrics" });
  const sample = `requests_total{route="api",listener="public",status_class="${status}"} `;
  return Number(
    body
      .toString()
      .split("\n")
      .find((line) => line.startsWith(sample))
      ?.slice(sample.length),
  );
};

test("loop detection: a route whose upstream is the gateway itself ends with 508 loop_detected at the second pass", async () => {
  await using gateway = await startGateway(to(1));
  await inLoop(gateway);
  const response = await gateway.send({ path: "/" });
  assert.deepEqual([response.status, errorOf(response).code], [508, "loop_detected"]);
  assert.equal(await countOf(gateway, "5xx"), 2);
});

test("loop detection: max_passes lets a request through so often, and charges no budget for the last one", async () => {
  await using gateway = await startGateway(to(1));
  await inLoop(gateway, {
    via: { max_passes: 3 },
    policies: [{ name: "four", rate_limits: [{ selector: ["route"], requests_per: { hour: 4 } }] }],
    routes: [proxied("api", "/", { policies: ["four"] })],
  });
  const first = await gateway.send({ path: "/" });
  assert.deepEqual([first.status, errorOf(first).code], [508, "loop_detected"]);
  assert.equal(await countOf(gateway, "5xx"), 4, "three passes, and the one that was refused");
  assert.equal((await gateway.send({ path: "/" })).status, 429, "the fifth of four, inside the loop");
});

test("loop detection: two gateways of the same name behind each other are no loop, to and fro is one", async () => {
  await using origin = await startOrigin({});
  await using inner = await startGateway(to(origin.port));
  await using outer = await startGateway(to(inner.port()));
  assert.equal((await outer.send({ path: "/" })).status, 200);
  await inner.reload(to(outer.port()));
  const response = await outer.send({ path: "/" });
  assert.deepEqual([response.status, errorOf(response).code], [508, "loop_detected"]);
});

test("Via: the workers of one gateway are one instance", async () => {
  await using origin = await startOrigin({});
  await using gateway = await startWorkers(to(origin.port));
  const agents = await agentsOfWorkers(gateway);
  for (const agent of agents) {
    await get(gateway.port, "/", { agent });
    agent.destroy();
  }
  const seen = viaAt(origin);
  assert.deepEqual([seen.length, new Set(seen).size], [2, 1]);
});
