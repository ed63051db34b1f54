import assert from "node:assert/strict";
import { request } from "node:http";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { test } from "node:test";
import { apiInfo, operations } from "@headworks/capture-contract";
import type { AnyOperations } from "@headworks/contract-kit";
import { startProxyRig } from "./proxy-rig.ts";

const UNUSUAL_IDS: readonly (readonly [string, string])[] = [
  ["65 characters", "a".repeat(65)],
  ["2,000 characters", "a".repeat(2000)],
  ["100,000 characters", "a".repeat(100_000)],
  ["text that is no UUID", "last"],
  ["percent-encoded UTF-8", encodeURIComponent("id-ж-😀")],
  ["NUL, slash, dots and quotes", encodeURIComponent("\0/../'\"%")],
];

/** Every operation that has an id in its path and no other parameter there. */
const withId = Object.values(operations as AnyOperations)
  .flatMap((slice) => Object.values(slice))
  .filter(({ path }) => path.includes("{id}") && (path.match(/\{/g)?.length ?? 0) === 1);

test("an id that nothing has is 404 on every operation, whatever its form", async () => {
  await using rig = await startProxyRig();
  assert.ok(withId.length > 60, `${withId.length} operations`);
  for (const [form, id] of UNUSUAL_IDS) {
    for (const { method, path, body } of withId) {
      const target = apiInfo.prefix + path.replace("{id}", id);
      const { status, code } = await call(rig.proxy.addresses.api, method, target);
      // Of an id that something could have, an operation may say first that it needs a body; a session that is gone
      // is deleted.
      const allowed = ["404 NOT_FOUND"];
      if (id.length <= 64 && body !== undefined) allowed.push("400 VALIDATION_ERROR");
      if (id.length <= 64 && method === "DELETE") allowed.push("204 ");
      assert.ok(allowed.includes(`${status} ${code}`), `${method} ${path}, ${form}: ${status} ${code}`);
    }
  }
});

async function call(address: string, method: string, path: string): Promise<{ status: number; code: string }> {
  const { hostname, port } = new URL(address);
  const outgoing = request({ host: hostname, port, method, path, agent: false });
  outgoing.end();
  const [response] = (await once(outgoing, "response")) as [IncomingMessage];
  const text = Buffer.concat(await response.toArray()).toString();
  return { status: response.statusCode ?? 0, code: text === "" ? text : (JSON.parse(text) as { code: string }).code };
}
