import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmod, mkdir, writeFile } from "node:fs/promises";
import { test } from "node:test";
import { temporaryDirectory } from "@headworks/testkit";
import fc from "fast-check";
import { FileReader, MAX_FILE_BYTES } from "./file-reader.ts";
import { MAX_SECRET_BYTES, redactedText, secretForm, SecretResolver } from "./secrets.ts";

const forms: readonly (readonly [string, ReturnType<typeof secretForm>["kind"]])[] = [
  ["plain", "literal"],
  ["$NAME", "literal"],
  ["{NAME}", "literal"],
  ["$", "literal"],
  ["${NAME}", "environment"],
  ["${_a9}", "environment"],
  ["${file:/run/secrets/key}", "file"],
  ["${file:/with space/ä}", "file"],
  ["${redacted:sha256:0123abcd}", "placeholder"],
  ["Bearer ${redacted:sha256:0123abcd}", "placeholder"],
  ["${}", "malformed"],
  ["${9A}", "malformed"],
  ["${A-B}", "malformed"],
  ["${ENV:NAME}", "malformed"],
  ["${NAME", "malformed"],
  ["${file:relative}", "malformed"],
  ["${file:}", "malformed"],
  ["${FILE:/x}", "malformed"],
  ["${NAME} ", "malformed"],
  [" ${NAME}", "malformed"],
  ["Bearer ${NAME}", "malformed"],
  ["${NAME}${NAME}", "malformed"],
  ["${${NAME}}", "malformed"],
  ["${NAME}}", "malformed"],
  ["${NÄME}", "malformed"],
];

for (const [text, kind] of forms) {
  void test(`a reference spans the whole value, anything else with \${ is malformed: ${text} is ${kind}`, () => {
    assert.equal(secretForm(text).kind, kind);
  });
}

function resolver(environment: Record<string, string> = {}): SecretResolver {
  return new SecretResolver(environment, new FileReader());
}

function reason(outcome: ReturnType<SecretResolver["resolve"]>): string {
  return outcome.ok ? `resolved to ${JSON.stringify(outcome.secret.reveal())}` : `${outcome.code}: ${outcome.message}`;
}

void test("variables: set ones resolve, empty and missing ones do not, nor do names of prototypes", () => {
  const secrets = resolver({ KEY: "s3cret", EMPTY: "" });
  assert.equal(reason(secrets.resolve("${KEY}")), 'resolved to "s3cret"');
  assert.match(reason(secrets.resolve("${EMPTY}")), /^secret_unresolved: .*EMPTY is empty/);
  assert.match(reason(secrets.resolve("${NONE}")), /^secret_unresolved: .*NONE is not set/);
  assert.match(reason(secrets.resolve("${constructor}")), /^secret_unresolved: .*constructor is not set/);
  assert.match(reason(secrets.resolve("${redacted:sha256:0123abcd}")), /^redacted_placeholder: /);
  assert.match(reason(secrets.resolve("${oops")), /^secret_malformed: .*closing brace/);
});

