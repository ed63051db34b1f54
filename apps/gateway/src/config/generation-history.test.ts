import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import { generationRig } from "../../test/config/generation-rig.ts";
import { type ArchivedGeneration, type GenerationArchive, PastGenerations } from "./generations.ts";
import { toYaml } from "./write-document.ts";

const respond = (name: string): string =>
  `{name: ${name}, match: {path: {type: prefix, value: /}}, action: {type: respond, status: 204}}`;
const routes = (name: string): string => `routes: [${respond(name)}] # ${name}\n`;
const withKey = (name: string, key: string): string =>
  `${routes(name)}consumers: [{ name: c, credentials: [{ type: api_key, key: ${key} }] }]\n`;

/** An archive in memory, which outlives the rigs that write to it. */
function archiveOf(records: ArchivedGeneration[] = []): GenerationArchive & { readonly records: ArchivedGeneration[] } {
  return {
    records,
    recordGeneration: async (record) => void (await Promise.resolve(records.push(record))),
    generations: async (limit) =>
      await Promise.resolve(
        records
          .map(({ text: _, ...facts }) => facts)
          .toReversed()
          .slice(0, limit),
      ),
    generation: async (number) => await Promise.resolve(records.find(({ generation }) => generation === number)),
  };
}

async function started(archive: GenerationArchive, text: string) {
  const rig = generationRig({ archive });
  const first = await rig.generations.submit({ text, source: "startup" });
  await rig.generations.settled();
  return { ...rig, first };
}

void test("numbers go on over a restart, and what was published before is listed and found", async () => {
  const archive = archiveOf();
  const before = await started(archive, routes("a"));
  await before.generations.submit({ text: routes("b"), source: "admin", actor: "ops" });
  await before.generations.settled();
  const after = await started(archive, routes("c"));
  assert.equal(after.generations.current?.number, 3);
  const list = await after.history.newest(100);
  assert.deepEqual(
    list.map(({ generation, source, actor, routeCount }) => [generation, source, actor, routeCount]),
    [
      [3, "startup", undefined, 1],
      [2, "admin", "ops", 1],
      [1, "startup", undefined, 1],
    ],
  );
  assert.equal((await after.history.newest(2)).at(-1)?.generation, 2);
  assert.equal((await after.history.find(2))?.text, routes("b"));
  assert.match(JSON.stringify((await after.history.find(1))?.redacted), /"name":"a"/);
  assert.equal(await after.history.find(4), undefined);
});

void test("after a restart the latest document keeps its generation, an older one gets a new one", async () => {
  const archive = archiveOf();
  await started(archive, routes("a"));
  await started(archive, routes("b"));
  const again = await started(archive, `# written otherwise\n${routes("b")}`);
  assert.deepEqual([again.generations.current?.number, archive.records.length], [2, 2]);
  assert.deepEqual(again.events.at(-1)?.kind, "config_published");
  await again.generations.submit({ text: routes("c"), source: "reload" });
  assert.equal(again.generations.current?.number, 3);
  assert.equal((await started(archive, routes("a"))).generations.current?.number, 4);
});

void test("with an archive, memory holds no text but the running one, unless it has inline secrets", async () => {
  const archive = archiveOf();
  const { generations, history } = await started(archive, routes("a"));
  for (const text of [routes("b"), withKey("c", "hunter2"), routes("d")]) {
    await generations.submit({ text, source: "admin" });
  }
  await generations.settled();
  archive.records.length = 0;
  assert.deepEqual(
    (await history.newest(100)).map(({ generation }) => generation),
    [3],
  );
  assert.equal((await history.find(3))?.text, withKey("c", "hunter2"));
});

void test("inline secrets are in no archive; those of a generation come back from memory, or from what runs", async () => {
  const archive = archiveOf();
  const before = await started(archive, withKey("a", "hunter2"));
  const past = await before.history.find(1);
  assert.equal(past?.text, withKey("a", "hunter2"));
  assert.ok(!inspect(archive.records, { depth: 9 }).includes("hunter2"));
  const after = await started(archive, withKey("b", "hunter2"));
  const kept = await after.history.find(1);
  assert.ok(kept !== undefined && !kept.text.includes("hunter2"));
  assert.equal(await after.history.textToRun(kept, after.generations.input ?? {}), withKey("a", "hunter2"));
  const { generations, history } = await started(archive, withKey("c", "swordfish"));
  const text = await history.textToRun(kept, generations.input ?? {});
  const outcome = await generations.submit({ text, source: "rollback" });
  assert.deepEqual(outcome.outcome === "rejected" && outcome.issues.map(({ code }) => code), ["redacted_placeholder"]);
});

void test("generations rejected by the archive stay in memory and are logged", async () => {
  const archive = archiveOf();
  const refusing: GenerationArchive = {
    ...archive,
    recordGeneration: async (record) => {
      if (record.generation === 2) throw new Error("disk full");
      await archive.recordGeneration(record);
    },
  };
  const { generations, history, lines } = await started(refusing, routes("a"));
  for (const name of ["b", "c"]) await generations.submit({ text: routes(name), source: "admin" });
  await generations.settled();
  assert.deepEqual(
    (await history.newest(100)).map(({ generation }) => generation),
    [3, 2, 1],
  );
  assert.equal((await history.find(2))?.text, routes("b"));
  assert.equal(lines.filter((line) => line.includes('"code":"config_not_archived"')).length, 1);
});

const facts = {
  contentHash: 1,
  routeCount: 0,
  publishedMs: 0,
  source: "admin",
  actor: undefined,
} as const;

void test("the last hundred are remembered, newest first", () => {
  const past = new PastGenerations();
  for (let generation = 1; generation <= 105; generation++) past.add({ ...facts, generation }, "{}");
  assert.equal(past.newestFirst.length, 100);
  assert.deepEqual([past.newestFirst[0]?.generation, past.newestFirst.at(-1)?.generation], [105, 6]);
});

void test("texts together stay below a bound, and the newest is always there", () => {
  const past = new PastGenerations(10);
  for (const [generation, text] of [
    [1, "12345"],
    [2, "12345"],
    [3, "123456"],
    [4, "12345678901234"],
  ] as const) {
    past.add({ ...facts, generation }, text);
    const numbers = past.newestFirst.map((entry) => entry.generation);
    assert.deepEqual(numbers, { 1: [1], 2: [2, 1], 3: [3], 4: [4] }[generation]);
  }
});

void test("a past generation is shown redacted, and printing an entry prints no secret", () => {
  const past = new PastGenerations();
  const text = "consumers: [{name: c, credentials: [{type: api_key, key: hunter2}]}]\nname: g";
  past.add({ ...facts, generation: 1 }, text);
  const [entry] = past.newestFirst;
  const shown = toYaml(entry?.redacted ?? {});
  assert.match(shown, /^gateway:\n {2}name: g\nconsumers:\n/);
  assert.match(shown, /key: "?\$\{redacted:sha256:[0-9a-f]{8}\}/);
  assert.ok(!shown.includes("hunter2"));
  assert.match(entry?.text ?? "", /hunter2/);
  assert.ok(!JSON.stringify(past.newestFirst).includes("hunter2"));
  assert.ok(!inspect(past, { depth: 9 }).includes("hunter2"));
});
