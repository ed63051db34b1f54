import assert from "node:assert/strict";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { temporaryDirectory } from "@headworks/testkit";
import { defaultPlaces } from "./data-places.ts";
import { fileProblem, outputProblem, snapshotProblem } from "./own-places.ts";

test("files named after traffic lie neither in nor around what Weir keeps in its data directory, and anywhere else", async () => {
  await using directory = await temporaryDirectory();
  const dataDir = directory.file("data");
  mkdirSync(join(dataDir, "certs"), { recursive: true });
  symlinkSync(dataDir, directory.file("link"));
  symlinkSync("data/later", directory.file("coming"));
  symlinkSync("data/backups", directory.file("dangling"));
  const own = { ...defaultPlaces(dataDir), dataDir };
  const refused = ["data", "data/", "data/x/..", ".", "..", "link", "link/certs", "dangling", "dangling/x"];
  const inside = ["certs", "certs/x", "bodies", "bodies/x", "decoded", "backups", "logs", "config.json", "traffic.db"];
  const files = ["traffic.db-bodies/x", "traffic.db.index", "traffic.db.lock", "weir.db-wal", "saved-rules.json/x"];
  for (const name of [...refused, ...[...inside, ...files].map((below) => `data/${below}`)]) {
    assert.match(outputProblem(join(directory.path, name), own) ?? "", /^must n/u, name);
  }
  assert.match(outputProblem("/", own) ?? "", /^must neither be nor contain .*data/u);
  const free = ["data/mirror", "data/mirror/x", "data/mock-bodies/x", "data/certs-of-mine", "data-of-mine", "coming"];
  for (const name of [...free, "other", "link/mirror", "link/../mirror"]) {
    assert.equal(outputProblem(join(directory.path, name), own), undefined, name);
  }
});

test("a CA, a database and a log that lie elsewhere are spared as those in the data directory are", async () => {
  await using directory = await temporaryDirectory();
  const at = (name: string): string => directory.file(name);
  for (const name of ["data", "keys", "disk", "far"]) mkdirSync(at(name));
  symlinkSync(at("far/real.db"), at("disk/shop.db"));
  const own = {
    dataDir: at("data"),
    certificateDirectory: at("keys/weir"),
    trafficFile: at("disk/shop.db"),
    logFile: at("logs/weir.log"),
  };
  const refused = ["keys", "keys/weir", "keys/weir/x", "disk", "disk/shop.db-bodies", "far", "far/real.db", "logs"];
  for (const name of refused) assert.match(outputProblem(at(name), own) ?? "", /^must n/u, name);
  for (const name of ["keys/mirror", "disk/mirror", "logs/mirror", "data/mirror"]) {
    assert.equal(outputProblem(at(name), own), undefined, name);
  }
  const above = { ...own, certificateDirectory: directory.path };
  assert.equal(
    outputProblem(at("data/mirror"), above),
    undefined,
    "the CA's directory may be around the data directory",
  );
});

test("snapshots lie wherever they last and are in the way of no file, in the data directory too", async () => {
  await using directory = await temporaryDirectory();
  const at = (name: string): string => directory.file(name);
  mkdirSync(at("data/certs"), { recursive: true });
  mkdirSync(at("disk"));
  symlinkSync("data/decoded", at("link"));
  const own = { ...defaultPlaces(at("data")), dataDir: at("data"), trafficFile: at("disk/shop.db") };
  const refused = [
    "data/decoded",
    "data/bodies/x",
    "data/config.json",
    "data/weir.db-wal",
    "disk/shop.db-decoded",
    "link/x",
  ];
  for (const name of refused) {
    assert.match(snapshotProblem(at(name), own) ?? "", /^must not lie in .*Weir keeps/u, name);
  }
  for (const name of ["data", "data/backups", "data/mirror", "data/logs", "disk", "other", "."]) {
    assert.equal(snapshotProblem(at(name), own), undefined, name);
  }
});

test("a file that is asked for is written over none of Weir's own, however it is named", async () => {
  await using directory = await temporaryDirectory();
  const at = (name: string): string => directory.file(name);
  mkdirSync(at("data/certs"), { recursive: true });
  writeFileSync(at("data/certs/key.pem"), "");
  symlinkSync("data/certs/key.pem", at("link"));
  const own = { ...defaultPlaces(at("data")), dataDir: at("data") };
  for (const name of ["data/certs/key.pem", "link", "data/config.json", "data/traffic.db", "data/logs/weir.log"]) {
    assert.match(fileProblem(at(name), own, [at("data/certs/key.pem")]) ?? "", /^must not be written over /u, name);
  }
  for (const name of ["data/ca.pem", "data/certs/ca.der", "ca.pem"]) {
    assert.equal(fileProblem(at(name), own, [at("data/certs/key.pem")]), undefined, name);
  }
});
