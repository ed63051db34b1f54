import assert from "node:assert/strict";
import { readdir, stat, writeFile } from "node:fs/promises";
import { test } from "node:test";
import { parse } from "yaml";
import { peer, runProcess, temporaryDirectory } from "@headworks/testkit";
import { listeners } from "./admin-rig.ts";
import { sluice } from "./cli-rig.ts";
import { startGateway } from "./gateway-rig.ts";

const curl = peer("curl");

test(
  "certs makes what the admin API needs: the printed section starts, the printed curl line and sluice work",
  { skip: curl.skip },
  async () => {
    await using directory = await temporaryDirectory();
    const place = directory.file("ops' certs");
    const { code, out } = await sluice(["certs", place, "--name", "ada"]);
    assert.equal(code, 0);
    const files = await readdir(place);
    assert.deepEqual(files.toSorted(), [
      "ca-key.pem",
      "ca.pem",
      "operator-key.pem",
      "operator.pem",
      "server-key.pem",
      "server.pem",
    ]);
    for (const file of files) assert.equal((await stat(`${place}/${file}`)).mode & 0o777, 0o600, file);
    const section = /^admin:\n(?: .*\n)+/m.exec(out)?.[0] ?? "";
    const { admin } = parse(section) as { admin: { bind: string; tls: Record<string, string> } };
    await using gateway = await startGateway({
      listeners,
      routes: [],
      admin: { ...admin, bind: "127.0.0.1:0", audit_log: { path: directory.file("audit.jsonl") } } as never,
    });
    const here = (text: string): string =>
      text.replace("https://localhost:2019", (gateway.gateway.adminUrl ?? "").replace("127.0.0.1", "localhost"));
    const line = /^curl .*$/m.exec(out)?.[0] ?? "";
    const asked = await runProcess("sh", ["-c", `${here(line)} --silent --show-error`], { timeoutMs: 20_000 });
    assert.match(asked.stdout, /^\{"ready":true,"config_generation":1,/, asked.stderr);
    const environment = Object.fromEntries(
      ["CA", "CERT", "KEY"].map((name) => [
        `GATEWAY_ADMIN_${name}`,
        `${place}/${{ CA: "ca", CERT: "operator", KEY: "operator-key" }[name] ?? ""}.pem`,
      ]),
    );
    const GATEWAY_ADMIN = gateway.gateway.adminUrl;
    const status = await sluice(["status"], { ...environment, GATEWAY_ADMIN });
    assert.deepEqual([status.code, status.err], [0, ""]);
    assert.match(status.out, /generation 1/);
    const stranger = await sluice(["status"], { GATEWAY_ADMIN, GATEWAY_ADMIN_CA: environment["GATEWAY_ADMIN_CA"] });
    assert.deepEqual(
      [stranger.code, /client certificate|cannot be reached/.test(stranger.err)],
      [1, true],
      stranger.err,
    );
    const untrusting = await sluice(["status"], { GATEWAY_ADMIN });
    assert.match(untrusting.err, /Specify the CA of its certificate with --ca/);
    await sluice(["config", "rollback", "9"], { ...environment, GATEWAY_ADMIN });
    const audit = await runProcess("cat", [directory.file("audit.jsonl")], { timeoutMs: 5000 });
    assert.match(audit.stdout, /"actor":"ada"/);
  },
);

test("certs makes nothing in the folder one is in where the name of a folder is empty", async () => {
  const before = await readdir(".");
  assert.deepEqual(await sluice(["certs", ""]), {
    code: 2,
    out: "",
    err: "sluice: the directory is an empty string; use . for the current one\n",
  });
  assert.deepEqual(await readdir("."), before);
});

test("certs writes over nothing, and says where it cannot write", async () => {
  await using directory = await temporaryDirectory();
  assert.equal((await sluice(["certs", directory.path])).code, 0);
  const again = await sluice(["certs", directory.path]);
  assert.deepEqual([again.code, again.out], [1, ""]);
  assert.match(again.err, /ca-key\.pem already exists/);
  await writeFile(directory.file("file"), "");
  assert.match((await sluice(["certs", directory.file("file", "below")])).err, /cannot be written/);
  assert.equal((await sluice(["certs", directory.file("odd"), "--name", "a b!"])).code, 1);
});
