import assert from "node:assert/strict";
import { rm, writeFile } from "node:fs/promises";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import type { Decorator, Gate } from "#request/context.ts";
import type { GatewaySlice } from "#slice.ts";
import { temporaryDirectory } from "@headworks/testkit";
import { generationRig } from "../../test/config/generation-rig.ts";

const respond = (name: string, value = "/"): string =>
  `{name: ${name}, match: {path: {type: prefix, value: ${value}}}, action: {type: respond, status: 204}}`;
const good = `routes: [${respond("a")}]`;
const other = `routes: [${respond("a")}, ${respond("b", "/b")}]`;
const bad = "routes: [{name: a}]\nsurprise: 1";

void test("a valid candidate is published: numbered from 1, current, reported once", async () => {
  const { generations, history, events } = generationRig();
  assert.deepEqual(await history.newest(100), []);
  const first = await generations.submit({ text: good, source: "startup" });
  assert.equal(first.outcome, "published");
  assert.equal(generations.current?.number, 1);
  const hash = generations.current?.contentHash;
  assert.ok(hash !== undefined && Number.isSafeInteger(hash));
  assert.deepEqual(events, [
    { kind: "config_published", payload: { generation: 1, content_hash: hash, route_count: 1 } },
  ]);
  const second = await generations.submit({ text: other, source: "admin", actor: "ops" });
  assert.equal(second.outcome, "published");
  assert.equal(generations.current?.number, 2);
  assert.deepEqual(second.outcome === "published" && second.changes, [
    { kind: "route", name: "b", change: "added", pointers: [] },
  ]);
});

void test("an invalid candidate changes nothing and is reported once, and a valid one after it is published", async () => {
  const { generations, history, events } = generationRig();
  const before = await generations.submit({ text: bad, source: "startup" });
  assert.ok(before.outcome === "rejected" && before.issues.length >= 3, "all issues, not only the first");
  assert.deepEqual(await history.newest(100), []);
  await generations.submit({ text: good, source: "startup" });
  const running = generations.current;
  for (const text of [bad, "{", "", "[]", "routes: [[[[", "\0"]) {
    assert.equal((await generations.submit({ text, source: "reload" })).outcome, "rejected", JSON.stringify(text));
    assert.equal(generations.current, running);
  }
  await generations.submit({ text: other, source: "reload" });
  assert.equal(generations.current?.number, 2);
  const rejected = events.filter(({ kind }) => kind === "config_rejected").map(({ payload }) => payload);
  assert.equal(rejected.length, 7);
  assert.deepEqual(rejected[0], { issue_count: 3, generation: 0 });
  assert.deepEqual(rejected[2], { issue_count: 1, generation: 1 });
});

void test("a reload without a change publishes nothing, unless it is forced; the admin API always publishes", async () => {
  const { generations, events } = generationRig();
  await generations.submit({ text: good, source: "startup" });
  const same = `# only the writing differs\n${JSON.stringify({ routes: [{ action: { status: 204, type: "respond" }, name: "a", match: { path: { value: "/", type: "prefix" } } }] })}`;
  assert.equal((await generations.submit({ text: same, source: "reload" })).outcome, "unchanged");
  assert.equal(events.length, 1);
  assert.equal((await generations.submit({ text: same, source: "reload" }, { force: true })).outcome, "published");
  assert.equal((await generations.submit({ text: same, source: "admin" })).outcome, "published");
  assert.equal(generations.current?.number, 3);
  assert.equal(events.length, 3);
});

void test("a secret's file that changed counts as changed content, and each build reads it again", async () => {
  await using directory = await temporaryDirectory();
  const file = directory.file("key");
  await writeFile(file, "first-secret\n");
  const seen: string[] = [];
  const slice: GatewaySlice = {
    name: "keys",
    compile: (document, scope) => {
      const credential = document.consumers[0]?.credentials?.[0];
      if (credential?.type === "api_key") seen.push(scope.secret(credential.key).reveal());
      return {};
    },
  };
  const { generations, history, events, lines } = generationRig({ slices: [slice] });
  const text = `${good}\nconsumers: [{name: c, credentials: [{type: api_key, key: "\${file:${file}}"}]}]`;
  const first = await generations.submit({ text, source: "startup" });
  assert.equal((await generations.submit({ text, source: "reload" })).outcome, "unchanged");
  await writeFile(file, "second-secret\n");
  const second = await generations.submit({ text, source: "reload" });
  assert.equal(second.outcome, "published");
  assert.deepEqual(seen, ["first-secret", "second-secret"]);
  await rm(file);
  const third = await generations.submit({ text, source: "reload" });
  assert.ok(third.outcome === "rejected" && third.issues[0]?.code === "secret_unresolved");
  const told = JSON.stringify([first, second, third, events, lines, await history.newest(100)]);
  assert.ok(!told.includes("first-secret") && !told.includes("second-secret"));
});

