import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { test } from "node:test";
import { Command } from "commander";
import { peer, runProcess, temporaryDirectory } from "@headworks/testkit";
import { completionScript } from "#cli/completion.ts";
import { runInside } from "./cli-rig.ts";

const bash = peer("bash");

/** What bash offers after the words of a line, the last of which is being written. */
async function offered(line: string): Promise<string[]> {
  await using directory = await temporaryDirectory();
  const { stdout } = await runInside(["completion", "bash"]);
  await writeFile(directory.file("weir.bash"), stdout);
  const script = `source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); _weir; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const words = line.split(" ");
  const result = await runProcess(bash.path, ["--norc", "-c", script, "bash", directory.file("weir.bash"), ...words], {
    cwd: directory.path,
  });
  assert.equal(result.stderr, "");
  return result.stdout
    .split("\n")
    .filter((word) => word !== "")
    .toSorted();
}

const cases: readonly (readonly [line: string, expected: readonly string[]])[] = [
  ["weir tra", ["traffic"]],
  ["weir traffic s", ["script-traces", "search", "summary"]],
  ["weir traffic list --li", ["--limit"]],
  ["weir sessions export ID --format ", ["har", "session"]],
  ["weir --json blocklist to", ["toggle"]],
  ["weir ca e", ["export"]],
  ["weir completion --he", ["--help"]],
  ["weir serve --proxy-p", ["--proxy-port"]],
];
for (const [line, expected] of cases) {
  test(`bash completes ${JSON.stringify(line)}`, { skip: bash.skip }, async () =>
    assert.deepEqual(await offered(line), [...expected].toSorted()),
  );
}

for (const shell of ["bash", "zsh", "fish"] as const) {
  test(`the script for ${shell} names every command and is valid`, async () => {
    const { code, stdout } = await runInside(["completion", shell]);
    assert.equal(code, 0);
    for (const word of ["serve", "traffic", "import-har", "install-help", "proxy-port"]) {
      assert.ok(stdout.includes(word), word);
    }
    // The script for zsh is the one for bash behind an adapter, so that bash can judge both.
    if (shell === "fish" || bash.skip !== false) return;
    await using directory = await temporaryDirectory();
    await writeFile(directory.file("script"), stdout);
    const result = await runProcess(bash.path, ["-n", directory.file("script")]);
    assert.deepEqual([result.code, result.stderr], [0, ""]);
  });
}

test("quotes in summaries do not end the strings of the scripts", { skip: bash.skip }, async () => {
  const program = new Command("weir");
  program.command("it's").summary("a'b\"c$(touch x)`y`\\");
  await using directory = await temporaryDirectory();
  for (const shell of ["bash", "fish"] as const) {
    const script = completionScript(program, shell);
    if (shell === "fish") {
      assert.ok(script.includes(String.raw`-d 'a\'b"c$(touch x)` + "`y`" + String.raw`\\'`), script);
      continue;
    }
    await writeFile(directory.file("script"), script);
    const result = await runProcess(bash.path, ["--norc", directory.file("script")], { cwd: directory.path });
    assert.deepEqual([result.code, result.stderr], [0, ""]);
  }
});
