import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { pino } from "pino";
import type { Settings } from "@headworks/capture-contract";
import { anyCharacter, FakeClock, temporaryDirectory } from "@headworks/testkit";
import {
  isSecretName,
  jsonLine,
  type LogDestination,
  type LogOutputOptions,
  openLogOutput,
  readRecord,
  textLines,
  textWithoutSecrets,
  withoutSecrets,
} from "./log-output.ts";

type LogSettings = Settings["log_config"];

const DEFAULTS: LogSettings = {
  enabled: true,
  rotation: { mode: "daily" },
  max_files: 7,
  max_file_size_mb: 100,
  json_format: false,
  async_writing: true,
  async_mode: "drop_newest",
  async_buffer_size: 1000,
};

interface Rig extends AsyncDisposable {
  readonly output: LogDestination;
  readonly log: pino.Logger;
  readonly dataDir: string;
  readonly shown: string[];
  readonly complaints: string[];
  readonly file: () => string;
}

async function open(options: Partial<LogOutputOptions> = {}, before?: (dataDir: string) => void): Promise<Rig> {
  const directory = await temporaryDirectory();
  before?.(directory.path);
  const shown: string[] = [];
  const complaints: string[] = [];
  const output = openLogOutput({
    path: directory.file("logs", "weir.log"),
    stream: { write: (line) => shown.push(line), flushSync: () => undefined },
    hasColours: false,
    isJson: false,
    hasFile: true,
    clock: new FakeClock(),
    reportProblem: (sentence) => complaints.push(sentence),
    ...options,
  });
  return {
    output,
    log: pino({ base: null, level: "trace" }, output),
    dataDir: directory.path,
    shown,
    complaints,
    file: () => readFileSync(output.path, "utf8"),
    [Symbol.asyncDispose]: async () => {
      await output.close();
      await directory.remove();
    },
  };
}

test("every line goes to the stream and to the file, those from before the settings and the file included", async () => {
  await using rig = await open();
  rig.log.info("one");
  assert.deepEqual(rig.shown, [], "its form is not known yet");
  rig.output.begin(DEFAULTS);
  rig.log.warn({ a: 1 }, "two");
  assert.equal(existsSync(rig.output.path), false);
  rig.output.openFile(DEFAULTS);
  rig.log.error("three");
  await rig.output.settled();
  assert.equal(rig.file(), rig.shown.join(""));
  assert.match(rig.file(), /INFO {2}one\n.*WARN {2}two a=1\n.*ERROR three\n$/);
});

test("colours are for the terminal alone", async () => {
  await using rig = await open({ hasColours: true });
  rig.output.begin(DEFAULTS);
  rig.output.openFile(DEFAULTS);
  rig.log.info("one");
  await rig.output.settled();
  assert.ok(rig.shown.join("").includes("\u001b["));
  assert.doesNotMatch(rig.file(), /\u001b/);
});

test("JSON lines go to both, by the settings or by the command line", async () => {
  for (const [isJson, json_format] of [
    [true, false],
    [false, true],
  ] as const) {
    await using rig = await open({ isJson });
    const settings = { ...DEFAULTS, json_format };
    rig.output.begin(settings);
    rig.output.openFile(settings);
    rig.log.info({ password: "hunter2", text: "a\u2028b" }, "one");
    await rig.output.settled();
    for (const line of [rig.file(), rig.shown.join("")]) {
      assert.match(line, /"text":"a\\u2028b"/);
      const { msg, password } = JSON.parse(line) as Record<string, unknown>;
      assert.deepEqual([msg, password], ["one", "[REDACTED]"]);
    }
  }
});

test("without a log file lines go to the stream alone, and switching it on and off holds at once", async () => {
  await using rig = await open();
  const off = { ...DEFAULTS, enabled: false };
  rig.output.begin(off);
  rig.output.openFile(off);
  rig.log.info("one");
  await rig.output.settled();
  assert.equal(existsSync(join(rig.dataDir, "logs")), false);
  assert.deepEqual([rig.output.status(), rig.output.rotate()], [undefined, undefined]);
  rig.output.configure(DEFAULTS);
  rig.log.info("two");
  await rig.output.settled();
  assert.match(rig.file(), /^\S+ INFO {2}two\n$/);
  rig.output.configure(off);
  rig.log.info("three");
  await rig.output.settled();
  assert.match(rig.file(), /^\S+ INFO {2}two\n$/);
  assert.equal(rig.shown.length, 3);
});

