import assert from "node:assert/strict";
import { once } from "node:events";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { COMMAND_GROUPS } from "#cli/program.ts";
import { temporaryDirectory } from "@headworks/testkit";
import { runInside } from "./cli-rig.ts";

const GUIDES = new URL("../../../docs/guides/", import.meta.url);
const groups = new Set(COMMAND_GROUPS.flatMap(({ slice, alias }) => [slice, alias ?? slice]));

/** The words of a line as `sh` reads it: single and double quotes, no expansion. */
function shellWords(line: string): string[] {
  const words: string[] = [];
  for (const [word] of line.matchAll(/(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s'"\\])+/gu)) {
    words.push(
      word.replaceAll(
        /'([^']*)'|"((?:\\.|[^"\\])*)"|\\(.)/gu,
        (_all, plain?: string, quoted?: string, one?: string) =>
          plain ?? quoted?.replaceAll(/\\(["\\$`])/gu, "$1") ?? one ?? "",
      ),
    );
  }
  return words;
}

/** Every command of a guide that calls the API. */
function commandsOf(guide: string): string[] {
  const blocks = readFileSync(new URL(guide, GUIDES), "utf8").matchAll(/^```sh\n([^]*?)^```$/gmu);
  return [...blocks].flatMap(([, block = ""]) =>
    block
      .replaceAll(/\\\n\s*/gu, "")
      .split("\n")
      .map((line) => /^\s*weir ([^#|;&>]*(?:(?:'[^']*'|"[^"]*")[^#|;&>]*)*)/u.exec(line)?.[1]?.trim() ?? "")
      .filter((command) => groups.has(command.split(" ")[0] ?? "")),
  );
}

const server = createServer((request, response) => {
  request.resume();
  request.on("end", () => response.setHeader("content-type", "application/json").end("{}"));
});
let api = "";
before(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  api = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
after(() => server.close());

test("words are read as the shell reads them", () => {
  assert.deepEqual(shellWords(`a --b 'c "d" e' "f \\"g\\" \\\\d" h\\ i j'k'l`), [
    "a",
    "--b",
    'c "d" e',
    'f "g" \\d',
    "h i",
    "jkl",
  ]);
});

for (const guide of readdirSync(GUIDES).filter((name) => name.endsWith(".md"))) {
  for (const command of commandsOf(guide)) {
    test(`${guide} shows a command that exists: weir ${command}`, async () => {
      await using directory = await temporaryDirectory();
      const words = shellWords(command).map((word) =>
        /\.(?:json|har|png)$/u.test(word) ? directory.file(word) : word,
      );
      for (const file of words.filter((word) => word.endsWith(".json"))) writeFileSync(file, "{}");
      const result = await runInside(words, { environment: { WEIR_API_URL: api } });
      assert.notEqual(result.code, 2, result.stderr);
    });
  }
}
