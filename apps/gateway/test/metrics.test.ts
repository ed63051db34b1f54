import assert from "node:assert/strict";
import { test } from "node:test";
import { startOrigin } from "@headworks/testkit";
import { serving, startGateway } from "./gateway-rig.ts";

test("/metrics on a listener tells of requests, upstreams, events and the generation", async () => {
  await using origin = await startOrigin();
  await using gateway = await startGateway({
    ...serving("api", [origin.port], { breaker: {} }),
    routes: [
      {
        name: "r",
        service: "api",
        match: { path: { type: "prefix", value: "/" } },
        action: { type: "proxy" },
        deprecation: { since: "Sun, 06 Nov 1994 08:49:37 GMT" },
      },
    ],
  });
  await gateway.send({ path: "/x" });
  const answer = await gateway.send({ path: "/metrics" });
  assert.match(answer.header("content-type") ?? "", /^text\/plain; version=0\.0\.4/);
  const text = answer.body.toString();
  for (const line of [
    'requests_total{route="r",listener="public",status_class="2xx"} 1',
    'gateway_deprecated_requests_total{route="r",consumer="anonymous"} 1',
    `upstream_attempts_total{upstream="api",endpoint="127.0.0.1:${origin.port}",status_class="2xx"} 1`,
    'breaker_state{upstream="api"} 0',
    "config_generation 1",
    "gateway_events_emitted_total 1",
  ]) {
    assert.ok(text.split("\n").includes(line), `${line}\nin\n${text}`);
  }
  const [line] = gateway.log.filter(({ msg }) => msg === "access");
  assert.deepEqual([line?.["route"], line?.["status"], line?.["upstream"]], ["r", 200, "api"]);
});
