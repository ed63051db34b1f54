import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { peer, runProcess, waitUntil } from "@headworks/testkit";
import { startProxyRig, type ProxyRig } from "./proxy-rig.ts";

const openssl = peer("openssl");
const { skip } = openssl;
let rig: ProxyRig;
before(async () => {
  rig = await startProxyRig();
});
after(async () => await rig[Symbol.asyncDispose]());

/** What `openssl s_client` says of an intercepted connection; no origin is needed for TLS with the client. */
async function connect(args: readonly string[], input = ""): Promise<string> {
  const proxy = new URL(rig.proxy.addresses.proxy).host;
  const common = ["s_client", "-proxy", proxy, "-connect", "a.test:443", "-servername", "a.test"];
  const exit = await runProcess(openssl.path, [...common, ...args], { input, timeoutMs: 15_000 });
  return `${exit.stdout}\n${exit.stderr}`;
}

/** `version suite` of the connection; `none` when the client's offer is turned away. */
async function agreed(args: readonly string[]): Promise<string> {
  const said = await connect(args);
  const [, suite] = /^New, [\w.]+, Cipher is (\S+)/m.exec(said) ?? [];
  const [, version] = /^ *Protocol *: (\S+)|^New, (?=TLSv1\.3)/m.exec(said) ?? [];
  if (suite !== undefined && suite !== "(NONE)") return `${version ?? "TLSv1.3"} ${suite}`;
  assert.match(said, /handshake failure|protocol version/);
  return "none";
}

const old = (version: string, suite: string): readonly string[] => [version, "-cipher", `${suite}:@SECLEVEL=0`];
const CLIENTS: readonly { readonly args: readonly string[]; readonly byDefault: string; readonly legacy: string }[] = [
  ...["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"].map((suite) => ({
    args: ["-tls1_3", "-ciphersuites", suite],
    byDefault: `TLSv1.3 ${suite}`,
    legacy: `TLSv1.3 ${suite}`,
  })),
  ...["AES128-GCM-SHA256", "AES256-GCM-SHA384", "CHACHA20-POLY1305"].map((suite) => ({
    args: old("-tls1_2", `ECDHE-ECDSA-${suite}`),
    byDefault: `TLSv1.2 ECDHE-ECDSA-${suite}`,
    legacy: `TLSv1.2 ECDHE-ECDSA-${suite}`,
  })),
  ...["AES128-SHA256", "AES256-SHA384", "AES128-SHA", "AES256-SHA"].map((suite) => ({
    args: old("-tls1_2", `ECDHE-ECDSA-${suite}`),
    byDefault: "none",
    legacy: `TLSv1.2 ECDHE-ECDSA-${suite}`,
  })),
  ...["1", "1_1"].map((version) => ({
    args: old(`-tls${version}`, "ECDHE-ECDSA-AES128-SHA"),
    byDefault: "none",
    legacy: `TLSv${version.replace("_", ".")} ECDHE-ECDSA-AES128-SHA`,
  })),
  {
    args: ["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-SHA:ECDHE-ECDSA-AES256-GCM-SHA384"],
    byDefault: "TLSv1.2 ECDHE-ECDSA-AES256-GCM-SHA384",
    legacy: "TLSv1.2 ECDHE-ECDSA-AES256-GCM-SHA384",
  },
];

test(
  "clients whose HTTPS is read get suites with forward secrecy and authenticated encryption, and older ones by a setting",
  { skip },
  async () => {
    for (const isLegacy of [false, true, false]) {
      await rig.api("PATCH", "/config", { legacy_client_tls: isLegacy });
      const got = await Promise.all(CLIENTS.map(async ({ args }) => await agreed(args)));
      assert.deepEqual(
        got,
        CLIENTS.map(({ byDefault, legacy }) => (isLegacy ? legacy : byDefault)),
        `legacy_client_tls ${isLegacy}`,
      );
    }
  },
);

for (const isLegacy of [false, true]) {
  test(
    `TLS 1.2: a client that asks for renegotiation is refused it (legacy_client_tls ${isLegacy})`,
    { skip },
    async () => {
      await rig.api("PATCH", "/config", { legacy_client_tls: isLegacy });
      // A line with "R" makes s_client renegotiate.
      const said = await connect(["-tls1_2"], "R\n");
      assert.match(said, /RENEGOTIATING/);
      assert.match(said, /no renegotiation/);
    },
  );
}

for (const [what, args] of [
  ["suites", ["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-SHA"]],
  ["versions", ["-tls1_1", "-cipher", "ECDHE-ECDSA-AES128-SHA:@SECLEVEL=0"]],
] as const) {
  test(`a client whose ${what} are too old has an entry that names the setting`, { skip }, async () => {
    await rig.api("PATCH", "/config", { legacy_client_tls: false });
    const said = await connect([...args, "-connect", `${what}.test:443`]);
    assert.match(said, /handshake failure|protocol version/);
    const entry = await waitUntil(async () => {
      const [found] = (await rig.api("GET", `/traffic?host=${what}.test`)) as { failure: { message: string } | null }[];
      return found;
    });
    assert.match(JSON.stringify(entry), /legacy_client_tls/);
  });
}
