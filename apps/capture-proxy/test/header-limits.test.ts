import assert from "node:assert/strict";
import { test } from "node:test";
import type { HeadLimits } from "#upstream/origin.ts";
import { clientOf, http2Engine, startVersioned } from "./http2-rig.ts";

const fields = (count: number, sizeBytes = 1): [string, string][] =>
  Array.from({ length: count }, (_, at) => [`x-${at}`, "y".repeat(sizeBytes)]);

for (const version of ["1.1", "2"] as const) {
  test(`hundreds of fields pass in requests and responses over HTTP/${version}, as with curl, Node and browsers`, async () => {
    await using origin = await startVersioned(version, () => ({ fields: fields(261), body: "here" }), {
      isPlain: version === "1.1",
    });
    await using proxy = await http2Engine();
    await using client = await clientOf(version, proxy, origin.port, { isPlain: version === "1.1" });
    for (const count of [111, 900]) {
      const { status, fields: received } = await client.fetch({ fields: fields(count) });
      assert.equal(status, 200);
      assert.equal(origin.seen.at(-1)?.fields.filter((name) => name.startsWith("x-")).length, count);
      assert.equal(received.filter((name) => name.startsWith("x-")).length, 261);
    }
  });

  test(`the settings bound heads over HTTP/${version}: more is 431 of a client and 502 of an origin`, async () => {
    const headLimits: HeadLimits = { headBytes: 16_384, fieldCount: 60 };
    await using origin = await startVersioned(version, ({ path }) => ({ fields: fields(Number(path.slice(1))) }), {
      isPlain: version === "1.1",
    });
    await using proxy = await http2Engine({ policy: { headLimits } });
    await using client = await clientOf(version, proxy, origin.port, { isPlain: version === "1.1" });
    const statusOf = async (sent: Parameters<typeof client.fetch>[0]): Promise<number | undefined> =>
      (await client.fetch(sent)).status;
    assert.equal(await statusOf({ path: "/50", fields: fields(50) }), 200);
    assert.equal(await statusOf({ path: "/70" }), 502);
    assert.equal(await statusOf({ path: "/0", fields: fields(10, 1500) }), 200);
    assert.equal(await statusOf({ path: "/0", fields: fields(70) }), 431);
  });
}
