import assert from "node:assert/strict";
import { after, test } from "node:test";
import { hasPlainAscii } from "#rules/text-body.ts";
import { compileTextEdit, editWord, wordEditOf } from "./text-edits.ts";
import type { TextAction } from "./text-edits.ts";
import { createTextThread } from "./text-thread.ts";

const thread = createTextThread();
after(() => thread.close());

const edited = async (action: TextAction, bytes: Buffer, type?: string): Promise<unknown> => {
  const result = await thread.edit(action, bytes, type);
  return "problem" in result ? result.problem : [result.bytes.toString("latin1"), result.newCharset, result.words];
};

test("the thread's result equals the synchronous one, in the body's charset, and its input stays unchanged", async () => {
  const bytes = Buffer.from("caf\xe9 caf\xe9", "latin1");
  const action: TextAction = { type: "body_rewrite", pattern: "(C)af(é)", replacement: "$2$1", flags: "i" };
  const [one, other] = await Promise.all([
    edited(action, bytes, "text/plain; charset=iso-8859-1"),
    edited({ type: "json_merge", patch: { b: 1 } }, Buffer.from('{"a":1.0}')),
  ]);
  assert.deepEqual(one, ["\xe9c \xe9c", undefined, "2 matches replaced"]);
  assert.deepEqual(other, ['{"a":1.0,"b":1}', undefined, "JSON Merge Patch applied"]);
  assert.equal(bytes.toString("latin1"), "caf\xe9 caf\xe9");
  assert.deepEqual(await edited({ ...action, replacement: "→" }, bytes, "text/plain; charset=iso-8859-1"), [
    Buffer.from("→ →").toString("latin1"),
    "utf-8",
    "2 matches replaced",
  ]);
  assert.equal(await edited(action, Buffer.from("x"), "image/png"), "the body is not text");
});

test("edits that cannot be applied report why", () => {
  const problem = (action: TextAction, text: string): string => {
    const result = compileTextEdit(action)(text);
    return "problem" in result ? result.problem : result.text;
  };
  const cases: readonly (readonly [TextAction, string, RegExp])[] = [
    [{ type: "body_rewrite", pattern: "x", replacement: "y" }, "abc", /not in the body/],
    [{ type: "body_rewrite", pattern: "a", replacement: "a" }, "abc", /which changes nothing/],
    [{ type: "body_rewrite", pattern: "[a]", replacement: "$&" }, "abc", /which changes nothing/],
    [{ type: "json_merge", patch: {} }, "", /there is no body/],
    [{ type: "json_merge", patch: {} }, "{,}", /the body is not JSON/],
    [{ type: "json_patch", patch: [{ op: "remove", path: "/a" }] }, "{}", /Operation 0: there is nothing/],
    [{ type: "json_merge", patch: {} }, '{"a":1.50}', /which changes nothing/],
  ];
  for (const [action, text, reason] of cases) assert.match(problem(action, text), reason);
});

test("edits that multiply the text are abandoned", () => {
  const long = "x".repeat(8000);
  for (const pattern of ["a", "[a]", "b*"]) {
    const result = compileTextEdit({ type: "body_rewrite", pattern, replacement: long })("a".repeat(100_000));
    assert.match("problem" in result ? result.problem : "", /makes it too large/, pattern);
  }
});

test("copies of copies are abandoned before serialization", () => {
  const patch = Array.from({ length: 60 }, (_, at) => ({ op: "copy" as const, from: "", path: `/${at}` }));
  const result = compileTextEdit({ type: "json_patch", patch })('{"b":"text"}');
  assert.deepEqual(result, { problem: "JSON Patch not applied: the result is too deep or too large" });
  const few = compileTextEdit({ type: "json_patch", patch: patch.slice(0, 2) })('{"b":1}');
  assert.equal("text" in few && few.text, '{"0":{"b":1},"1":{"0":{"b":1},"b":1},"b":1}');
});

test("a closed thread leaves bodies unchanged", async () => {
  const other = createTextThread();
  const action: TextAction = { type: "body_rewrite", pattern: "(a)", replacement: "b" };
  const pending = other.edit(action, Buffer.from("a"), undefined);
  other.close();
  for (const result of [await pending, await other.edit(action, Buffer.from("a"), undefined)]) {
    assert.deepEqual(result, { problem: "Weir is shutting down" });
  }
});

test("a plain word matches in bytes as in text", () => {
  const action: TextAction = { type: "body_rewrite", pattern: "cat", replacement: "$&s & $$1" };
  const word = wordEditOf(action);
  assert.ok(word);
  for (const text of ["cat", "a cat and a catcat", "größe cat größe", "no dog", ""]) {
    const inText = compileTextEdit(action)(text);
    const inBytes = editWord(Buffer.from(text), word);
    assert.deepEqual(
      "problem" in inBytes ? inBytes : { text: inBytes.bytes.toString(), words: inBytes.words },
      inText,
      text,
    );
  }
  for (const other of [
    { ...action, pattern: "c.t" },
    { ...action, flags: "i" },
    { ...action, pattern: "größe" },
    { ...action, replacement: "ü" },
    { ...action, pattern: "(?i)cat" },
  ]) {
    assert.equal(wordEditOf(other), undefined);
  }
});

test("words are searched in bytes only in charsets where no octet of another character is ASCII", () => {
  const table: readonly (readonly [Buffer, string | undefined, boolean])[] = [
    [Buffer.from("größe"), undefined, true],
    [Buffer.from("größe"), "text/html", true],
    [Buffer.from("gr\xf6\xdfe", "latin1"), "text/html", false],
    [Buffer.from("gr\xf6\xdfe", "latin1"), "text/html; charset=iso-8859-1", true],
    [Buffer.of(0x83, 0x41), "text/html; charset=shift_jis", false],
    [Buffer.from("\ufeffa", "utf16le"), undefined, false],
    [Buffer.from("a"), "text/plain; charset=utf-16le", false],
    [Buffer.from("\x1b$B1*\x1b(B"), "text/html", false],
    [Buffer.from("a"), "image/png", false],
    [Buffer.from("a"), "image/svg+xml", true],
  ];
  for (const [bytes, type, expected] of table) assert.equal(hasPlainAscii(bytes, type), expected, `${type}`);
});
