import { test } from "node:test";
import { temporaryDirectory } from "@headworks/testkit";
import { importsInLittleMemory } from "./huge-import-rig.ts";

test("a body of 300 MB in a native document needs no more memory than a small one", { timeout: 120_000 }, async () => {
  const head = '"timestamp":"2026-01-01T00:00:00Z","request":{"method":"PUT","url":"http://a/"}';
  await using directory = await temporaryDirectory();
  await importsInLittleMemory(directory.path, {
    before: `{"version":"1.0","entries":[{${head},"response":{"status_code":200,"body_encoding":"base64","body":"`,
    after: '"}}]}',
    // 406 MB of base64, 304 MB decoded.
    chunks: 6200,
    import: async (store, source, options) => await store.importSession(source, options),
  });
});
