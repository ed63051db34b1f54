import assert from "node:assert/strict";
import { test } from "node:test";
import { HarDecoder, type HarItem } from "./decode.ts";
import { fromHarEntry } from "./from-entry.ts";

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

// Alone in its file: the peak memory of a process never decreases.
test("a large body is not in memory several times over", () => {
  const chunk = bytesOf(Buffer.alloc(589_824, "0123456789abcdef").toString("base64"));
  const decoder = new HarDecoder();
  const before = process.resourceUsage().maxRSS;
  const feed = (text: string): HarItem[] => [...decoder.write(bytesOf(text))];
  feed(
    '{"log":{"entries":[{"startedDateTime":"2026-01-01T00:00:00Z","request":{"method":"PUT","url":"http://a/"},"response":{"status":200,"content":{"text":"',
  );
  for (let count = 0; count < 160; count += 1) for (const _ of decoder.write(chunk)) assert.fail();
  const [item] = feed('","encoding":"base64"}}}]}}');
  assert.ok(item?.kind === "entry");
  const bytes = fromHarEntry(item.entry).response?.body?.bytes.length ?? 0;
  assert.equal(bytes, 160 * 589_824);
  // 120 MB of base64, 90 MB decoded; strings would take at least twice 120 MB more.
  const grownMb = (process.resourceUsage().maxRSS - before) / 1024;
  assert.ok(grownMb < 330, `grew by ${grownMb} MB`);
});
