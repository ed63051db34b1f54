import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import type { Script, ScriptConfig, ScriptExecution } from "@headworks/capture-contract";
import { temporaryDirectory, waitUntil } from "@headworks/testkit";
import type { TemporaryDirectory } from "@headworks/testkit";
import { runInside } from "./cli-rig.ts";
import type { CommandResult, CommandSetting } from "./cli-rig.ts";
import { startProxyRig } from "./proxy-rig.ts";
import type { ProxyRig } from "./proxy-rig.ts";

let rig: ProxyRig;
let directory: TemporaryDirectory;
let tagFile: string;
let brokenFile: string;

const TAG = 'function onRequest(request) {\n  request.headers["X-Tag"] = "1";\n  console.log("tagged");\n}\n';
const BROKEN = "function onRequest() {\n  return ];\n}\n";

before(async () => {
  [rig, directory] = await Promise.all([startProxyRig(), temporaryDirectory()]);
  tagFile = directory.file("tag.js");
  brokenFile = directory.file("broken.js");
  await Promise.all([writeFile(tagFile, TAG), writeFile(brokenFile, BROKEN)]);
});
after(async () => {
  await rig[Symbol.asyncDispose]();
  await directory.remove();
});

const weir = (args: readonly string[], setting?: CommandSetting): Promise<CommandResult> =>
  runInside(["scripts", ...args, "--api-url", rig.proxy.addresses.api], setting);

async function done(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await weir(args);
  assert.equal(code, 0, stderr);
  return stdout;
}

async function create(...args: string[]): Promise<string> {
  return (JSON.parse(await done("create", ...args, "--json")) as { id: string }).id;
}

const read = (id: string): Promise<Script> => rig.api<Script>("GET", `/scripts/${id}`);

test("a script is created from a file, from standard input or from the command line", async () => {
  const fromFile = await create("-n", "file", "--file", tagFile, "-d", "text", "--host-pattern", "*.test", "-m", "GET");
  const script = await read(fromFile);
  assert.deepEqual([script.source, script.description, script.hooks], [TAG, "text", ["on_request"]]);
  assert.deepEqual(script.match_filter, { host_pattern: "*.test", method: "GET" });
  const piped = await weir(["create", "-n", "piped", "--file", "-", "--json"], { input: TAG });
  const { id } = JSON.parse(piped.stdout) as { id: string };
  assert.equal((await read(id)).source, TAG);
  const inline = await create("-n", "inline", "-i", TAG, "-H", "on_request", "-H", "on_response", "--no-enabled");
  const { hooks, enabled } = await read(inline);
  assert.deepEqual([hooks, enabled], [["on_request", "on_response"], false]);
  for (const each of [fromFile, id, inline]) await done("delete", each);
});

test("a source is given once, and a file that cannot be read is named", async () => {
  const none = await weir(["create", "-n", "none"]);
  assert.deepEqual([none.code, none.stderr], [2, "weir: --inline or --file is required\n"]);
  const both = await weir(["create", "-n", "both", "-i", TAG, "--file", tagFile]);
  assert.deepEqual([both.code, both.stderr], [2, "weir: --inline and --file cannot be combined\n"]);
  const missing = await weir(["create", "-n", "missing", "--file", directory.file("no.js")]);
  assert.equal(missing.code, 1);
  assert.match(missing.stderr, /^weir: Cannot read .*no\.js: ENOENT/);
});

test("a source that cannot be compiled is refused with its place", async () => {
  const { code, stderr } = await weir(["create", "-n", "broken", "--file", brokenFile]);
  assert.equal(code, 1);
  assert.match(stderr, /^weir: body\/source: line 2, column \d+: .+ \(VALIDATION_ERROR\)\n$/);
});

test("validate prints FILE:LINE:COLUMN of a problem and fails; a valid source has its hooks", async () => {
  const broken = await weir(["validate", "--file", brokenFile]);
  assert.equal(broken.code, 1);
  assert.ok(broken.stdout.startsWith(`${brokenFile}:2:`), broken.stdout);
  assert.match(broken.stdout.slice(brokenFile.length), /^:2:\d+: .+\n$/);
  assert.deepEqual(await weir(["validate", "--file", tagFile]), { code: 0, stdout: "Valid: on_request\n", stderr: "" });
  const piped = await weir(["validate", "--file", "-"], { input: BROKEN });
  assert.match(piped.stdout, /^stdin:2:/);
  const json = await weir(["validate", "-i", "let a = ;", "--json"]);
  assert.deepEqual([json.code, (JSON.parse(json.stdout) as { valid: boolean }).valid], [1, false]);
  const neither = await weir(["validate"]);
  assert.deepEqual([neither.code, neither.stderr], [2, "weir: Give either --file or --inline\n"]);
});

