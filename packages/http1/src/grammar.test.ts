import assert from "node:assert/strict";
import { test } from "node:test";
import { heapGrowthBytes } from "@headworks/testkit";
import { ownText } from "./index.ts";

const HEAD = Buffer.alloc(60_000, "x").toString("latin1");

test("a text is the same in memory of its own, and holds on to nothing else", async () => {
  const kept: string[] = [];
  const keep = async (own: (text: string) => string): Promise<number> =>
    await heapGrowthBytes(() => {
      for (let at = 0; at < 200; at += 1) {
        const part = `a name or \xff value ${at}${at % 2 === 0 ? "" : "\u010a\ud83d"}`;
        kept.push(own(`${HEAD}${part}`.slice(60_000)));
      }
    });
  assert.ok((await keep((text) => text)) > 10_000_000, "what is cut out holds on to the rest: the test sees it");
  assert.ok((await keep((text) => ownText(text))) < 200_000);
  assert.deepEqual(kept.slice(200), kept.slice(0, 200));
});
