import assert from "node:assert/strict";
import { lstatSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { gzipSync } from "node:zlib";
import type { MirrorStatus } from "@headworks/capture-contract";
import { peer, runProcess, startOrigin, waitUntil } from "@headworks/testkit";
import type { Origin, TemporaryDirectory } from "@headworks/testkit";
import { Cleanups, LOCAL_NAMES, originAuthority, startWeir, workDirectory } from "./rig.ts";
import type { Weir } from "./rig.ts";

const curl = peer("curl");
const cleanups = new Cleanups();
const LARGE = Buffer.alloc(5_000_000, "a large body, ");
let weir: Weir;
let origin: Origin;
let secure: Origin;
let directory: TemporaryDirectory;

before(async () => {
  weir = cleanups.use(await startWeir());
  const handler: Parameters<typeof startOrigin>[0] = {
    handler: (request, response) => {
      const url = request.url ?? "";
      request.resume().on("end", () => {
        if (url.startsWith("/api")) {
          response.writeHead(200, { "content-type": "application/json", "content-encoding": "gzip" });
          response.end(gzipSync(`{"path":"${url}"}`));
        } else if (url.startsWith("/large")) response.end(LARGE);
        else response.end(`response to ${url}`);
      });
    },
  };
  origin = cleanups.use(await startOrigin(handler));
  secure = cleanups.use(await startOrigin({ ...handler, tls: { authority: originAuthority, names: LOCAL_NAMES } }));
  directory = await workDirectory(cleanups);
});
after(() => cleanups.run());

async function fetchThrough(url: string, ...args: readonly string[]): Promise<void> {
  const command = [
    "-sS",
    "-o",
    "/dev/null",
    "--path-as-is",
    "-x",
    weir.proxyUrl,
    "--cacert",
    weir.caFile,
    ...args,
    url,
  ];
  const { code, stderr } = await runProcess(curl.path, command);
  assert.equal(code, 0, stderr);
}

/** Calls the API with curl, as in the guide. */
async function callApi<T>(method: string, path: string, body?: object): Promise<T> {
  const json = body === undefined ? [] : ["-H", "content-type: application/json", "-d", JSON.stringify(body)];
  const { code, stdout, stderr } = await runProcess(curl.path, [
    "-sSf",
    "-X",
    method,
    ...json,
    `${weir.apiUrl}/api${path}`,
  ]);
  assert.equal(code, 0, stderr + stdout);
  return JSON.parse(stdout) as T;
}

async function settled(): Promise<MirrorStatus> {
  return await waitUntil(async () => {
    const status = await callApi<MirrorStatus>("GET", "/mirror");
    return status.queued_files === 0 ? status : undefined;
  });
}

/** All files below a directory, with links marked. */
function tree(root: string): string[] {
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1))
    .sort();
}

test(
  "the mirror is off by default, and when on it writes responses of HTTP and HTTPS below their hosts",
  { skip: curl.skip },
  async () => {
    const first = await callApi<MirrorStatus>("GET", "/mirror");
    assert.deepEqual([first.enabled, first.output_dir], [false, join(weir.dataDir, "mirror")]);
    const output = directory.file("site");
    await callApi("PATCH", "/mirror/config", { output_dir: output, save_request_bodies: true });
    assert.deepEqual(await callApi("POST", "/mirror/toggle", { enabled: true }), {
      enabled: true,
      message: "Mirroring enabled",
    });
    await fetchThrough(`${origin.url}/app.js?version=1`);
    await fetchThrough(`${origin.url}/app.js?version=2`);
    await fetchThrough(`${origin.url}/docs/`);
    await fetchThrough(`${origin.url}/large.bin`);
    await fetchThrough(`${origin.url}/api/orders`, "-d", "an order");
    await fetchThrough(`${secure.url}/api/orders`);
    await weir.waitForEntries(6);
    const status = await waitUntil(async () => {
      const now = await settled();
      return now.files_written >= 7 ? now : undefined;
    });
    assert.deepEqual([status.files_written, status.files_dropped, status.last_error], [7, 0, null]);
    const host = new URL(origin.url).hostname;
    const other = `${new URL(secure.url).hostname}_${new URL(secure.url).port}`;
    const files = ["api/orders/index.json", "app.js", "docs/index.html", "large.bin"].map((name) => `${host}/${name}`);
    const bodies = tree(output).filter((name) => !name.startsWith(".weir-") && !name.endsWith(".meta.json"));
    assert.deepEqual(
      bodies,
      [`${files[0]}`, `${files[0]}.request`, ...files.slice(1), `${other}/api/orders/index.json`].sort(),
    );
    const read = (name: string): string => readFileSync(join(output, name), "utf8");
    assert.equal(read(`${host}/app.js`), "response to /app.js?version=2", "the newest response is kept");
    assert.equal(read(`${host}/api/orders/index.json`), '{"path":"/api/orders"}', "without its content coding");
    assert.equal(read(`${host}/api/orders/index.json.request`), "an order");
    assert.ok(readFileSync(join(output, host, "large.bin")).equals(LARGE));
    const meta = JSON.parse(read(`${host}/app.js.meta.json`)) as Record<string, unknown>;
    assert.deepEqual(
      [meta["url"], meta["method"], meta["status_code"], meta["truncated"]],
      [`${origin.url}/app.js?version=2`, "GET", 200, false],
    );
  },
);