test("test shows what a script would do, and fails when the script does", async () => {
  const tagged = await done("test", "--file", tagFile, "-H", "on_request", "--url", "http://a.test/x");
  assert.match(tagged, /^Result {3}changes the message$/m);
  assert.match(tagged, /^Console {2}tagged$/m);
  assert.match(tagged, /^GET http:\/\/a\.test\/x\n(?:.+\n)*X-Tag: 1$/m);
  const responding = 'function onRequest() { return { continue: false, response: { statusCode: 418, body: "tea" } }; }';
  assert.match(await done("test", "-i", responding, "-H", "on_request"), /^Result {3}responds itself with 418$/m);
  const failed = await weir(["test", "-i", 'function onRequest() { throw new Error("no"); }', "-H", "on_request"]);
  assert.equal(failed.code, 1);
  assert.match(failed.stdout, /^Result {2}failed\nError {3}.*no/m);
});

test("scripts run for the traffic, and their history and traces are listed", async () => {
  const id = await create("-n", "tag", "--file", tagFile);
  const response = await rig.send({ path: "/traced" });
  assert.equal(response.status, 200);
  assert.equal(rig.seen.at(-1)?.headers["x-tag"], "1");
  const history = await done("history", id);
  assert.match(history, /tag +on_request .* tagged/);
  assert.equal(await done("history-all"), history);
  await waitUntil(async () => (await rig.api<unknown[]>("GET", "/traffic")).length === 1);
  const traces = await runInside(["traffic", "script-traces", "last", "--api-url", rig.proxy.addresses.api, "--json"]);
  const [trace] = JSON.parse(traces.stdout) as ScriptExecution[];
  assert.deepEqual([trace?.script_id, trace?.success, trace?.console], [id, true, ["tagged"]]);
  await done("history-clear", id);
  assert.equal(await done("history", id), "");
  await done("delete", id);
});

test("history shows 20 executions, and how many there are", async () => {
  const id = await create("-n", "often", "-i", "function onRequest() {}");
  for (let count = 0; count < 21; count += 1) await rig.send();
  const { stdout, stderr } = await weir(["history", id]);
  assert.equal(stdout.trimEnd().split("\n").length, 21);
  assert.equal(stderr, "20 of 21\n");
  const more = await weir(["history", id, "-l", "30"]);
  assert.equal(more.stdout.trimEnd().split("\n").length, 22);
  await done("delete", id);
});

test("scripts are listed in the order of execution, moved, toggled and previewed", async () => {
  const first = await create("-n", "first", "-i", TAG);
  const second = await create("-n", "second", "-i", TAG, "--path-pattern", "/cart*");
  const order = async (): Promise<string[]> =>
    (JSON.parse(await done("list", "--json")) as Script[]).map(({ name, priority }) => `${name} ${priority}`);
  assert.deepEqual(await order(), ["first 100", "second 100"]);
  await done("reorder", second, "-p", "7");
  assert.deepEqual(await order(), ["second 7", "first 100"]);
  await done("reorder", second, "--direction", "down");
  assert.deepEqual(await order(), ["first 100", "second 110"]);
  const cannot = await weir(["reorder", second, "--direction", "down"]);
  assert.deepEqual([cannot.code, /already the last one/.test(cannot.stderr)], [1, true]);
  const preview = await done("match-preview", "--url", "https://a.test/cart/1");
  assert.match(preview, /first[^]*second/);
  assert.match(await done("toggle", first), /no/);
  assert.doesNotMatch(await done("match-preview", "--url", "https://a.test/cart/1"), /first/);
  assert.match(await done("list"), /^On +Priority +Name +Hooks +Matches/);
  await done("delete", first);
  await done("delete", second);
});

test("templates, limits and the declarations of the script API are shown", async () => {
  assert.match(await done("templates"), /^Add CORS +Allows pages/m);
  assert.match(await done("config"), /^timeout_ms +5000$/m);
  const changed = await done("config-update", "--timeout-ms", "250", "--no-capture-console", "--json");
  const { timeout_ms: timeout, capture_console: console } = JSON.parse(changed) as ScriptConfig;
  assert.deepEqual([timeout, console], [250, false]);
  assert.match(await done("types"), /declare function onRequest/);
});