test("a log for standard error alone never makes a file, whatever the settings say", async () => {
  await using rig = await open({ hasFile: false });
  rig.output.begin(DEFAULTS);
  rig.output.openFile(DEFAULTS);
  rig.output.configure({ ...DEFAULTS, max_files: 1 });
  rig.log.info("one");
  await rig.output.settled();
  assert.deepEqual(readdirSync(rig.dataDir), []);
  assert.equal(rig.shown.length, 1);
});

test("retention and cap hold at once, with the file that is open", async () => {
  await using rig = await open();
  rig.output.begin(DEFAULTS);
  rig.output.openFile(DEFAULTS);
  for (let at = 0; at < 4; at += 1) {
    rig.log.info("x");
    await rig.output.rotate();
  }
  assert.equal((await rig.output.archives()).length, 4);
  rig.output.configure({ ...DEFAULTS, max_files: 2, max_file_size_mb: 1 });
  await rig.output.settled();
  assert.equal((await rig.output.archives()).length, 2);
  rig.log.info({ text: "x".repeat(700_000) }, "large");
  rig.log.info({ text: "x".repeat(700_000) }, "large");
  await rig.output.settled();
  assert.ok(rig.file().length < 1_048_576);
});

test("a file that cannot be written is complained about once, and the stream has everything", async () => {
  await using rig = await open({}, (dataDir) => {
    mkdirSync(join(dataDir, "logs"));
    symlinkSync("/dev/null", join(dataDir, "logs", "weir.log"));
  });
  rig.output.begin(DEFAULTS);
  rig.output.openFile(DEFAULTS);
  for (let at = 0; at < 10; at += 1) rig.log.info("one");
  await rig.output.settled();
  assert.equal(rig.complaints.length, 1);
  assert.match(rig.complaints[0] ?? "", /weir\.log cannot be written: it is a link\. The log goes on without it/);
  assert.equal(rig.shown.length, 10);
});

test("a start that fails early still says what it had to say", async () => {
  await using rig = await open();
  rig.log.warn("before the end");
  await rig.output.close();
  assert.match(rig.shown.join(""), /before the end/);
});

const text = (record: object): string => textLines(record as Record<string, unknown>, false);

test("a line for people holds time, level, message and facts", () => {
  assert.equal(
    text({ level: 40, time: 0, msg: "disk full", path: "/x y", count: 3, ok: "yes" }),
    '1970-01-01T00:00:00.000Z WARN  disk full path="/x y" count=3 ok=yes\n',
  );
});

test("an error's places follow below, its message stays one line, and nothing acts on a terminal", () => {
  const error = { type: "TypeError", message: "bad\u001b[2J", stack: "TypeError: bad\u001b[2J\n    at x (y.js:1:2)" };
  assert.equal(
    text({ level: 50, time: 0, msg: "failed \u0007", err: error }),
    "1970-01-01T00:00:00.000Z ERROR failed \\u0007\n    TypeError: bad\\u001b[2J\n        at x (y.js:1:2)\n",
  );
});

test("headers and bodies stand below, each line behind a mark", () => {
  const record = {
    level: 30,
    time: 0,
    msg: "> GET /",
    headers: [
      ["A", "1"],
      ["B", "2\r\nC: 3"],
      ["D", { toString: null }],
    ],
    body: "one\ntwo\r\n\u001b[0m",
  };
  assert.equal(
    text(record),
    '1970-01-01T00:00:00.000Z INFO  > GET /\n    A: 1\n    B: 2\\r\\nC: 3\n    D: {"toString":null}\n    | one\n    | two\n    | \\u001b[0m\n',
  );
});

