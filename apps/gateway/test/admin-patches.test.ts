import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { ADMIN, call, DEV, listeners } from "./admin-rig.ts";
import { startGateway, type TestGateway } from "./gateway-rig.ts";

const respond = (path: string) =>
  ({
    name: `route${path.replaceAll("/", "-")}`,
    match: { path: { type: "exact", value: path } },
    action: { type: "respond", status: 200 },
  }) as const;

const document = { admin: ADMIN, listeners, routes: [respond("/")] };

const add = async (gateway: TestGateway, path: string) =>
  await call(gateway, "/config", {
    method: "PATCH",
    headers: { "content-type": "application/json-patch+json" },
    body: JSON.stringify([{ op: "add", path: "/routes/-", value: respond(path) }]),
  });

test("changes that come at once are made one after the other: each finds what the one before left", async () => {
  await using gateway = await startGateway(document, DEV);
  const paths = Array.from({ length: 20 }, (_, at) => `/added-${at}`);
  const answers = await Promise.all(paths.map(async (path) => await add(gateway, path)));
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
  const { text } = await call(gateway, "/config");
  assert.deepEqual(
    paths.filter((path) => !text.includes(`${path}\n`)),
    [],
  );
});

test("who watches the file puts nothing back that a change through the admin API has replaced", async () => {
  await using gateway = await startGateway(document, { ...DEV, followsFile: true });
  // The file is read a tenth of a second after it was written: the changes come about then.
  for (let at = 0; at < 30; at += 1) {
    assert.equal((await add(gateway, `/added-${at}`)).status, 200);
    await delay(90 + (at % 10) * 2);
  }
  const { generations } = (await call(gateway, "/config/generations?limit=100")).json() as unknown as {
    generations: { source: string }[];
  };
  assert.deepEqual(new Set(generations.map(({ source }) => source)), new Set(["admin", "startup"]));
});
