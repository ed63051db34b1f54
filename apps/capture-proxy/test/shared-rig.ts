import { test } from "node:test";
import { openRig } from "#storage/store-rig.ts";
import type { StoreRig } from "#storage/store-rig.ts";
import { temporaryDirectory } from "@headworks/testkit";
import type { TemporaryDirectory } from "@headworks/testkit";

/** Takes a test that looks at nothing but what it makes itself. */
export type SharingTest<Rig> = (rule: string, check: (rig: Rig) => Promise<void>) => void;

/** Tests that share what takes longer to start than most of them to run; `begin` goes before each. */
export function testsSharing<Rig extends AsyncDisposable>(
  subject: string,
  start: () => Promise<Rig>,
  begin: (rig: Rig) => Promise<void> = async () => undefined,
): SharingTest<Rig> {
  const checks: Parameters<SharingTest<Rig>>[] = [];
  void test(subject, async (t) => {
    await using rig = await start();
    for (const [rule, check] of checks) {
      await t.test(rule, async () => {
        await begin(rig);
        await check(rig);
      });
    }
  });
  return (rule, check) => void checks.push([rule, check]);
}

export interface TemporaryStore extends StoreRig {
  readonly directory: TemporaryDirectory;
}

/** A store in a directory that goes with it. */
export async function openTemporaryStore(): Promise<TemporaryStore> {
  const directory = await temporaryDirectory();
  const rig = await openRig(directory.path);
  return {
    ...rig,
    directory,
    [Symbol.asyncDispose]: async () => {
      await rig[Symbol.asyncDispose]();
      await directory.remove();
    },
  };
}

/** Makes a session without entries the active one: what asks for no other sees nothing that was recorded before. */
export async function beginSession({ store }: StoreRig): Promise<void> {
  await store.switchSession((await store.createSession(null, null)).id);
}
