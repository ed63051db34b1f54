import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import { after, before, test } from "node:test";
import { credentials, proxyClient, rawClient, startRawServer } from "@headworks/testkit";
import type { RawConnection, RawServer } from "@headworks/testkit";
import { Cleanups, LOCAL_NAMES, originAuthority, startWeir } from "../rig.ts";
import type { Entry, Weir } from "../rig.ts";
import { framingGroups } from "./framing-cases.ts";
import { messageGroups } from "./message-cases.ts";
import { runCase, ScriptedOrigin } from "./run-case.ts";
import type { Route } from "./run-case.ts";
import type { Case, Group } from "./script.ts";
import { targetGroups } from "./target-cases.ts";

// Clients and origins receive the same through Weir as without it, except for the fields
// of one connection.

const GROUPS: readonly Group[] = [...messageGroups, ...framingGroups, ...targetGroups];

const cleanups = new Cleanups();
const origin = new ScriptedOrigin();
let weir: Weir;
let plain: RawServer;
let secure: RawServer;
let exchanges = 0;

before(async () => {
  weir = cleanups.use(await startWeir());
  plain = cleanups.use(await startRawServer(origin.serve));
  secure = cleanups.use(await startRawServer(origin.serve, { tls: credentials(originAuthority, LOCAL_NAMES) }));
});
after(() => cleanups.run());

function plainRoutes(): { direct: Route; through: Route } {
  const authority = `localhost:${plain.port}`;
  return {
    direct: { targetPrefix: "", authority, open: async () => await rawClient(plain.port) },
    through: { targetPrefix: `http://${authority}`, authority, open: async () => await rawClient(weir.proxyPort) },
  };
}

function secureRoutes(): { direct: Route; through: Route } {
  const authority = `localhost:${secure.port}`;
  const tls = { ca: originAuthority.certificatePem, servername: "localhost" };
  const client = proxyClient(weir.proxyPort, { ca: weir.caPem });
  return {
    direct: { targetPrefix: "", authority, open: async () => await rawClient(secure.port, { tls }) },
    through: { targetPrefix: "", authority, open: async () => await client.secureTunnel("localhost", secure.port) },
  };
}

/** Runs a case without and with Weir; returns a description of the difference, or undefined. */
async function difference(
  each: Case,
  { direct, through }: { direct: Route; through: Route },
): Promise<string | undefined> {
  try {
    const wanted = await runCase(each, origin, direct);
    const got = await runCase(each, origin, through);
    exchanges += each.steps.length;
    if (isDeepStrictEqual(got, wanted)) return undefined;
    return `${each.name}:\n  without Weir ${shown(wanted)}\n  with Weir    ${shown(got)}`;
  } catch (error) {
    return `${each.name}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`;
  }
}

const shown = (outcome: object): string => JSON.stringify(outcome).slice(0, 3000);

/** A tunnel with HTTP without TLS, for clients that use CONNECT with every proxy. */
function tunnelRoutes(): { direct: Route; through: Route } {
  const authority = `localhost:${plain.port}`;
  const client = proxyClient(weir.proxyPort);
  const open = async (): Promise<RawConnection> => (await client.tunnel(authority)).connection;
  return { direct: plainRoutes().direct, through: { targetPrefix: "", authority, open } };
}

function testGroups(kind: string, routes: () => { direct: Route; through: Route }): void {
  for (const group of GROUPS) {
    void test(`${group.name} (${group.cases.length} cases) pass through ${kind} unchanged`, async () => {
      const differences: string[] = [];
      for (const each of group.cases) {
        const found = await difference(each, routes());
        if (found !== undefined) differences.push(found);
      }
      assert.equal(differences.length, 0, `${differences.length} of ${group.cases.length}\n${differences.join("\n")}`);
    });
  }
}

testGroups("plain HTTP", plainRoutes);
testGroups("intercepted TLS", secureRoutes);

test("there are at least 200 cases with unique names", () => {
  const names = GROUPS.flatMap(({ name, cases }) => cases.map((each) => `${name}: ${each.name}`));
  assert.ok(names.length >= 200, String(names.length));
  assert.equal(new Set(names).size, names.length);
});

test("every one of these exchanges has an entry without a failure", async () => {
  const entries: Entry[] = [];
  await weir.waitForEntries(1);
  for (let offset = 0; ; offset += 1000) {
    const page = await weir.get<Entry[]>(`/traffic?limit=1000&offset=${offset}`);
    entries.push(...page);
    if (page.length < 1000) break;
  }
  const failed = entries.filter(({ failure }) => failure !== null);
  assert.deepEqual(
    failed.map(({ failure, request }) => [request.path.slice(0, 80), failure?.message]),
    [],
  );
  assert.equal(entries.length, exchanges);
  for (const { request, response } of entries) {
    const isWhole = [request, response].every((message) => message?.body_stored_size === message?.body_size);
    assert.ok(response !== null && isWhole, request.url);
  }
});

// Some methods do not look like HTTP at the start of a tunnel and are relayed: their entries differ.
testGroups("plain HTTP inside CONNECT", tunnelRoutes);
