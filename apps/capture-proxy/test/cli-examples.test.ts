import assert from "node:assert/strict";
import { test } from "node:test";
import type { Command } from "commander";
import { COMMAND_GROUPS, buildProgram, COMMAND_NAMES } from "#cli/program.ts";
import { CommandFailure, EXIT } from "#cli/invocation.ts";
import { WRITTEN_EXAMPLES } from "#cli/examples.ts";
import { recordedInvocation } from "./cli-rig.ts";

const { invocation, out, err } = recordedInvocation({ environment: { WEIR_API_URL: "http://127.0.0.1:1" } });
const program = await buildProgram(invocation, { exitCode: 0 }, "all");

function below(command: Command, path: readonly string[]): [path: readonly string[], command: Command][] {
  return command.commands.flatMap((each) => {
    const own = [...path, each.name()];
    return [[own, each] as [readonly string[], Command], ...below(each, own)];
  });
}

const commands = below(program, []).filter(([, command]) => command.name() !== "help");

/** The examples that a help shows, as the words behind `weir`. */
function examplesOf(command: Command): string[][] {
  command.outputHelp();
  const [, shown = ""] = out.take().split("\nExamples:\n");
  const lines = shown.split("\n\n")[0]?.split("\n") ?? [];
  return lines.filter((line) => line !== "").map((line) => wordsOf(line, command));
}

/** What a shell would make of a line; remarks stand behind more than one space. */
function wordsOf(line: string, command: Command): string[] {
  const called = /(?:^|[ (])weir(?: (.*?))?(?: {2,}.*| [|>] .*|\))?$/u.exec(line.trim());
  assert.ok(called, `${command.name()}: ${line}`);
  return Array.from((called[1] ?? "").matchAll(/'([^']*)'|"([^"]*)"|(\S+)/gu), ([, one, two, bare]) => {
    return one ?? two ?? bare ?? "";
  });
}

const examples = [[[] as readonly string[], program] as const, ...commands].map(
  ([path, command]) => [path, examplesOf(command)] as const,
);

test("each help ends with a few examples of the command, or of what it leads to", () => {
  assert.ok(examples.length > 150);
  for (const [path, lines] of examples) {
    assert.ok(lines.length >= 1 && lines.length <= 5, path.join(" "));
    for (const words of lines) {
      const said = words[0] === "ws" ? ["ws-traffic", ...words.slice(1)] : words;
      assert.deepEqual(said.slice(0, path.length), path);
    }
  }
});

test("each example of an operation says all that it must", async () => {
  const groups = new Set(COMMAND_GROUPS.map(({ slice }) => slice));
  for (const [path, lines] of examples) {
    if (path.length < 2 || !groups.has(path[0] ?? "") || path.at(-1) === "tail") continue;
    for (const words of lines) {
      const failure: unknown = await program.parseAsync(words, { from: "user" }).catch((error: unknown) => error);
      // Nothing listens at this address; missing arguments are reported first.
      assert.ok(failure instanceof Error, words.join(" "));
      assert.ok(!(failure instanceof CommandFailure && failure.exitCode === EXIT.usage), failure.message);
    }
  }
});

test("each example is a command line that the program takes", async () => {
  for (const [, command] of commands) command.action(() => undefined);
  for (const [path, lines] of examples) {
    for (const words of lines) {
      const line = words[0] === undefined || words[0].startsWith("-") ? ["serve", ...words] : words;
      await program.parseAsync(line, { from: "user" }).catch(() => undefined);
      assert.equal(err.take(), "", `${path.join(" ")}: ${line.join(" ")}`);
    }
  }
});

test("no written example is of a command that does not exist", () => {
  const known = new Set(commands.map(([path]) => path.join(" ")));
  assert.deepEqual(
    Object.keys(WRITTEN_EXAMPLES).filter((path) => !known.has(path)),
    [],
  );
  assert.ok(COMMAND_NAMES.every((name) => known.has(name)));
});
