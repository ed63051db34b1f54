import assert from "node:assert/strict";
import { existsSync, globSync, renameSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import type { TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { spawnProcess, temporaryDirectory } from "@headworks/testkit";
import type { SpawnedProcess, TemporaryDirectory } from "@headworks/testkit";

const GATEWAY = fileURLToPath(new URL("./quota-clock-gateway.ts", import.meta.url));
const NAME = "libfaketime.so.1";

/** The library that moves a process's wall clock; in `LIBFAKETIME`, or where Debian, Fedora and Homebrew put it. */
function fakeTimeLibrary(context: TestContext): string | undefined {
  const named = process.env["LIBFAKETIME"];
  const places = [`/usr/lib/*/faketime/${NAME}`, `/usr/lib{,64}/faketime/${NAME}`, `/usr/local/lib/faketime/${NAME}`];
  const found = named !== undefined && existsSync(named) ? named : places.flatMap((place) => globSync(place))[0];
  if (found === undefined) context.skip("needs libfaketime; cases with an injected clock are in quotas.slice.test.ts");
  return found;
}

/** Sets the process's clock at once: the library reads the file at every call, and must never find it half written. */
function setClock(directory: TemporaryDirectory, time: string): void {
  writeFileSync(directory.file("next-time"), time);
  renameSync(directory.file("next-time"), directory.file("time"));
}

async function startedAt(directory: TemporaryDirectory, library: string, time: string): Promise<SpawnedProcess> {
  setClock(directory, time);
  return await spawnProcess(process.execPath, [GATEWAY, directory.file("state", "state.db")], {
    env: {
      LD_PRELOAD: library,
      FAKETIME_TIMESTAMP_FILE: directory.file("time"),
      FAKETIME_NO_CACHE: "1",
      FAKETIME_DONT_FAKE_MONOTONIC: "1",
      FAKETIME_DONT_RESET: "1",
      TZ: "Pacific/Auckland",
    },
  });
}

const seconds = (iso: string): number => Date.parse(iso) / 1000;

test("clock: the system's clock rolls over midnight into a leap day, then into a month, in UTC wherever the machine is", async (context) => {
  const library = fakeTimeLibrary(context);
  if (library === undefined) return;
  await using directory = await temporaryDirectory();
  // 23:59:55 UTC on the 28th is 12:59:55 on the 29th in Auckland, whose time the library reads.
  await using gateway = await startedAt(directory, library, "@2028-02-29 12:59:55");
  await gateway.waitForOutput(/2028-02-28T23:59:5\d\S+ passes\n/u);
  await gateway.waitForOutput(new RegExp(`1 until ${seconds("2028-02-29T00:00:00Z")}\n`, "u"));
  await gateway.waitForOutput(/2028-02-29T00:00:0\d\S+ passes\n/u);
  await gateway.waitForOutput(new RegExp(`1 until ${seconds("2028-03-01T00:00:00Z")}\n`, "u"));
});

test("clock: set forward, back an hour and back a day, each window keeps what was spent in it", async (context) => {
  const library = fakeTimeLibrary(context);
  if (library === undefined) return;
  await using directory = await temporaryDirectory();
  await using gateway = await startedAt(directory, library, "@2026-03-11 01:00:00");
  const set = (time: string): void => setClock(directory, time);
  await gateway.waitForOutput(/2026-03-10T12\S+ passes\n/u);
  set("@2026-03-13 01:00:00");
  await gateway.waitForOutput(/2026-03-12T12\S+ passes\n/u);
  set("@2026-03-13 00:00:00");
  set("@2026-03-11 01:00:00");
  await gateway.waitForOutput(new RegExp(`2026-03-10T12\\S+ 1 until ${seconds("2026-03-11T00:00:00Z")}\n`, "u"));
  set("@2026-03-12 01:00:00");
  await gateway.waitForOutput(/2026-03-11T12\S+ passes\n/u);
  set("@2026-03-20 01:00:00");
  await gateway.waitForOutput(new RegExp(`2026-03-19T12\\S+ 3 until ${seconds("2026-04-01T00:00:00Z")}\n`, "u"));
  set("@2026-04-01 13:00:00");
  await gateway.waitForOutput(/2026-04-01T00\S+ passes\n/u);
  assert.equal(gateway.stdout().split("passes").length - 1, 4);
});
