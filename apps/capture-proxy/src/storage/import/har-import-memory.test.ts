import { test } from "node:test";
import { temporaryDirectory } from "@headworks/testkit";
import { importsInLittleMemory } from "./huge-import-rig.ts";

test("a body of 180 MB in a HAR needs no more memory than a small one", { timeout: 120_000 }, async () => {
  const request = '{"method":"PUT","url":"http://a/"}';
  await using directory = await temporaryDirectory();
  await importsInLittleMemory(directory.path, {
    before: `{"log":{"entries":[{"startedDateTime":"2026-01-01T00:00:00Z","request":${request},"response":{"status":200,"content":{"text":"`,
    after: '","encoding":"base64"}}}]}}',
    // 252 MB of base64, 189 MB decoded.
    chunks: 3840,
    import: async (store, source, options) => await store.importHar(source, options),
  });
});
