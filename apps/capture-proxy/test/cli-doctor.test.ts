import assert from "node:assert/strict";
import { chmodSync, copyFileSync, existsSync, rmSync, truncateSync, utimesSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { test } from "node:test";
import { CertificateAuthority } from "@headworks/tls-authority";
import { temporaryDirectory } from "@headworks/testkit";
import type { TemporaryDirectory } from "@headworks/testkit";
import { importAuthority } from "#cli/ca.ts";
import { openDatabase } from "#storage/database.ts";
import { parts } from "#main.ts";
import { runInside, serveWeir, weir } from "./cli-rig.ts";

interface Report {
  readonly ok: boolean;
  readonly checks: readonly {
    readonly name: string;
    readonly status: string;
    readonly detail: string;
    readonly advice?: string;
  }[];
}

const NOT_IN_SET = "http://127.0.0.1:9";
const FREE = { WEIR_PROXY_PORT: "0", WEIR_API_PORT: "0" };

async function examine(
  dataDir: string,
  env: Readonly<Record<string, string>> = {},
  api = NOT_IN_SET,
): Promise<{ code: number; report: Report; of: (name: string) => string[] }> {
  const { code, stdout, stderr } = await runInside(["doctor", "--json", "--data-dir", dataDir, "--api-url", api], {
    environment: { ...FREE, ...env },
    parts,
  });
  assert.equal(stderr, "");
  const report = JSON.parse(stdout) as Report;
  return {
    code,
    report,
    of: (name) => report.checks.filter((check) => check.name === name).map((check) => check.status),
  };
}

test("a machine on which nothing was started yet is well, and looking at it leaves nothing behind", async () => {
  await using directory = await temporaryDirectory();
  const { code, report, of } = await examine(directory.file("not", "there"));
  assert.deepEqual([code, report.ok], [0, true]);
  assert.deepEqual(
    [of("Service"), of("CA"), of("Database"), of("Interception")],
    [["skip"], ["skip"], ["skip"], ["skip"]],
  );
  assert.equal(existsSync(directory.file("not")), false);
});

test("the doctor of a running service", async (context) => {
  await using served = await serveWeir();

  await context.test("a service that is named is asked for its own ports, whatever the settings here say", async () => {
    await using other = await temporaryDirectory();
    const { code, report, of } = await examine(
      other.path,
      { WEIR_PROXY_PORT: "8888", WEIR_API_PORT: "3001" },
      served.api,
    );
    assert.equal(code, 0, JSON.stringify(report.checks.filter((check) => check.status === "fail")));
    assert.deepEqual([of("Proxy port"), of("API port")], [["ok"], ["ok"]]);
    const port = report.checks.find(({ name }) => name === "Proxy port");
    assert.equal(port?.detail, `${new URL(served.proxy).host} is used by the Weir at ${served.api}`);
    assert.deepEqual(of("Service"), ["ok", "warn"]);
    const files = report.checks.filter(({ name }) => name === "Service")[1];
    assert.ok(files?.detail.includes(served.certificate), files?.detail);
  });

  await context.test("a running service is well from its ports to an HTTPS request through it", async () => {
    const ports = {
      WEIR_PROXY_PORT: new URL(served.proxy).port,
      WEIR_API_PORT: new URL(served.api).port,
      HTTPS_PROXY: served.proxy,
    };
    const { code, report, of } = await examine(served.dataDir, ports, served.api);
    assert.equal(code, 0, JSON.stringify(report.checks.filter((check) => check.status === "fail")));
    for (const name of [
      "Settings",
      "Node.js",
      "Proxy port",
      "API port",
      "Service",
      "CA",
      "Clock",
      "Proxy variables",
      "Interception",
    ]) {
      assert.deepEqual(of(name), ["ok"], name);
    }
    assert.deepEqual(new Set(of("Database")), new Set(["ok"]));
    const text = await weir(["doctor", "--data-dir", served.dataDir, "--api-url", served.api], { env: ports });
    assert.match(text.stdout, /^✓ Settings: /m);
    assert.match(text.stdout, /^✓ Interception: /m);
  });

  await context.test("interception that is off may be intended", async () => {
    const configure = async (isOn: boolean): Promise<void> => {
      const body = JSON.stringify({ intercept_https: isOn });
      const headers = { "content-type": "application/json" };
      assert.equal((await fetch(`${served.api}/api/config`, { method: "PATCH", headers, body })).status, 200);
    };
    await configure(false);
    const { code, report, of } = await examine(served.dataDir, {}, served.api);
    await configure(true);
    assert.deepEqual([code, of("Interception")], [0, ["warn"]]);
    assert.equal(report.checks.at(-1)?.detail, "is off: HTTPS is tunnelled");
  });

  await context.test("a service that signs with another CA than its files hold is not well", async () => {
    await using directory = await temporaryDirectory();
    putAuthority(`${served.dataDir}/certs`, directory, 300, 1);
    const { code, report, of } = await examine(served.dataDir, {}, served.api);
    assert.deepEqual([code, of("CA")], [1, ["ok", "fail"]]);
    const fault = report.checks.find(({ name, status }) => name === "CA" && status === "fail");
    assert.match(fault?.detail ?? "", /signs with a CA other than .*weir-ca\.pem: .*, fingerprint /);
    assert.match(fault?.advice ?? "", /restart it/);
  });

  await context.test("a database that lost its end is found", async () => {
    await using directory = await temporaryDirectory();
    await served.process.stop();
    copyFileSync(`${served.dataDir}/weir.db`, directory.file("weir.db"));
    assert.deepEqual((await examine(directory.path)).of("Database"), ["ok"]);
    truncateSync(directory.file("weir.db"), 20_000);
    assert.deepEqual((await examine(directory.path)).of("Database"), ["fail"]);
  });
});

test("a broken data directory: each fault is found, named and advised on, and the exit code is 1", async () => {
  await using directory = await temporaryDirectory();
  writeFileSync(directory.file("config.json"), "{ broken");
  writeFileSync(directory.file("traffic.db"), "this is no database, however long it may be. ".repeat(100));
  await mkdir(directory.file("certs"));
  writeFileSync(directory.file("certs", "weir-ca.pem"), "junk");
  writeFileSync(directory.file("certs", "weir-ca-key.pem"), "junk");
  // Not by its mode when it is made: a umask of the process would change it.
  chmodSync(directory.file("certs", "weir-ca-key.pem"), 0o644);
  const { code, report, of } = await examine(directory.path);
  assert.deepEqual([code, report.ok], [1, false]);
  assert.deepEqual(of("Settings"), ["fail"]);
  assert.deepEqual(of("Database"), ["fail"]);
  assert.deepEqual(of("CA"), ["fail", "fail"]);
  assert.deepEqual(of("Proxy port"), ["skip"]);
  for (const check of report.checks) if (check.status === "fail") assert.ok(check.advice, check.name);
});

test("a database of ours that a newer version wrote is found, and of others there is no version", async () => {
  await using directory = await temporaryDirectory();
  for (const file of ["weir.db", "traffic.db", "other.db"]) {
    const database = openDatabase(directory.file(file));
    database.exec("PRAGMA user_version = 9999");
    database.close();
  }
  const { code, report, of } = await examine(directory.path);
  assert.deepEqual([code, of("Database").toSorted()], [1, ["fail", "fail", "ok"]]);
  for (const file of ["weir.db", "traffic.db"]) {
    const sentence = `${file} cannot be used: The database has schema version 9999, `;
    assert.ok(report.checks.some(({ detail }) => detail.startsWith(sentence)));
  }
});

function expired(): { certificatePem: string; keyPem: string } {
  const made = CertificateAuthority.create({ validDays: 10, notBefore: new Date(Date.now() - 20 * 86_400_000) });
  return { certificatePem: made.certificatePem, keyPem: made.keyPem() };
}

/** A CA made elsewhere, imported as `weir ca import` does it. */
function putAuthority(certificates: string, scratch: TemporaryDirectory, validDays: number, ageDays: number): void {
  const made = CertificateAuthority.create({ validDays, notBefore: new Date(Date.now() - ageDays * 86_400_000) });
  writeFileSync(scratch.file("c.pem"), made.certificatePem);
  writeFileSync(scratch.file("k.pem"), made.keyPem());
  importAuthority(certificates, scratch.file("c.pem"), scratch.file("k.pem"), String(validDays));
}

test("a CA without its key, an expired one and one about to expire are told apart", async () => {
  await using directory = await temporaryDirectory();
  const put = (validDays: number, ageDays: number): void =>
    putAuthority(directory.file("certs"), directory, validDays, ageDays);
  put(300, 1);
  assert.deepEqual((await examine(directory.path)).of("CA"), ["ok"]);
  const { certificatePem, keyPem } = expired();
  const [certificate, key] = [directory.file("certs", "weir-ca.pem"), directory.file("certs", "weir-ca-key.pem")];
  writeFileSync(certificate, certificatePem);
  writeFileSync(key, keyPem, { mode: 0o600 });
  const late = await examine(directory.path);
  assert.deepEqual(late.of("CA"), ["fail"]);
  assert.equal(late.report.checks.find(({ name }) => name === "CA")?.advice, "run `weir ca renew`");
  rmSync(key);
  const keyless = await examine(directory.path);
  assert.deepEqual(keyless.of("CA"), ["fail"]);
  assert.match(keyless.report.checks.find(({ name }) => name === "CA")?.detail ?? "", /private key .* is missing/);
  put(20, 1);
  assert.deepEqual((await examine(directory.path)).of("CA"), ["warn"]);
  chmodSync(directory.file("certs", "weir-ca-key.pem"), 0o644);
  assert.deepEqual((await examine(directory.path)).of("CA"), ["warn", "fail"]);
});

test("a port that another program holds is named", async () => {
  const occupant = createServer().listen(0, "127.0.0.1");
  await once(occupant, "listening");
  const { port } = occupant.address() as AddressInfo;
  await using directory = await temporaryDirectory();
  const { code, report, of } = await examine(directory.path, { WEIR_PROXY_PORT: String(port) });
  occupant.close();
  assert.deepEqual([code, of("Proxy port"), of("API port")], [1, ["fail"], ["ok"]]);
  assert.ok(report.checks.some((check) => check.detail.includes(String(port))));
});

test("a clock behind the files of the data directory is wrong", async () => {
  await using directory = await temporaryDirectory();
  writeFileSync(directory.file("weir.log"), "");
  const tomorrow = new Date(Date.now() + 86_400_000);
  utimesSync(directory.file("weir.log"), tomorrow, tomorrow);
  assert.deepEqual((await examine(directory.path)).of("Clock"), ["fail"]);
});

test("proxy variables that point elsewhere are mentioned without their password", async () => {
  await using directory = await temporaryDirectory();
  const { code, report, of } = await examine(directory.path, { HTTPS_PROXY: "http://me:secret@proxy.example:3128" });
  assert.deepEqual([code, of("Proxy variables")], [0, ["warn"]]);
  const text = JSON.stringify(report);
  assert.ok(text.includes("proxy.example:3128") && !text.includes("secret"));
});

test("a directory that others can look into is a warning, one that cannot be written a fault", async () => {
  await using directory = await temporaryDirectory();
  chmodSync(directory.path, 0o755);
  assert.ok((await examine(directory.path)).of("Data directory").includes("warn"));
  writeFileSync(directory.file("file"), "");
  assert.deepEqual((await examine(directory.file("file", "below"))).of("Data directory"), ["fail"]);
});