void test("an unreadable text is a rejected candidate, reported once", async () => {
  const { generations, events } = generationRig();
  await generations.submit({ text: good, source: "startup" });
  const outcome = await generations.submit(() => ({ why: "The file gateway.yaml does not exist" }));
  assert.ok(outcome.outcome === "rejected" && outcome.issues.length === 1);
  assert.deepEqual(events.at(-1), { kind: "config_rejected", payload: { issue_count: 1, generation: 1 } });
  assert.equal(generations.current?.number, 1);
});

void test("a dry run notifies no listeners, changes nothing, and returns the changes", async () => {
  const { generations, events, lines } = generationRig();
  await generations.submit({ text: good, source: "startup" });
  const logged = lines.length;
  const outcome = await generations.submit({ text: other, source: "admin" }, { dryRun: true });
  assert.ok(outcome.outcome === "valid" && outcome.generation === 2 && outcome.changes.length === 1);
  assert.equal((await generations.submit({ text: bad, source: "admin" }, { dryRun: true })).outcome, "rejected");
  assert.equal(generations.current?.number, 1);
  assert.equal(events.length, 1);
  assert.equal(lines.length, logged);
});

void test("a candidate for another generation than the running one is a conflict, and no event", async () => {
  const { generations, events } = generationRig();
  await generations.submit({ text: good, source: "startup" });
  const hash = generations.current?.contentHash ?? 0;
  const conflict = await generations.submit({ text: other, source: "admin" }, { ifMatch: [hash + 1] });
  assert.deepEqual(conflict, { outcome: "conflict", contentHash: hash });
  assert.equal(events.length, 1);
  assert.equal(
    (await generations.submit({ text: other, source: "admin" }, { ifMatch: [hash + 1, hash] })).outcome,
    "published",
  );
});

void test("of two changes made at once to the same generation, one wins and the other is a conflict", async () => {
  const { generations } = generationRig();
  await generations.submit({ text: good, source: "startup" });
  const ifMatch = [generations.current?.contentHash ?? 0];
  const outcomes = await Promise.all([
    generations.submit({ text: other, source: "admin" }, { ifMatch }),
    generations.submit({ text: `routes: [${respond("c")}]`, source: "admin" }, { ifMatch }),
  ]);
  assert.deepEqual(outcomes.map(({ outcome }) => outcome).toSorted(), ["conflict", "published"]);
  assert.equal(generations.current?.number, 2);
});

void test("a text is found when its turn comes: what was published meanwhile is not undone by what was there before", async () => {
  const { generations } = generationRig();
  await generations.submit({ text: good, source: "startup" });
  let file = good;
  const persist = async (text: string): Promise<void> => {
    file = text;
    await Promise.resolve();
  };
  const inFile = () => ({ text: file, source: "reload" }) as const;
  const fails = (): never => {
    throw new Error("not to be had");
  };
  const [changed, refused, reloaded] = await Promise.allSettled([
    generations.submit({ text: other, source: "admin" }, { persist }),
    generations.submit(fails),
    generations.submit(inFile),
  ]);
  assert.ok(changed.status === "fulfilled" && changed.value.outcome === "published");
  assert.ok(refused.status === "rejected", "the submitter receives the rejection, later candidates continue");
  assert.ok(reloaded.status === "fulfilled" && reloaded.value.outcome === "unchanged");
});

void test("what cannot be persisted is not published; what is persisted is published behind it", async () => {
  const { generations, events } = generationRig();
  await generations.submit({ text: good, source: "startup" });
  const failure = new Error("disk full");
  const persist = async (): Promise<void> => await Promise.reject(failure);
  const outcome = await generations.submit({ text: other, source: "admin" }, { persist });
  assert.deepEqual(outcome, { outcome: "not_persisted", error: failure });
  assert.equal(generations.current?.number, 1);
  let persisted = 0;
  const write = async (): Promise<void> => {
    persisted = generations.current?.number ?? 0;
    await Promise.resolve();
  };
  await generations.submit({ text: other, source: "admin" }, { persist: write });
  assert.equal(persisted, 1, "written while the old generation runs");
  assert.equal(events.length, 2);
});

