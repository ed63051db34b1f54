import assert from "node:assert/strict";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { temporaryDirectory } from "@headworks/testkit";
import {
  type DataDirSources,
  defaultDataPaths,
  fileProblem,
  outputProblem,
  resolveCertificateDirectory,
  resolveDataDir,
  resolveDataPaths,
  resolveTrafficFile,
  snapshotProblem,
} from "./data-paths.ts";
import { StartupError } from "./settings.ts";

const dataDir = join(tmpdir(), "no-such-weir");
const own = defaultDataPaths(dataDir);
/** A file, which no directory is. */
const file = process.execPath;

const PLACES = [
  { flag: "logPath", option: "--log-path", variable: "LOG_PATH", place: "logFile", wrong: ["", "logs/", tmpdir()] },
  { flag: "dbPath", option: "--db-path", variable: "DB_PATH", place: "trafficFile", wrong: ["", "data/", tmpdir()] },
  { flag: "certPath", option: "--cert-path", variable: "CERT_PATH", place: "certificateDirectory", wrong: ["", file] },
] as const;

for (const { flag, option, variable, place, wrong } of PLACES) {
  for (const [what, value, environment, expected] of [
    ["nothing", undefined, {}, own[place]],
    ["an empty variable", undefined, { [`WEIR_${variable}`]: "" }, own[place]],
    ["a variable", undefined, { [`WEIR_${variable}`]: "/a/x" }, resolve("/a/x")],
    ["the variable of the specification", undefined, { [`SERVICE_${variable}`]: "/b/x" }, resolve("/b/x")],
    [
      "that and an empty one",
      undefined,
      { [`WEIR_${variable}`]: "", [`SERVICE_${variable}`]: "/b/x" },
      resolve("/b/x"),
    ],
    ["both", undefined, { [`WEIR_${variable}`]: "/a", [`SERVICE_${variable}`]: "/b" }, resolve("/a")],
    ["a flag, which wins", "x", { [`WEIR_${variable}`]: "/a" }, resolve("x")],
  ] as const) {
    test(`with ${what} said for ${option}, the place is ${expected}, and the others stay`, () => {
      const flags = value === undefined ? {} : { [flag]: value };
      assert.deepEqual(resolveDataPaths({ flags, environment, dataDir }), { ...own, [place]: expected });
    });
  }

  test(`what ${option} cannot be stops the start, with the name of what says it`, () => {
    for (const path of wrong) {
      const refused = (error: unknown): boolean =>
        error instanceof StartupError && error.message.startsWith(`${option} must name a `);
      const flags = { [flag]: path };
      assert.throws(() => resolveDataPaths({ flags, environment: {}, dataDir }), refused, JSON.stringify(path));
    }
    const environment = { [`WEIR_${variable}`]: wrong.at(-1) };
    assert.throws(
      () => resolveDataPaths({ flags: {}, environment, dataDir }),
      (error: unknown) => error instanceof StartupError && error.message.startsWith(`WEIR_${variable} must`),
    );
  });
}

test("a wrong place of the log does not matter to who asks for the traffic or the CA", () => {
  const sources = { flags: {}, environment: { WEIR_LOG_PATH: tmpdir() }, dataDir };
  assert.throws(() => resolveDataPaths(sources), StartupError);
  assert.equal(resolveTrafficFile(sources), own.trafficFile);
  assert.equal(resolveCertificateDirectory(sources), own.certificateDirectory);
});

test("data lives where the flag, the environment or the platform says, in this order", () => {
  const table: readonly (readonly [Partial<DataDirSources>, string])[] = [
    [{ flag: "/data/x", environment: { WEIR_DATA_DIR: "/y" } }, "/data/x"],
    [{ flag: "rel" }, resolve("rel")],
    [{ environment: { WEIR_DATA_DIR: "/y", SERVICE_DATA_DIR: "/z" } }, "/y"],
    [{ environment: { SERVICE_DATA_DIR: "/z" } }, "/z"],
    [{ environment: { WEIR_DATA_DIR: "" } }, "/home/u/.local/share/weir"],
    [{ environment: { WEIR_DATA_DIR: "", SERVICE_DATA_DIR: "/z" } }, "/z"],
    [{ environment: { XDG_DATA_HOME: "" } }, "/home/u/.local/share/weir"],
    [{}, "/home/u/.local/share/weir"],
    [{ environment: { XDG_DATA_HOME: "/xdg" } }, "/xdg/weir"],
    [{ environment: { XDG_DATA_HOME: "relative" } }, "/home/u/.local/share/weir"],
    [{ platform: "darwin" }, "/home/u/Library/Application Support/weir"],
    [{ platform: "win32", homeDir: "C:\\Users\\u", environment: { LOCALAPPDATA: "C:\\L" } }, "C:\\L\\weir"],
    [
      { platform: "win32", homeDir: "C:\\Users\\u", environment: { LOCALAPPDATA: "", APPDATA: "C:\\R" } },
      "C:\\R\\weir",
    ],
    [{ platform: "win32", homeDir: "C:\\Users\\u" }, "C:\\Users\\u\\AppData\\Local\\weir"],
  ];
  for (const [change, expected] of table) {
    const sources = { flag: undefined, environment: {}, platform: "linux", homeDir: "/home/u", ...change } as const;
    assert.equal(resolveDataDir(sources), expected, JSON.stringify(change));
  }
});

test("files named after traffic lie neither in nor around what Weir keeps in its data directory, and anywhere else", async () => {
  await using directory = await temporaryDirectory();
  const dataDir = directory.file("data");
  mkdirSync(join(dataDir, "certs"), { recursive: true });
  symlinkSync(dataDir, directory.file("link"));
  symlinkSync("data/later", directory.file("coming"));
  symlinkSync("data/backups", directory.file("dangling"));
  const own = { ...defaultDataPaths(dataDir), dataDir };
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
  const own = { ...defaultDataPaths(at("data")), dataDir: at("data"), trafficFile: at("disk/shop.db") };
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
  const own = { ...defaultDataPaths(at("data")), dataDir: at("data") };
  for (const name of ["data/certs/key.pem", "link", "data/config.json", "data/traffic.db", "data/logs/weir.log"]) {
    assert.match(fileProblem(at(name), own, [at("data/certs/key.pem")]) ?? "", /^must not be written over /u, name);
  }
  for (const name of ["data/ca.pem", "data/certs/ca.der", "ca.pem"]) {
    assert.equal(fileProblem(at(name), own, [at("data/certs/key.pem")]), undefined, name);
  }
});