test("a message with lines like those of a log or of a stack forges neither", () => {
  const forged = "x\n1970-01-01T00:00:00.000Z ERROR stolen\n    at evil (z.js:1:1)";
  const error = new Error(forged);
  const line = text({
    level: 30,
    time: 0,
    msg: forged,
    fact: forged,
    err: { type: "Error", message: forged, stack: error.stack },
  });
  const [first = "", second = "", ...places] = line.split("\n");
  assert.match(first, /^1970-01-01T00:00:00\.000Z INFO {2}x\\n1970.* fact="x\\n1970/);
  assert.match(second, /^ {4}Error: x\\n1970.*\\n {4}at evil/);
  for (const place of places.slice(0, -1)) assert.match(place, /^ {8}at (?!evil)/);
});

const INVISIBLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u;
const anything = fc.record(
  {
    msg: fc.string({ unit: anyCharacter }),
    url: fc.string({ unit: anyCharacter }),
    facts: fc.jsonValue({ stringUnit: anyCharacter }),
    headers: fc.jsonValue({ stringUnit: anyCharacter }),
    body: fc.string({ unit: anyCharacter }),
    time: fc.oneof(fc.integer(), fc.string({ unit: anyCharacter }), fc.double()),
    err: fc.record({
      type: fc.string({ unit: anyCharacter }),
      message: fc.string({ unit: anyCharacter }),
      stack: fc.string({ unit: anyCharacter }),
    }),
  },
  { requiredKeys: [] },
);

test("whatever is logged, no line begins but a record's own, and nothing invisible gets out", () => {
  fc.assert(
    fc.property(anything, (facts) => {
      const lines: string[] = [];
      pino({ base: null }, { write: (line: string) => void lines.push(line) }).info(facts, "said");
      const record = readRecord(lines[0] ?? "") ?? assert.fail("the logger's own line is read");
      const shown = text(record).slice(0, -1).split("\n");
      for (const [at, line] of shown.entries()) {
        assert.doesNotMatch(line, INVISIBLE);
        if (at > 0) assert.ok(line.startsWith("    "), line);
      }
      const json = jsonLine(record);
      assert.equal(json.indexOf("\n"), json.length - 1);
      assert.doesNotMatch(json.slice(0, -1), INVISIBLE);
      assert.deepEqual(JSON.parse(json), JSON.parse(JSON.stringify(record)));
    }),
    { numRuns: 200 },
  );
});

test("secrets of a record are hidden, but what was prepared for the log is left as it is", () => {
  const record = readRecord(
    JSON.stringify({
      msg: "to http://u:p@a.test/?token=x",
      password: "p",
      headers: [["X", "Bearer abcdefgh"]],
      body: "token=x&password=y",
    }),
  );
  assert.deepEqual(record, {
    msg: "to http://[REDACTED]@a.test/?token=[REDACTED]",
    password: "[REDACTED]",
    headers: [["X", "Bearer abcdefgh"]],
    body: "token=x&password=y",
  });
});

test("what is no JSON object is none", () => {
  for (const line of ["", "plain", "[1]", "null", "5"]) assert.equal(readRecord(line), undefined, line);
});

test("values are hidden by their names, however these are spelled and however deep they lie", () => {
  for (const name of [
    "authorization",
    "Authorization",
    "proxy-authorization",
    "Cookie",
    "set-cookie",
    "x-api-key",
    "apiKey",
    "api_key",
    "password",
    "socks_auth_password",
    "upstreamAuthPassword",
    "token",
    "access_token",
    "clientSecret",
    "private_key",
  ]) {
    assert.equal(isSecretName(name), true, name);
    assert.deepEqual(withoutSecrets({ a: [{ b: { [name]: "hunter2" } }] }), { a: [{ b: { [name]: "[REDACTED]" } }] });
  }
  for (const name of [
    "path",
    "key",
    "url",
    "tokens_per_second",
    "author",
    "cookies_count",
    "passed",
    "x".repeat(5000),
  ]) {
    assert.equal(isSecretName(name), false, name);
  }
  assert.deepEqual(withoutSecrets({ password: null, token: "" }), { password: null, token: "" });
});

test("secrets in texts are hidden by their shape, and what is around them stays", () => {
  for (const [text, expected] of [
    ["GET https://u:hunter2@a.test/x", "GET https://[REDACTED]@a.test/x"],
    ["socks5://user@proxy:1080", "socks5://[REDACTED]@proxy:1080"],
    ["sent Authorization: Bearer abc.def-123", "sent Authorization: Bearer [REDACTED]"],
    ["basic dTpodW50ZXIy!", "basic [REDACTED]!"],
    ["/a?token=abc&x=1&api_key=k#f", "/a?token=[REDACTED]&x=1&api_key=[REDACTED]#f"],
    ["-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----, then", "[REDACTED], then"],
    ["mail to a@b.test about it", "mail to a@b.test about it"],
    ["https://a.test/x?q=token", "https://a.test/x?q=token"],
  ] as const) {
    assert.equal(textWithoutSecrets(text), expected);
  }
});

test("a long hostile text costs its length and no more", () => {
  for (const text of [
    "://".repeat(300_000),
    "Bearer ".repeat(100_000),
    "-----BEGIN ".repeat(80_000),
    "?token=".repeat(100_000),
  ]) {
    const startMs = performance.now();
    textWithoutSecrets(text);
    assert.ok(performance.now() - startMs < 3000, text.slice(0, 20));
  }
});

test("what lies too deep is left out", () => {
  let deep: unknown = "end";
  for (let at = 0; at < 1000; at += 1) deep = { deep };
  assert.match(JSON.stringify(withoutSecrets(deep)), /…/);
});
