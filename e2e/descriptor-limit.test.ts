import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { peer, proxyClient, rawClient, startOrigin, waitUntil } from "@headworks/testkit";
import type { Origin, RawConnection } from "@headworks/testkit";
import { Cleanups, LOCAL_NAMES, originAuthority, startWeir } from "./rig.ts";
import type { Entry, Weir } from "./rig.ts";
import { numbers } from "./watch.ts";

const prlimit = peer("prlimit");
const cleanups = new Cleanups();
let weir: Weir;
let origin: Origin;
before(async () => {
  if (prlimit.skip !== false) return;
  weir = cleanups.use(await startWeir({ through: [prlimit.path, "--nofile=128", "--"], args: ["--log-json"] }));
  origin = cleanups.use(await startOrigin());
});
after(() => cleanups.run());

/** Preparations after the start also need descriptors: the reader threads and the system's certificates. */
async function untilAllHasBegun(): Promise<void> {
  const [entry] = await weir.waitForEntries(1, "/x");
  assert.equal((await weir.get<Entry>(`/traffic/${entry?.id}`)).state, "complete");
  await using secure = await startOrigin({ tls: { authority: originAuthority, names: LOCAL_NAMES } });
  const { status } = await proxyClient(weir.proxyPort, { ca: weir.caPem }).fetch(`${secure.url}/secure`);
  assert.equal(status, 200);
}

test(
  "without descriptors, Weir refuses connections, logs at most once a second, and recovers by itself",
  { skip: prlimit.skip },
  async () => {
    const client = proxyClient(weir.proxyPort, { timeoutMs: 3000 });
    const get = async (): Promise<number | undefined> =>
      await client.fetch(`${origin.url}/x`).then(
        ({ status }) => status,
        () => undefined,
      );
    assert.equal(await get(), 200);
    await untilAllHasBegun();
    const logged = weir.process.stderr().length;
    const startedMs = performance.now();
    const held: RawConnection[] = [];
    for (const _ of numbers(300)) held.push(await rawClient(weir.proxyPort));
    await waitUntil(() => weir.openFiles() >= 120, { what: "the use of every descriptor" });
    const refused = await waitUntil(() => held.filter(({ ended }) => ended).length, { what: "a refused connection" });
    assert.ok(refused > 0);
    for (const _ of numbers(20)) {
      const late = await rawClient(weir.proxyPort).catch(() => undefined);
      if (late) held.push(late);
    }
    for (const connection of held) connection.destroy();
    await waitUntil(async () => (await get()) === 200, { what: "service after the flood" });
    await waitUntil(async () => (await fetch(`${weir.apiUrl}/health`)).ok);
    const seconds = (performance.now() - startedMs) / 1000;
    const lines = weir.process
      .stderr()
      .slice(logged)
      .split("\n")
      .filter((line) => line !== "");
    assert.ok(lines.length <= seconds + 2, `${lines.length} lines in ${seconds} s:\n${lines.slice(0, 5).join("\n")}`);
    await weir.waitForEntries(2, "/x");
    assert.equal((await weir.stats()).storage_ok, true);
  },
);
