import assert from "node:assert/strict";
import { test } from "node:test";
import type { FieldChanges, Transforms } from "@headworks/gateway-contract";
import { issuesOf, issuesOfRoute } from "../../../test/route-documents.ts";
import { decoratorOf, documentOf, routeWith } from "../../../test/routing/requests.ts";
import { transforms } from "./transforms.slice.ts";

const request = (headers: FieldChanges): Transforms => ({ request: { headers } });
const response = (headers: FieldChanges): Transforms => ({ response: { headers } });
const CASES: readonly (readonly [string, Transforms, readonly string[]])[] = [
  [
    "plain headers",
    { ...request({ set: { "X-A": "1" }, rename: { A: "B" } }), ...response({ remove: ["Server"] }) },
    [],
  ],
  [
    "framing of requests",
    request({ set: { "Content-Length": "5" }, add: { "transfer-encoding": "chunked" } }),
    ["bad_header request.headers.set.Content-Length", "bad_header request.headers.add.transfer-encoding"],
  ],
  [
    "framing of answers",
    response({ remove: ["X", "content-length"], rename: { A: "Connection", Upgrade: "B" } }),
    [
      "bad_header response.headers.rename.A",
      "bad_header response.headers.rename.Upgrade",
      "bad_header response.headers.remove.1",
    ],
  ],
  [
    "ids of answers",
    response({ set: { "x-request-id": "1" }, add: { "X-Correlation-Id": "1" }, remove: ["X-Request-Id"] }),
    [
      "bad_header response.headers.set.x-request-id",
      "bad_header response.headers.add.X-Correlation-Id",
      "bad_header response.headers.remove.0",
    ],
  ],
  ["an id that requests get by the operator", request({ set: { "X-Request-Id": "1" } }), []],
  ["the host", request({ set: { Host: "a" } }), ["bad_header request.headers.set.Host"]],
  ["an identity set by the operator", request({ set: { "X-Forwarded-Prefix": "/v1", "X-Consumer-Tier": "gold" } }), []],
  ...["X-Consumer-Name", "x_consumer_groups", "X-Forwarded-For", "X-Real-IP", "Forwarded"].map(
    (to) =>
      [
        `an identity written by clients: ${to}`,
        request({ rename: { "X-Any": to } }),
        ["bad_header request.headers.rename.X-Any"],
      ] as const,
  ),
  ["an identity shown to clients", response({ rename: { "X-Any": "X-Consumer-Name" } }), []],
];
for (const [name, block, issues] of CASES) {
  test(`transforms rules: ${name} ${issues.length === 0 ? "may be changed" : "may not"}`, () => {
    const found = issuesOfRoute(transforms, { transforms: block });
    assert.deepEqual(
      found.map((issue) => issue.replace("routes.0.transforms.", "")),
      issues,
    );
  });
}

test("transforms rules: request transforms of a route without an upstream are a warning", () => {
  const found = issuesOfRoute(transforms, {
    transforms: request({ set: { A: "1" } }),
    action: { type: "respond", status: 200 },
  });
  assert.deepEqual(found, ["warning unused routes.0.transforms.request"]);
});

test("transforms: refusals of the gateway are not changed, and a route without the block costs nothing", () => {
  const path = { type: "prefix", value: "/" } as const;
  const decorator = decoratorOf(transforms, routeWith("r", { path }, { transforms: response({ set: { A: "1" } }) }));
  assert.equal(decorator?.on, "action-responses");
  assert.equal(decoratorOf(transforms, routeWith("r", { path })), undefined);
});

test("transforms rules: the field that the document names for ids is that of the gateway, and the usual one is free", () => {
  const found = issuesOf(transforms, {
    ...documentOf([
      routeWith(
        "r",
        { path: { type: "prefix", value: "/" } },
        { transforms: response({ set: { "X-Trace": "1", "X-Request-Id": "1" } }) },
      ),
    ]),
    gateway: { request_id_header: "x-trace" },
  });
  assert.deepEqual(found, ["bad_header routes.0.transforms.response.headers.set.X-Trace"]);
});
