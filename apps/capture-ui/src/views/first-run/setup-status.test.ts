import assert from "node:assert/strict";
import { test } from "node:test";
import type { TrafficSnapshot } from "@headworks/capture-contract";
import { NOTHING_SEEN, exportLines, guessPlatform, runLine, withEntry } from "./setup-status.ts";

const entry = (change: Partial<TrafficSnapshot>) =>
  ({
    id: "1",
    scheme: "https",
    is_passthrough: false,
    status_code: 200,
    failure_code: null,
    source: "upstream",
    ...change,
  }) as TrafficSnapshot;

test("a decrypted HTTPS exchange proves that the client trusts the certificate", () => {
  assert.equal(withEntry(NOTHING_SEEN, entry({})).trust, "done");
  for (const change of [
    { scheme: "http" },
    { is_passthrough: true },
    { source: "import" as const },
    { status_code: null },
  ]) {
    assert.equal(withEntry(NOTHING_SEEN, entry(change)).trust, "waiting", JSON.stringify(change));
  }
});

test("the command names the service only if it is not at the default address", () => {
  assert.equal(runLine("npx weir", "npm test", "http://127.0.0.1:3001"), "npx weir run -- npm test");
  assert.equal(runLine("weir", "npm test", "http://localhost:3001"), "weir run -- npm test");
  assert.equal(
    runLine("weir", "npm test", "http://127.0.0.1:13001"),
    "weir run --api-url http://127.0.0.1:13001 -- npm test",
  );
});

test("a rejected handshake is a problem until one succeeds", () => {
  const refused = withEntry(NOTHING_SEEN, entry({ status_code: null, failure_code: "CLIENT_CERTIFICATE_REFUSED" }));
  assert.equal(refused.trust, "problem");
  const later = withEntry(refused, entry({ id: "2" }));
  assert.equal(later.trust, "done");
  assert.equal(
    withEntry(later, entry({ status_code: null, failure_code: "CLIENT_CERTIFICATE_REFUSED" })).trust,
    "done",
  );
});

test("the first entry stays first and is updated", () => {
  const pending = withEntry(NOTHING_SEEN, entry({ status_code: null }));
  assert.equal(withEntry(pending, entry({ status_code: 201 })).first?.status_code, 201);
  assert.equal(withEntry(pending, entry({ id: "2" })).first?.id, "1");
});

test("instructions for the user's platform come first", () => {
  const offered = ["macos", "windows", "linux-debian", "linux-fedora", "ios", "android"];
  assert.equal(guessPlatform("Mozilla/5.0 (X11; Linux x86_64)", offered), "linux-debian");
  assert.equal(guessPlatform("Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X)", offered), "ios");
  assert.equal(guessPlatform("Mozilla/5.0 (Windows NT 10.0)", offered), "windows");
  assert.equal(guessPlatform("anything", []), null);
});

test("the shell executes nothing in a value", () => {
  const environment = [{ name: "A", value: "it's $(x)" }];
  assert.equal(exportLines(environment, "sh"), String.raw`export A='it'\''s $(x)'`);
  assert.equal(exportLines(environment, "powershell"), "$env:A = 'it''s $(x)'");
  assert.equal(exportLines([{ name: "A", value: '1" & calc' }], "cmd"), 'set "A=1 & calc"');
});
