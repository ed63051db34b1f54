import assert from "node:assert/strict";
import { test } from "node:test";
import { decorated, decoratorOf, routeWith } from "../../../test/routing/requests.ts";
import { acceptVary } from "./accept-vary.slice.ts";

const path = { type: "prefix", value: "/v1" } as const;
const route = routeWith("r", { path, accept: "application/vnd.a+json" });

test("accept rule 3: every response of a route with accept carries Vary: Accept", () => {
  const decorator = decoratorOf(acceptVary, route);
  assert.equal(decorator?.on, "every-route-response");
  for (const origin of ["upstream", "action", "short-circuit"] as const) {
    assert.deepEqual(decorated(decorator, ["A", "1"], origin), ["A", "1", "Vary", "Accept"]);
  }
});

test("accept rule 3: it is folded into one line with Vary: Origin and Vary: Accept-Encoding", () => {
  const fields = ["Vary", "Origin", "A", "1", "vary", "Accept-Encoding"];
  const expected = ["Vary", "Origin, Accept-Encoding, Accept", "A", "1"];
  assert.deepEqual(decorated(decoratorOf(acceptVary, route), fields, "upstream"), expected);
});

test("a route without accept is not decorated at all", () => {
  assert.equal(decoratorOf(acceptVary, routeWith("r", { path })), undefined);
});
