import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { RawResponse } from "@headworks/testkit";
import { startRewrites } from "./rewrites-rig.ts";
import type { RewritesRig } from "./rewrites-rig.ts";

let rig: RewritesRig;
before(async () => {
  rig = await startRewrites();
});
after(async () => await rig[Symbol.asyncDispose]());

const PAGE = "https://page.test";
const corsFields = ({ headers }: RawResponse): string[] =>
  headers
    .filter(([name]) => /^(?:access-control-|vary$)/i.test(name))
    .map(([name, value]) => `${name.toLowerCase()}: ${value}`)
    .toSorted();

test("allow_cors answers a preflight with everything it requests, without the origin", async () => {
  await rig.reset();
  await rig.rule({ type: "allow_cors" }, { direction: "both" });
  const before = rig.origin.requests.length;
  const response = await rig.client.fetch({
    method: "OPTIONS",
    url: `${rig.origin.url}/orders`,
    headers: [
      ["Origin", PAGE],
      ["Access-Control-Request-Method", "PUT"],
      ["Access-Control-Request-Headers", "authorization,x-mine"],
      ["Access-Control-Request-Private-Network", "true"],
    ],
  });
  assert.equal(response.status, 204);
  assert.deepEqual(corsFields(response), [
    "access-control-allow-credentials: true",
    "access-control-allow-headers: authorization,x-mine",
    "access-control-allow-methods: PUT",
    `access-control-allow-origin: ${PAGE}`,
    "access-control-allow-private-network: true",
    "access-control-max-age: 5",
    "vary: Origin, Access-Control-Request-Method, Access-Control-Request-Headers",
  ]);
  assert.equal(rig.origin.requests.length, before);
  assert.match((await rig.trace()).join("\n"), /answered the preflight of https:\/\/page\.test for PUT/);
});

test("allow_cors makes responses readable with credentials, instead of the origin's CORS fields", async () => {
  await rig.reset((_request, response) => {
    response.setHeader("X-Total", "3");
    response.setHeader("Vary", "Accept");
    response.setHeader("Access-Control-Allow-Origin", "*");
    response.end("here");
  });
  await rig.rule({ type: "allow_cors" }, { direction: "both" });
  const response = await rig.client.fetch({ url: `${rig.origin.url}/`, headers: [["Origin", PAGE]] });
  const [credentials, origin, exposed, ...vary] = corsFields(response);
  assert.deepEqual(
    [credentials, origin],
    ["access-control-allow-credentials: true", `access-control-allow-origin: ${PAGE}`],
  );
  assert.match(exposed ?? "", /^access-control-expose-headers: .*x-total/);
  assert.deepEqual(vary, ["vary: Accept", "vary: Origin"]);
});

test("allow_cors in front of a file answers the preflight and makes the file readable, and requires both directions", async () => {
  await rig.reset();
  const rewrites = [{ type: "allow_cors" }, { type: "map_to_file", path: "missing.txt" }];
  const rule = { name: "file", condition: { type: "all" }, rewrites };
  assert.equal((await rig.api("POST", "/rewrites", { ...rule, direction: "both" })).status, 201);
  const preflight = await rig.client.fetch({
    method: "OPTIONS",
    url: `${rig.origin.url}/`,
    headers: [
      ["Origin", PAGE],
      ["Access-Control-Request-Method", "GET"],
    ],
  });
  assert.equal(preflight.status, 204);
  const file = await rig.client.fetch({ url: `${rig.origin.url}/`, headers: [["Origin", PAGE]] });
  assert.deepEqual([file.status, corsFields(file)[1]], [404, `access-control-allow-origin: ${PAGE}`]);
  for (const direction of ["request", "response"]) {
    const refused = await rig.api("POST", "/rewrites", { ...rule, direction });
    assert.equal(refused.status, 400);
    assert.match(JSON.stringify(refused.json), /it must be both/);
  }
});

test("allow_cors does not change requests that are neither preflights nor cross-origin", async () => {
  await rig.reset((request, response) => void response.end(request.method));
  await rig.rule({ type: "allow_cors", max_age_secs: 60 }, { direction: "both" });
  const options = await rig.client.fetch({ method: "OPTIONS", url: `${rig.origin.url}/` });
  assert.deepEqual([options.status, options.body.toString(), corsFields(options)], [200, "OPTIONS", []]);
});
