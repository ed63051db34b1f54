import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { after, before, test } from "node:test";
import { gzipSync } from "node:zlib";
import { peer, runProcess, temporaryDirectory, waitUntil } from "@headworks/testkit";
import type { Exit } from "@headworks/testkit";
import { assertTlsFacts, refusals, startBench } from "./client-rig.ts";
import type { Bench } from "./client-rig.ts";
import { Cleanups } from "./rig.ts";

const apt = peer("apt-get");
const cleanups = new Cleanups();
let bench: Bench;
before(async () => {
  bench = await startBench(cleanups, serveRepository);
});
after(() => cleanups.run());

const packages = Buffer.from(
  Array.from(
    { length: 300 },
    (_, index) =>
      `Package: example-${index}\nVersion: 1.${index}\nArchitecture: all\nFilename: ./e-${index}.deb\nSize: 1\nMD5sum: ${"0".repeat(32)}\nDescription: nothing\n`,
  ).join("\n"),
);
const packed = gzipSync(packages);
const sumOf = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");
const release = Buffer.from(
  `Origin: test\nLabel: test\nSuite: stable\nDate: Thu, 01 Jan 2026 00:00:00 UTC\nArchitectures: all amd64\nSHA256:\n ${sumOf(packages)} ${packages.length} Packages\n ${sumOf(packed)} ${packed.length} Packages.gz\n`,
);

/** A flat repository without signatures. */
function serveRepository(request: IncomingMessage, response: ServerResponse): void {
  const files: Record<string, Buffer> = {
    "/debian/Release": release,
    "/debian/Packages": packages,
    "/debian/Packages.gz": packed,
  };
  // The list names the repository "./", and apt requests exactly that.
  const file = files[(request.url ?? "").replace("/./", "/")];
  response
    .writeHead(file ? 200 : 404, { "last-modified": "Thu, 01 Jan 2026 00:00:00 GMT" })
    .end(file ?? "no such file");
}

async function update(scheme: "http" | "https", trusts: boolean): Promise<Exit & { lists: string[] }> {
  const { weir, secure, plain } = bench;
  await using root = await temporaryDirectory();
  for (const folder of [
    "state/lists/partial",
    "cache/archives/partial",
    "etc/sources.d",
    "etc/apt.conf.d",
    "etc/preferences.d",
    "etc/trusted.d",
  ]) {
    await mkdir(root.file(folder), { recursive: true });
  }
  const port = scheme === "https" ? secure.port : plain.port;
  await writeFile(
    root.file("etc/sources.list"),
    `deb [trusted=yes arch=all] ${scheme}://localhost:${port}/debian ./\n`,
  );
  await writeFile(root.file("status"), "");
  const options = {
    "Dir::State": root.file("state"),
    "Dir::State::status": root.file("status"),
    "Dir::Cache": root.file("cache"),
    "Dir::Etc": root.file("etc"),
    "Dir::Etc::sourcelist": root.file("etc/sources.list"),
    "Dir::Etc::sourceparts": root.file("etc/sources.d"),
    "Dir::Etc::parts": root.file("etc/apt.conf.d"),
    "APT::Sandbox::User": "",
    "APT::Update::Error-Mode": "any",
    "Acquire::Retries": "0",
    "Acquire::Languages": "none",
    [`Acquire::${scheme}::Proxy`]: weir.proxyUrl,
    ...(trusts ? { "Acquire::https::CAInfo": weir.caFile } : {}),
  };
  const exit = await runProcess(
    apt.path,
    ["update", ...Object.entries(options).flatMap(([name, value]) => ["-o", `${name}=${value}`])],
    {
      env: { APT_CONFIG: "/dev/null", LC_ALL: "C" },
      timeoutMs: 30_000,
    },
  );
  return { ...exit, lists: await readdir(root.file("state/lists")) };
}

for (const scheme of ["https", "http"] as const) {
  test(`apt-get update over ${scheme} downloads the lists, and each file is an entry`, { skip: apt.skip }, async () => {
    const { weir, secure, plain } = bench;
    const { code, stdout, stderr, lists } = await update(scheme, true);
    assert.equal(code, 0, stdout + stderr);
    assert.ok(
      lists.some((name) => /_debian_\._Packages(?:\.|$)/.test(name)),
      lists.join(),
    );
    const port = scheme === "https" ? secure.port : plain.port;
    const entries = await weir.waitForEntries(2, `${scheme}://localhost:${port}/debian/`);
    const seen = new Map(entries.map((entry) => [entry.request.path, entry]));
    const file = seen.get("/debian/./Packages.gz");
    assert.ok(file, [...seen.keys()].join());
    assert.equal(file.response?.status_code, 200);
    assert.deepEqual(await weir.body(file, "response"), packed);
    assertTlsFacts(file, scheme === "http");
    assert.match(file.request.headers["User-Agent"] ?? "", /APT/);
  });
}

test("apt-get without trust refuses the repository, and an entry has the reason", { skip: apt.skip }, async () => {
  const { weir, secure } = bench;
  const requested = secure.requests.length;
  const { code, stdout, stderr } = await update("https", false);
  assert.notEqual(code, 0, stdout + stderr);
  assert.match(stdout + stderr, /[Cc]ertificate/);
  assert.equal(secure.requests.length, requested);
  const [entry] = await waitUntil(async () => {
    const all = await refusals(weir);
    return all.length > 0 && all;
  });
  assert.equal(entry?.response?.status_code, 502);
});