void test("a slice that throws while compiling rejects the candidate; one that throws while switching stops no other", async () => {
  const switched: string[] = [];
  let breaks = false;
  const slices: GatewaySlice[] = [
    {
      name: "compiles",
      compile: () => {
        if (breaks) throw new Error("hunter2");
        return {};
      },
    },
    {
      name: "switches",
      compile: () => ({
        published: () => {
          throw new Error("hunter2");
        },
      }),
    },
    { name: "last", compile: ({ routes }) => ({ published: () => switched.push(`${routes.length}`) }) },
  ];
  const { generations, events, lines } = generationRig({ slices });
  assert.equal((await generations.submit({ text: good, source: "startup" })).outcome, "published");
  assert.deepEqual(switched, ["1"]);
  breaks = true;
  const outcome = await generations.submit({ text: other, source: "reload" });
  assert.ok(outcome.outcome === "rejected" && outcome.issues.some(({ code }) => code === "compile_failed"));
  assert.ok(!JSON.stringify([outcome, lines]).includes("hunter2"));
  assert.ok(
    lines.some((line) => line.includes("generations.test.ts")),
    "the log says where",
  );
  assert.equal(generations.current?.number, 1);
  assert.deepEqual(events.at(-1), { kind: "config_rejected", payload: { issue_count: 1, generation: 1 } });
  breaks = false;
  assert.equal((await generations.submit({ text: other, source: "reload" })).outcome, "published");
  assert.deepEqual(switched, ["1", "2"]);
});

void test("a route has what slices give it, in their orders, and one shared nothing where they give nothing", async () => {
  const gate = (name: string): Gate => Object.assign({ check: () => undefined }, { name });
  const decorator = (name: string): Decorator =>
    Object.assign({ on: "every-route-response" as const, decorate: () => undefined }, { name });
  const a: GatewaySlice = {
    name: "a",
    compile: () => ({
      gateFor: (route) => (route.name === "a" ? gate("a") : undefined),
      unroutedGateFor: (listener) => (listener.name === "l" ? gate("unrouted") : undefined),
      decoratorFor: (route) => (route.name === "a" ? decorator("a") : undefined),
    }),
  };
  const b: GatewaySlice = {
    name: "b",
    compile: () => ({
      gateFor: (route) => (route.name === "a" ? gate("b") : undefined),
      decoratorFor: (route) => (route.name === "a" ? decorator("b") : undefined),
    }),
  };
  const { generations } = generationRig({ slices: [a, b, { name: "only checks" }], responseOrder: [b, a] });
  const listeners = "listeners: [{name: l, address: '::', port: 0}, {name: m, address: '::', port: 0}]";
  await generations.submit({ text: `${other}\n${listeners}`, source: "startup" });
  const [first, second] = generations.current?.routeList ?? [];
  const names = (parts: readonly object[] | undefined): unknown[] =>
    (parts ?? []).map((part) => "name" in part && part.name);
  assert.deepEqual(names(first?.gates), ["a", "b"]);
  assert.deepEqual(names(first?.decorators), ["b", "a"]);
  assert.equal(second?.gates, second?.decorators);
  assert.equal(second?.gates, first?.bodyFilters);
  assert.equal(second?.gates.length, 0);
  assert.deepEqual([first?.index, second?.index, first?.priority], [0, 1, 5]);
  assert.deepEqual(names(generations.current?.unroutedGates.get("l")), ["unrouted"]);
  assert.equal(generations.current?.unroutedGates.get("m"), second?.gates);
});

void test("slices see a candidate published before its event, and listeners after it", async () => {
  const order: string[] = [];
  const slice: GatewaySlice = { name: "targets", compile: () => ({ published: () => order.push("slice") }) };
  const { generations } = generationRig({ slices: [slice], events: { emit: (kind) => order.push(kind) } });
  const stop = generations.onPublished(({ number }) => order.push(`listener ${number}`));
  await generations.submit({ text: good, source: "startup" });
  stop();
  await generations.submit({ text: other, source: "reload" });
  assert.deepEqual(order, ["slice", "config_published", "listener 1", "slice", "config_published"]);
});

void test("the history has the last 100 generations, newest first, redacted, with the text to go back to", async () => {
  const { generations, history } = generationRig();
  const key = "consumers: [{name: c, credentials: [{type: api_key, key: inline-key}]}]";
  for (let at = 1; at <= 105; at++) {
    await generations.submit({ text: `routes: [${respond(`r${at}`)}]\n${key}`, source: "admin" });
  }
  const all = await history.newest(1000);
  assert.equal(all.length, 100);
  assert.deepEqual([all[0]?.generation, all.at(-1)?.generation], [105, 6]);
  const past = await history.find(102);
  assert.match(JSON.stringify(past?.redacted), /\$\{redacted:sha256:[0-9a-f]{8}\}/);
  const back = await generations.submit({ text: past?.text ?? "", source: "rollback" });
  assert.equal(back.outcome, "published");
  assert.equal(generations.current?.contentHash, past?.contentHash);
});

