import assert from "node:assert/strict";
import { test } from "node:test";
import { requestFor } from "../../../test/routing/requests.ts";
import { ChangedResources } from "./changed-resources.ts";

const put = (path: string): ReturnType<typeof requestFor> => requestFor({ method: "PUT", target: path });
const get = (path: string): ReturnType<typeof requestFor> => requestFor({ target: path });

test("only responses of the resource requested before its change are invalidated", () => {
  const changed = new ChangedResources();
  const before = changed.count;
  changed.answered(put("/a"), 204);
  assert.equal(changed.hasChanged(get("/a"), before), true);
  assert.equal(changed.hasChanged(get("/a"), changed.count), false);
  assert.equal(changed.hasChanged(get("/b"), before), false);
});

for (const [what, method, status] of [
  ["a safe method", "GET", 200],
  ["an error of the client", "PUT", 400],
  ["an error of the server", "DELETE", 500],
  ["an answer on the way", "PUT", 103],
] as const) {
  test(`nothing changes by ${what}: ${method} ${status}`, () => {
    const changed = new ChangedResources();
    changed.answered(requestFor({ method, target: "/a" }), status);
    assert.equal(changed.hasChanged(get("/a"), 0), false);
  });
}

test("on overflow, all earlier responses count as changed", () => {
  const changed = new ChangedResources(2);
  changed.answered(put("/a"), 200);
  const between = changed.count;
  changed.answered(put("/b"), 200);
  assert.equal(changed.hasChanged(get("/elsewhere"), between), false);
  changed.answered(put("/c"), 200);
  assert.equal(changed.hasChanged(get("/elsewhere"), between), true);
  assert.equal(changed.hasChanged(get("/elsewhere"), changed.count), false);
});
