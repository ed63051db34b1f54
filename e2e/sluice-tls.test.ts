import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { peer, runProcess, startOrigin, waitUntil } from "@headworks/testkit";
import { certificates, Cleanups, servingAll, startSluice, type Certificates, type Sluice } from "./sluice-rig.ts";

const openssl = peer("openssl");
const { skip } = openssl;
const cleanups = new Cleanups();
let sluice: Sluice;
let files: Certificates;

before(async () => {
  files = cleanups.use(await certificates());
  const origin = cleanups.use(await startOrigin());
  const tls = {
    ...(await files.issue("fallback", ["fallback.test"])),
    certificates: [
      { server_names: ["a.test"], ...(await files.issue("a", ["a.test"])) },
      { server_names: ["b.test", "c.test"], ...(await files.issue("b", ["b.test", "c.test"])) },
    ],
  };
  sluice = cleanups.use(
    await startSluice(
      servingAll(origin.port, {
        listeners: [
          { name: "secure", address: "127.0.0.1", port: 0, protocol: "https", tls },
          { name: "strict", address: "127.0.0.1", port: 0, protocol: "https", tls: { ...tls, min_version: "1.3" } },
        ],
      }),
    ),
  );
});
after(() => cleanups.run());

/** Output of `openssl s_client` that connects and sends `input`. */
async function connect(
  args: readonly string[],
  { listener = "secure", input = "" }: { readonly listener?: string; readonly input?: string } = {},
): Promise<string> {
  const connected = ["s_client", "-connect", `127.0.0.1:${sluice.port(listener)}`, "-CAfile", files.caFile];
  // Without it the end of our input closes the connection before the response.
  const exit = await runProcess(openssl.path, [...connected, ...args], { input, timeoutMs: 15_000 });
  return `${exit.stdout}\n${exit.stderr}`;
}

async function subjectNames(said: string): Promise<string> {
  const pem = /-----BEGIN CERTIFICATE-----[^]*?-----END CERTIFICATE-----/.exec(said)?.[0];
  assert.ok(pem !== undefined, said);
  const exit = await runProcess(openssl.path, ["x509", "-noout", "-ext", "subjectAltName"], { input: pem });
  return exit.stdout;
}

const NAMES = [
  { args: ["-servername", "a.test"], expected: "a.test" },
  { args: ["-servername", "b.test"], expected: "b.test" },
  { args: ["-servername", "c.test"], expected: "b.test" },
  { args: ["-servername", "C.TEST"], expected: "b.test" },
  { args: ["-servername", "other.test"], expected: "fallback.test" },
  { args: ["-noservername"], expected: "fallback.test" },
] as const;

for (const { args, expected } of NAMES) {
  test(`openssl s_client ${args.join(" ")} gets the verified certificate of ${expected}`, { skip }, async () => {
    const said = await connect(args);
    assert.match(said, /Verify return code: 0 \(ok\)/);
    assert.ok((await subjectNames(said)).includes(`DNS:${expected}`), said);
  });
}

const PROTOCOLS = [
  { args: ["-tls1_3"], says: /Protocol *: TLSv1\.3|New, TLSv1\.3/ },
  { args: ["-tls1_2"], says: /Protocol *: TLSv1\.2|New, TLSv1\.2/ },
  { args: ["-alpn", "h2,http/1.1"], says: /ALPN protocol: h2/ },
  { args: ["-alpn", "http/1.1"], says: /ALPN protocol: http\/1\.1/ },
  { args: ["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"], says: /alert protocol version|no protocols available/ },
] as const;

for (const { args, says } of PROTOCOLS) {
  test(`openssl s_client ${args.join(" ")}: ${String(says)}`, { skip }, async () => {
    assert.match(await connect(args), says);
  });
}

test("openssl s_client: a listener with TLS 1.3 as minimum refuses TLS 1.2", { skip }, async () => {
  assert.match(await connect(["-tls1_2"], { listener: "strict" }), /alert protocol version/);
  assert.match(await connect(["-tls1_3"], { listener: "strict" }), /Verify return code: 0/);
});

test("openssl s_client: a request typed by hand gets a response", { skip }, async () => {
  const said = await connect(["-quiet", "-servername", "a.test"], {
    input: "GET /healthz HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n",
  });
  assert.match(said, /HTTP\/1\.1 200 OK[^]*"code":"ok"/);
});

for (const version of ["-tls1_2", "-tls1_3"]) {
  test(`openssl s_client ${version}: a saved session is resumed`, { skip }, async () => {
    const session = files.directory.file(`session${version}.pem`);
    // TLS 1.3 tickets arrive with the response, after the handshake.
    const input = "GET /healthz HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";
    await connect([version, "-ign_eof", "-servername", "a.test", "-sess_out", session], { input });
    const said = await connect([version, "-servername", "a.test", "-sess_in", session]);
    assert.match(said, /^Reused, TLSv1/m);
  });
}

test(
  "a renewed certificate is used for new connections without a reload, and a broken one is not",
  { skip },
  async () => {
    const serial = async (): Promise<string> => {
      const said = await connect(["-servername", "a.test"]);
      const pem = /-----BEGIN CERTIFICATE-----[^]*?-----END CERTIFICATE-----/.exec(said)?.[0] ?? "";
      return (await runProcess(openssl.path, ["x509", "-noout", "-serial"], { input: pem })).stdout;
    };
    const first = await serial();
    assert.match(first, /serial=\w+/);
    await files.issue("a", ["a.test"]);
    await sluice.logged("tls_reloaded");
    const second = await waitUntil(
      async () => {
        const now = await serial();
        return now !== first && now;
      },
      { what: "the renewed certificate" },
    );
    await writeFile(files.directory.file("a.pem"), "this is no certificate");
    await sluice.logged("tls_reload_failed");
    assert.equal(await serial(), second);
  },
);
