import assert from "node:assert/strict";
import { test } from "node:test";
import { refuseUnreadable } from "./refuse-unreadable.ts";

test("a query that cannot be read fails as the service would fail it", () => {
  refuseUnreadable("");
  refuseUnreadable("status:>=400");
  assert.throws(() => refuseUnreadable("foo:bar"), { name: "ApiFailure", status: 400, message: /foo/u });
});