void test("random sequences of good and bad candidates: numbers count publications, events count candidates", async () => {
  const { generations, events } = generationRig();
  const texts = [good, other, bad, "}", `routes: [${respond("c")}]`];
  let published = 0;
  let rejected = 0;
  for (let round = 0; round < 60; round++) {
    const text = texts[(round * 7 + (round >> 2)) % texts.length] ?? "";
    const outcome = await generations.submit({ text, source: "reload" });
    if (outcome.outcome === "published") published += 1;
    if (outcome.outcome === "rejected") rejected += 1;
    assert.equal(generations.current?.number ?? 0, published);
  }
  assert.ok(published > 5 && rejected > 5);
  assert.equal(events.filter(({ kind }) => kind === "config_published").length, published);
  assert.equal(events.filter(({ kind }) => kind === "config_rejected").length, rejected);
});

void test("requests get their turns while a large configuration is prepared", async () => {
  const { generations } = generationRig();
  const routes = Array.from({ length: 3000 }, (_, at) => `  - ${respond(`r${at}`, `/p${at}`)}`);
  let turns = 0;
  let isDone = false;
  const others = (async () => {
    for (; !isDone; turns++) await setImmediate();
  })();
  const outcome = await generations.submit({ text: `routes:\n${routes.join("\n")}`, source: "startup" });
  isDone = true;
  await others;
  assert.equal(outcome.outcome, "published");
  assert.ok(turns >= 10, `${turns} turns`);
});

void test("what of the admin section is read at the start only is a warning as long as it differs from then", async () => {
  const { generations } = generationRig({ environment: { GATEWAY_ADMIN_DEV: "1" } });
  const warnings = async (admin: string): Promise<string[]> => {
    const outcome = await generations.submit({ text: `${good}\n${admin}`, source: "admin" });
    assert.equal(outcome.outcome, "published");
    const found = outcome.outcome === "published" ? outcome.warnings : [];
    return found.filter(({ code }) => code === "restart_needed").map(({ path, line }) => `${path} ${line}`);
  };
  assert.deepEqual(await warnings("admin: {}"), []);
  assert.deepEqual(await warnings("admin: {bind: 127.0.0.1:2019}"), [], "the default");
  assert.deepEqual(await warnings("admin: {bind: 127.0.0.1:2020}"), ["/admin/bind 2"]);
  assert.deepEqual(await warnings("admin: {bind: 127.0.0.1:2020, audit_log: {path: a.log}}"), [
    "/admin/bind 2",
    "/admin/audit_log 2",
  ]);
  assert.deepEqual(await warnings(""), ["/admin 1"]);
  assert.deepEqual(await warnings("admin: {}"), []);
});

void test("a check has the warning of what needs a restart, too, once something runs", async () => {
  const { generations } = generationRig({ environment: { GATEWAY_ADMIN_DEV: "1" } });
  const codes = async (): Promise<string[]> =>
    (await generations.check(`${good}\nadmin: {bind: 127.0.0.1:2020}`)).map(({ code, path }) => `${code} ${path}`);
  assert.deepEqual(await codes(), []);
  await generations.submit({ text: `${good}\nadmin: {}`, source: "startup" });
  assert.deepEqual(await codes(), ["restart_needed /admin/bind"]);
});

void test("warnings of a publication are one log line with the first of many", async () => {
  const { generations, lines } = generationRig();
  const logged = (): { warnings: unknown[]; level: number }[] =>
    lines.splice(0).flatMap((line) => {
      const entry = JSON.parse(line) as { code: string; warnings: unknown[]; level: number };
      return entry.code === "config_warnings" ? [entry] : [];
    });
  await generations.submit({ text: good, source: "startup" });
  assert.deepEqual(logged(), [], "no warnings, no line");
  await generations.submit({ text: `${good}\npolicies: [{name: a}]`, source: "reload" });
  const [line] = logged();
  assert.deepEqual(
    [line?.level, line?.warnings],
    [40, [{ code: "unused", path: "/policies/0", message: 'Nothing uses the policy "a"', line: 2 }]],
  );
  const many = Array.from({ length: 600 }, (_, at) => `{name: p${at}}`).join(", ");
  await generations.submit({ text: `${good}\npolicies: [${many}]`, source: "reload" }, { dryRun: true });
  assert.deepEqual(logged(), [], "a dry run notifies no subscriber");
  await generations.submit({ text: `${good}\npolicies: [${many}]`, source: "admin" });
  const [long] = logged();
  assert.partialDeepStrictEqual(long, { warning_count: 600, generation: 3 });
  assert.equal(long?.warnings.length, 20);
});
