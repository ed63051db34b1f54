import assert from "node:assert/strict";
import { test } from "node:test";
import { HeldBody } from "./message-sender.ts";

test("all waiters for a body are resolved, each with its own limit", async () => {
  const body = new HeldBody({ kind: "chunked" }, false);
  let wanted = 0;
  const onWanted = (): void => void (wanted += 1);
  const small = body.content(4, false, onWanted);
  const large = body.content(100, false, onWanted);
  assert.equal(wanted, 2);
  assert.equal(body.add(Buffer.from("more than four")), true, "one of them still waits");
  assert.equal((await small).kind, "too-large");
  body.end();
  const content = await large;
  assert.equal(content.kind === "complete" && content.bytes.toString(), "more than four");
  assert.equal(body.isWanted, false);
});