test(
  "the mirror never writes outside its directory, and does not follow links in it",
  { skip: curl.skip },
  async () => {
    const parent = directory.file("hostile");
    const output = join(parent, "mirror");
    const outside = join(parent, "outside");
    const host = new URL(origin.url).hostname;
    mkdirSync(outside, { recursive: true });
    writeFileSync(join(outside, "kept.txt"), "kept");
    const { files_written: first } = await callApi<MirrorStatus>("PATCH", "/mirror/config", {
      output_dir: output,
      host_filter: [host],
    });
    await fetchThrough(`${origin.url}/first.txt`);
    await waitUntil(async () => (await settled()).files_written > first);
    const before = first + 1;
    symlinkSync(outside, join(output, host, "linked"));
    symlinkSync(join(outside, "kept.txt"), join(output, host, "file.txt"));
    const paths = [
      "/../../outside/a.txt",
      "/%2e%2e/%2e%2e/outside/b.txt",
      "/..%2f..%2foutside%2fc.txt",
      "/..%5c..%5coutside%5cd.txt",
      "/....//....//outside/e.txt",
      "/%252e%252e%252foutside/f.txt",
      "/.%00./outside/g.txt",
      "/linked/kept.txt",
      "/file.txt",
      "/con.txt",
      "/trailing./x.txt",
      `/${"n".repeat(300)}.txt`,
      `/${"deep/".repeat(300)}x.txt`,
      "/a.txt/b.txt",
      "/a.txt",
      "/%ff%fe.txt",
      "/x.txt.meta.json",
    ];
    for (const path of paths) await fetchThrough(`${origin.url}${path}`);
    await waitUntil(async () => (await settled()).files_written >= before + paths.length);
    const status = await callApi<MirrorStatus>("GET", "/mirror");
    assert.deepEqual([status.files_written - before, status.files_dropped, status.last_error], [paths.length, 0, null]);
    assert.deepEqual(readdirSync(parent).sort(), ["mirror", "outside"]);
    assert.deepEqual(readdirSync(outside), ["kept.txt"]);
    assert.equal(readFileSync(join(outside, "kept.txt"), "utf8"), "kept");
    assert.equal(lstatSync(join(output, host, "file.txt")).isSymbolicLink(), false);
    assert.equal(readFileSync(join(output, host, "file.txt"), "utf8"), "response to /file.txt");
    const bodies = tree(output).filter((name) => /\.txt$|%6Deta\.json$/.test(name) && !name.includes("/linked/"));
    assert.equal(bodies.length, paths.length + 1, bodies.join("\n"));
  },
);

test("a filter excludes other hosts, and a disabled mirror writes nothing", { skip: curl.skip }, async () => {
  const output = directory.file("filtered");
  const { files_written: before } = await callApi<MirrorStatus>("PATCH", "/mirror/config", {
    output_dir: output,
    host_filter: ["*.example.com"],
  });
  await fetchThrough(`${origin.url}/filtered.txt`);
  await callApi("PATCH", "/mirror/config", { host_filter: null });
  await callApi("POST", "/mirror/toggle", { enabled: false });
  await fetchThrough(`${origin.url}/off.txt`);
  await callApi("POST", "/mirror/toggle", { enabled: true });
  await fetchThrough(`${origin.url}/on.txt`);
  await waitUntil(async () => (await settled()).files_written > before);
  assert.deepEqual(
    tree(output)
      .filter((name) => name.endsWith(".txt"))
      .map((name) => name.split("/").at(-1)),
    ["on.txt"],
  );
});

test(
  "a full disk delays no traffic, is reported, and the mirror resumes once there is space",
  { skip: curl.skip },
  async (context) => {
    const disk = directory.file("disk");
    mkdirSync(disk);
    const isRoot = process.platform === "linux" && process.getuid?.() === 0;
    const mounted = isRoot ? await runProcess("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", disk]) : undefined;
    if (mounted?.code !== 0) return context.skip("needs the right to mount a tmpfs");
    try {
      await callApi("PATCH", "/mirror/config", { output_dir: disk, host_filter: null, enabled: true });
      const before = await settled();
      writeFileSync(`${disk}/ballast`, Buffer.alloc(600_000));
      await fetchThrough(`${origin.url}/large.bin`);
      await fetchThrough(`${origin.url}/large.bin`);
      const failed = await waitUntil(async () => {
        const now = await settled();
        return now.files_dropped >= before.files_dropped + 2 ? now : undefined;
      });
      assert.match(failed.last_error ?? "", /the disk is full$/);
      assert.equal(failed.writing, false);
      assert.ok(
        tree(disk).every((name) => !name.endsWith("large.bin")),
        "no half file",
      );
      rmSync(`${disk}/ballast`);
      await fetchThrough(`${origin.url}/small.txt`);
      const mended = await waitUntil(async () => {
        const now = await settled();
        return now.files_written > before.files_written ? now : undefined;
      });
      assert.equal(mended.writing, true);
      await callApi("PATCH", "/mirror/config", { output_dir: null, enabled: false });
    } finally {
      await runProcess("umount", ["-l", disk]);
    }
  },
);
