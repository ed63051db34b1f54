import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { TrafficSnapshot } from "@headworks/capture-contract";
import { runInside } from "./cli-rig.ts";
import type { CommandResult } from "./cli-rig.ts";
import { startProxyRig } from "./proxy-rig.ts";
import type { ProxyRig } from "./proxy-rig.ts";
import { waitUntil } from "@headworks/testkit";

let rig: ProxyRig;
/** Oldest first: `/1`, `/2` and `/3`. */
let rows: readonly TrafficSnapshot[];
before(async () => {
  rig = await startProxyRig();
  for (const path of ["/1", "/2", "/3"]) await rig.send({ path });
  rows = await waitUntil(async () => {
    const found = await rig.api<{ rows: TrafficSnapshot[] }>("GET", "/traffic/rows?order=asc");
    return found.rows.length === 3 && found.rows.every(({ state }) => state === "complete") && found.rows;
  });
});
after(async () => await rig[Symbol.asyncDispose]());

const run = async (...args: string[]): Promise<CommandResult> =>
  await runInside([...args, "--api-url", rig.proxy.addresses.api]);

/** The path of the entry that `weir traffic get` shows for a name. */
async function pathOf(name: string): Promise<string> {
  const { code, stdout, stderr } = await run("traffic", "get", name, "--json");
  assert.equal(code, 0, stderr);
  return (JSON.parse(stdout) as { request: { path: string } }).request.path;
}

test("an entry is named by its number, as the newest one, by its id and by a part of it", async () => {
  const [first, second] = rows;
  assert.ok(first !== undefined && second !== undefined);
  assert.equal(await pathOf(String(first.seq)), "/1");
  assert.equal(await pathOf(`#${second.seq}`), "/2");
  assert.equal(await pathOf("last"), "/3");
  assert.equal(await pathOf(second.id), "/2");
  assert.equal(await pathOf(second.id.slice(-17)), "/2");
  assert.equal(await pathOf(second.id.toUpperCase()), "/2");
});

test("every command that takes an entry takes its names", async () => {
  const [first] = rows;
  const number = String(first?.seq);
  const commands: readonly (readonly string[])[] = [
    ["traffic", "body", number, "response"],
    ["traffic", "note", number, "--notes", "seen"],
    ["export", "curl", number],
    ["export", "snippet", number],
    ["diff", number, "last"],
    ["replay", "run", number],
    ["replay", "batch", number, "--iterations", "1"],
    [
      "rewrites",
      "dry-run",
      "--entry-id",
      number,
      "--body",
      '{"rule":{"name":"r","direction":"request","rewrites":[]}}',
    ],
  ];
  for (const command of commands) {
    const { stderr } = await run(...command);
    assert.doesNotMatch(stderr, /not found|No entry|unknown command/i, command.join(" "));
  }
  // Of streams there is none here, and the id that is asked for is that of the entry.
  assert.match((await run("streams", "get", number)).stderr, /not found/i);
});

test("a name that no entry has, or several have, is refused with the candidates", async () => {
  const unknown = await run("traffic", "get", "4711");
  assert.deepEqual([unknown.code, unknown.stderr], [1, "weir: There is no entry 4711\n"]);
  // Ids ascend in time, so that their beginnings are alike.
  const common = (rows[0]?.id ?? "").slice(0, 9);
  const several = await run("export", "curl", common);
  assert.equal(several.code, 1);
  const [first, ...candidates] = several.stderr.trimEnd().split("\n");
  assert.equal(first, `weir: ${common} matches several entries:`);
  assert.ok(
    candidates.some((line) => line.startsWith(`  #${rows[2]?.seq} ${rows[2]?.id} GET `)),
    several.stderr,
  );
});
