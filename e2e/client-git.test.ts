import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { after, before, test } from "node:test";
import { peer, runProcess, waitUntil } from "@headworks/testkit";
import { refusals, startBench } from "./client-rig.ts";
import type { Bench } from "./client-rig.ts";
import { Cleanups, workDirectory } from "./rig.ts";

const git = peer("git");
const cleanups = new Cleanups();
let bench: Bench;
let repositories = "";
/** Excludes the configuration of the user and the machine. */
const alone = {
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_TERMINAL_PROMPT: "0",
  GIT_AUTHOR_NAME: "a",
  GIT_AUTHOR_EMAIL: "a@b.test",
  GIT_COMMITTER_NAME: "a",
  GIT_COMMITTER_EMAIL: "a@b.test",
};

before(async () => {
  if (git.skip !== false) return;
  repositories = (await workDirectory(cleanups)).path;
  bench = await startBench(cleanups, gitBackend);
  const work = bench.directory.file("work");
  for (const args of [
    ["init", "-q", "-b", "main", work],
    ["-C", work, "commit", "-q", "--allow-empty", "-m", "first"],
    ["-C", work, "tag", "-a", "v1", "-m", "a tag"],
    ["clone", "-q", "--bare", work, `${repositories}/project.git`],
    ["-C", `${repositories}/project.git`, "config", "http.receivepack", "true"],
  ]) {
    const { code, stderr } = await runProcess(git.path, args, { env: alone });
    assert.equal(code, 0, stderr);
  }
});
after(() => cleanups.run());

/** git's own CGI program behind Node's server. */
function gitBackend(request: IncomingMessage, response: ServerResponse): void {
  const url = new URL(request.url ?? "/", "https://localhost");
  const child = spawn(git.path, ["http-backend"], {
    env: {
      ...process.env,
      ...alone,
      GIT_PROJECT_ROOT: repositories,
      GIT_HTTP_EXPORT_ALL: "1",
      REQUEST_METHOD: request.method,
      PATH_INFO: url.pathname,
      QUERY_STRING: url.search.slice(1),
      CONTENT_TYPE: request.headers["content-type"] ?? "",
      HTTP_CONTENT_ENCODING: String(request.headers["content-encoding"] ?? ""),
      GIT_PROTOCOL: String(request.headers["git-protocol"] ?? ""),
      REMOTE_USER: "tester",
    },
    stdio: ["pipe", "pipe", "inherit"],
  });
  request.pipe(child.stdin);
  let held = Buffer.alloc(0);
  child.stdout.on("data", (chunk: Buffer) => {
    if (response.headersSent) return void response.write(chunk);
    held = Buffer.concat([held, chunk]);
    const end = held.indexOf("\r\n\r\n");
    if (end === -1) return;
    const fields = held
      .toString("latin1", 0, end)
      .split("\r\n")
      .map((line) => line.split(": ") as [string, string]);
    const status = Number(fields.find(([name]) => name === "Status")?.[1].slice(0, 3) ?? 200);
    response.writeHead(status, Object.fromEntries(fields.filter(([name]) => name !== "Status")));
    response.write(held.subarray(end + 4));
  });
  void once(child, "close").then(() => response.end());
}

const running = async (args: readonly string[], trusts: boolean): Promise<{ code: number | null; stderr: string }> => {
  const { weir } = bench;
  const trust = trusts ? { GIT_SSL_CAINFO: weir.caFile } : {};
  return await runProcess(git.path, args, {
    env: { ...alone, https_proxy: weir.proxyUrl, ...trust },
    timeoutMs: 20_000,
  });
};

test("git clones, fetches and pushes over HTTPS through the proxy", { skip: git.skip }, async () => {
  const { weir, secure, directory } = bench;
  const url = `${secure.url.replace("127.0.0.1", "localhost")}/project.git`;
  const copy = directory.file("copy");
  const cloned = await running(["clone", "-q", url, copy], true);
  assert.equal(cloned.code, 0, cloned.stderr);
  assert.match(await readFile(`${copy}/.git/packed-refs`, "utf8"), /refs\/tags\/v1/);
  const large = "a line that git compresses only a little, since it differs: ";
  const blob = Array.from({ length: 60_000 }, (_, index) => large + Math.sqrt(index)).join("\n");
  await writeFile(`${copy}/large.txt`, blob);
  for (const args of [
    ["add", "."],
    ["commit", "-q", "-m", "second"],
    ["-c", "http.postBuffer=65536", "push", "-q", "origin", "main"],
  ]) {
    const { code, stderr } = await running(["-C", copy, ...args], true);
    assert.equal(code, 0, stderr);
  }
  const entries = await weir.waitForEntries(5, "/project.git");
  const requested = entries.map(
    ({ request, response }) => `${request.method} ${request.path} ${response?.status_code}`,
  );
  assert.ok(requested.includes("GET /project.git/info/refs?service=git-upload-pack 200"), requested.join("\n"));
  assert.ok(requested.includes("POST /project.git/git-upload-pack 200"), requested.join("\n"));
  const push = entries.find(({ request }) => request.path.endsWith("git-receive-pack") && request.body_size > 65_536);
  assert.ok(push, requested.join("\n"));
  assert.equal(push.response?.status_code, 200);
  assert.ok((await weir.body(push, "request")).includes("PACK"));
  const copied = await running(["clone", "-q", url, directory.file("again")], true);
  assert.equal(copied.code, 0, copied.stderr);
  assert.equal(await readFile(directory.file("again", "large.txt"), "utf8"), blob);
});

test("git without trust refuses to clone, and an entry has the reason", { skip: git.skip }, async () => {
  const { weir, secure, directory } = bench;
  const requested = secure.requests.length;
  const { code, stderr } = await running(
    ["clone", "-q", `https://localhost:${secure.port}/project.git`, directory.file("no")],
    false,
  );
  assert.notEqual(code, 0);
  assert.match(stderr, /certificate/);
  assert.equal(secure.requests.length, requested);
  const [entry] = await waitUntil(async () => {
    const all = await refusals(weir);
    return all.length > 0 && all;
  });
  assert.equal(entry?.request.method, "CONNECT");
});