void test("files: one line end is trimmed; empty, binary, large, special and missing ones do not resolve", async () => {
  await using directory = await temporaryDirectory();
  const contents: readonly (readonly [string, Buffer | string, RegExp])[] = [
    ["lf", "value\n", /^resolved to "value"$/],
    ["crlf", "value\r\n", /^resolved to "value"$/],
    ["two", "value\n\n", /^resolved to "value\\n"$/],
    ["none", "value", /^resolved to "value"$/],
    ["spaces", " value ", /^resolved to " value "$/],
    ["bom", "\ufeffvalue", /^resolved to "\ufeffvalue"$/],
    ["empty", "", /^secret_unresolved: .* is empty$/],
    ["newline", "\n", /^secret_unresolved: .* is empty$/],
    ["binary", Buffer.from([0x61, 0xff, 0xfe]), /^secret_unresolved: .* is not UTF-8$/],
    ["full", Buffer.alloc(MAX_SECRET_BYTES, "x"), /^resolved to "x{100}/],
    ["over", Buffer.alloc(MAX_SECRET_BYTES + 1, "x"), /^secret_unresolved: .* is larger than 1048576 bytes$/],
    ["huge", Buffer.alloc(MAX_FILE_BYTES + 1, "x"), /^secret_unresolved: .* is larger than 16777216 bytes$/],
  ];
  for (const [name, content, expected] of contents) {
    await writeFile(directory.file(name), content);
    assert.match(reason(resolver().resolve(`\${file:${directory.file(name)}}`)), expected, name);
  }
  await mkdir(directory.file("folder"));
  execFileSync("mkfifo", [directory.file("fifo")]);
  const special: readonly (readonly [string, RegExp])[] = [
    [directory.file("folder"), /is not a regular file$/],
    [directory.file("fifo"), /is not a regular file$/],
    ["/dev/zero", /is not a regular file$/],
    [directory.file("missing"), /does not exist$/],
    [`${directory.file("lf")}/below`, /does not exist$/],
  ];
  for (const [path, expected] of special) assert.match(reason(resolver().resolve(`\${file:${path}}`)), expected, path);
});

void test(
  "a file that may not be read does not resolve",
  { skip: process.getuid?.() === 0 ? "root may read everything" : false },
  async () => {
    await using directory = await temporaryDirectory();
    await writeFile(directory.file("closed"), "x");
    await chmod(directory.file("closed"), 0);
    assert.match(reason(resolver().resolve(`\${file:${directory.file("closed")}}`)), /may not be read/);
  },
);

void test("one build sees one content of a file; the next build sees the next", async () => {
  await using directory = await temporaryDirectory();
  const text = `\${file:${directory.file("key")}}`;
  await writeFile(directory.file("key"), "one");
  const build = resolver();
  assert.equal(reason(build.resolve(text)), 'resolved to "one"');
  await writeFile(directory.file("key"), "two");
  assert.equal(reason(build.resolve(text)), 'resolved to "one"');
  assert.equal(reason(resolver().resolve(text)), 'resolved to "two"');
});

void test("no message has any of a value that is no reference", () => {
  fc.assert(
    fc.property(
      fc.stringMatching(/^[A-Z]{12}$/),
      fc.constantFrom("{}", "x${", "${}", "${", "${a b ", "${file:"),
      (secret, frame) => {
        for (const text of [secret + frame, frame + secret, `\${${secret.toLowerCase()}-${frame}`]) {
          const outcome = resolver().resolve(text);
          if (!outcome.ok) assert.ok(!outcome.message.toLowerCase().includes(secret.toLowerCase()), outcome.message);
        }
      },
    ),
  );
});

void test("what stands for a literal is the first 8 digits of its SHA-256", () => {
  const digest = createHash("sha256").update("hunter2").digest("hex");
  assert.equal(redactedText("hunter2"), `\${redacted:sha256:${digest.slice(0, 8)}}`);
  assert.equal(secretForm(redactedText("hunter2")).kind, "placeholder");
});

void test("the digest changes with every secret and file, and only with them", async () => {
  await using directory = await temporaryDirectory();
  const file = directory.file("key");
  const digest = (environment: Record<string, string>): string => {
    const hash = createHash("sha256");
    const files = new FileReader();
    const secrets = new SecretResolver(environment, files);
    secrets.resolve("${A}");
    secrets.resolve(`\${file:${file}}`);
    secrets.digestInto(hash);
    files.digestInto(hash);
    return hash.digest("hex");
  };
  await writeFile(file, "1");
  const first = digest({ A: "a", OTHER: "1" });
  assert.equal(digest({ A: "a", OTHER: "2" }), first);
  assert.notEqual(digest({ A: "b" }), first);
  await writeFile(file, "2");
  assert.notEqual(digest({ A: "a" }), first);
});
