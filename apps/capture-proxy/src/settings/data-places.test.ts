import assert from "node:assert/strict";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { defaultPlaces, resolveCertificateDirectory, resolveDataPlaces, resolveTrafficFile } from "./data-places.ts";
import { StartupError } from "./startup-error.ts";

const dataDir = join(tmpdir(), "no-such-weir");
const own = defaultPlaces(dataDir);
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
      assert.deepEqual(resolveDataPlaces({ flags, environment, dataDir }), { ...own, [place]: expected });
    });
  }

  test(`what ${option} cannot be stops the start, with the name of what says it`, () => {
    for (const path of wrong) {
      const refused = (error: unknown): boolean =>
        error instanceof StartupError && error.message.startsWith(`${option} must name a `);
      const flags = { [flag]: path };
      assert.throws(() => resolveDataPlaces({ flags, environment: {}, dataDir }), refused, JSON.stringify(path));
    }
    const environment = { [`WEIR_${variable}`]: wrong.at(-1) };
    assert.throws(
      () => resolveDataPlaces({ flags: {}, environment, dataDir }),
      (error: unknown) => error instanceof StartupError && error.message.startsWith(`WEIR_${variable} must`),
    );
  });
}

test("a wrong place of the log does not matter to who asks for the traffic or the CA", () => {
  const sources = { flags: {}, environment: { WEIR_LOG_PATH: tmpdir() }, dataDir };
  assert.throws(() => resolveDataPlaces(sources), StartupError);
  assert.equal(resolveTrafficFile(sources), own.trafficFile);
  assert.equal(resolveCertificateDirectory(sources), own.certificateDirectory);
});
