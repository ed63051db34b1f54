import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { chmod, mkdir, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { once } from "node:events";
import { delimiter, dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "node:test";
import { peer, runProcess, spawnProcess, temporaryDirectory, type TemporaryDirectory } from "@headworks/testkit";
import { ADMIN, call, listeners } from "./admin-rig.ts";
import { startGateway } from "./gateway-rig.ts";

const GUIDES = new URL("../../../docs/gateway/", import.meta.url);
const MAIN = fileURLToPath(new URL("../bin/sluice.js", import.meta.url));
const TIMEOUT_MS = 60_000;

/** A fenced block, with the comment above it if there is one. */
interface Block {
  readonly language: string;
  readonly text: string;
  readonly note: string;
}

function blocksOf(page: string): Block[] {
  const found = page.matchAll(/(?:<!-- (.*?) -->\n\n)?```(\w+)\n([\s\S]*?)```/g);
  return [...found].map(([, note = "", language = "", text = ""]) => ({ language, text, note }));
}

/** The ports that guides name, by ports that are free here. */
async function freePorts(): Promise<ReadonlyMap<string, string>> {
  const servers = ["8080", "2019", "9001", "9002"].map((name) => ({ name, server: createServer() }));
  const ports = new Map<string, string>();
  for (const { name, server } of servers) {
    await once(server.listen(0, "127.0.0.1"), "listening");
    const address = server.address();
    if (address !== null && typeof address === "object") ports.set(name, String(address.port));
  }
  for (const { server } of servers) await once(server.close(), "close");
  return ports;
}

/** Columns are as wide as what is in them, and ports have four or five digits; fields of HTTP end in CRLF. */
function evenly(text: string): string {
  return text.replaceAll("\r", "").replace(/ {2,}/g, "  ");
}

/** What a page shows of an answer: `…` stands for any text, alone in a line for any lines. */
function patternOf(shown: string): RegExp {
  const lines = evenly(shown).trimEnd().split("\n");
  const source = lines.map((line) =>
    line === "…"
      ? "(?:.*\\n)*?"
      : `${line
          .trimEnd()
          .split("…")
          .map((piece) => RegExp.escape(piece))
          .join(".*")} *\\n`,
  );
  return new RegExp(`^${source.join("")}$`);
}

async function follow(page: string, directory: TemporaryDirectory): Promise<number> {
  await using cleanups = new AsyncDisposableStack();
  const ports = await freePorts();
  const here = (text: string): string =>
    text.replace(/\b(?:8080|2019|9001|9002)\b/g, (port) => ports.get(port) ?? port);
  const commands = directory.file("bin");
  await mkdir(commands);
  const shim = `#!/bin/sh\nexec '${process.execPath}' --disable-warning=ExperimentalWarning '${MAIN}' "$@"\n`;
  await writeFile(`${commands}/sluice`, shim);
  await chmod(`${commands}/sluice`, 0o755);
  const path = [commands, dirname(process.execPath), process.env["PATH"] ?? ""].join(delimiter);
  const options = { cwd: directory.path, env: { PATH: path, GATEWAY_ADMIN: here("http://127.0.0.1:2019") } };
  let ran = 0;
  const blocks = blocksOf(page);
  for (const [at, { language, text, note }] of blocks.entries()) {
    if (note.startsWith("file: ")) await writeFile(directory.file(note.slice(6)), here(text));
    if (language !== "sh") continue;
    ran += 1;
    if (note === "background") {
      const child = cleanups.use(await spawnProcess("sh", ["-c", `exec env ${here(text)}`], options));
      await child.waitForOutput(/^(?:ready|Sluice serves .*)$/m, TIMEOUT_MS);
      continue;
    }
    const exit = await runProcess("sh", ["-e", "-c", here(text)], { ...options, timeoutMs: TIMEOUT_MS });
    assert.equal(exit.code, 0, `${text}${exit.stdout}${exit.stderr}`);
    const next = blocks[at + 1];
    if (next?.language !== "text") continue;
    const said = evenly(exit.stdout);
    assert.match(said.endsWith("\n") ? said : `${said}\n`, patternOf(here(next.text)));
  }
  return ran;
}

for (const name of readdirSync(GUIDES)) {
  const page = readFileSync(new URL(name, GUIDES), "utf8");
  if (!blocksOf(page).some(({ language }) => language === "sh")) continue;
  const skip = ["curl", "openssl"].map((tool) => page.includes(`${tool} `) && peer(tool).skip).find(Boolean);
  test(`docs/gateway/${name}: every command works as printed`, { skip: skip ?? false }, async () => {
    await using directory = await temporaryDirectory();
    assert.ok((await follow(page, directory)) > 0);
  });
}

test("a shown answer allows only what its dots stand for", () => {
  assert.match("a\nx\ny\nb 7\n", patternOf("a\n…\nb …\n"));
  assert.doesNotMatch("a\nb 7\nc\n", patternOf("a\nb …\n"));
  assert.doesNotMatch("aXb\n", patternOf("a.b\n"));
});

test("docs/gateway: links lead somewhere, and every page is linked from the first one", () => {
  const pages = readdirSync(GUIDES);
  const index = readFileSync(new URL("README.md", GUIDES), "utf8");
  for (const name of pages) {
    if (name !== "README.md") assert.ok(index.includes(`](${name})`), name);
    const page = readFileSync(new URL(name, GUIDES), "utf8");
    for (const [, target = ""] of page.matchAll(/\]\((?!https?:|#)([^)#]+)(?:#[^)]*)?\)/g)) {
      assert.doesNotThrow(() => readdirSync(dirname(fileURLToPath(new URL(target, new URL(name, GUIDES))))), target);
      assert.ok(
        readdirSync(dirname(fileURLToPath(new URL(target, GUIDES)))).includes(target.split("/").at(-1) ?? ""),
        `${name}: ${target}`,
      );
    }
  }
});

test("docs/gateway/deploy.md has every variable of the environment that the gateway reads", () => {
  const source = fileURLToPath(new URL("../src/", import.meta.url));
  const read = new Set<string>();
  for (const name of readdirSync(source, { recursive: true, encoding: "utf8" })) {
    if (!name.endsWith(".ts") || name.endsWith(".test.ts")) continue;
    const text = readFileSync(`${source}${name}`, "utf8");
    for (const [, variable = ""] of text.matchAll(/"(GATEWAY_[A-Z0-9_]+)"/g)) read.add(variable);
  }
  const page = readFileSync(new URL("deploy.md", GUIDES), "utf8");
  const told = [...page.matchAll(/^\| `(GATEWAY_\w+)` +\|/gm)].map(([, name = ""]) => name);
  // Made of a prefix and a name where the command line reads them.
  const made = ["GATEWAY_ADMIN_CERT", "GATEWAY_ADMIN_KEY", "GATEWAY_ADMIN_CA"];
  assert.deepEqual(told.toSorted(), [...read, ...made].toSorted());
});

test("docs/gateway/metrics.md has every metric with what it says of itself, and no other", async () => {
  await using gateway = await startGateway(
    { listeners, admin: ADMIN, routes: [] },
    { environment: { GATEWAY_ADMIN_DEV: "1" } },
  );
  const text = (await call(gateway, "/metrics")).text;
  const said = [...text.matchAll(/^# HELP (\S+) (.*)$/gm)].map(([, name, help]) => `${name}: ${help}`);
  const page = readFileSync(new URL("metrics.md", GUIDES), "utf8");
  const told = [...page.matchAll(/^\| `(\w+)` +\|[^|]*\| ([^|]*?) +\|/gm)].map(([, name, help]) => `${name}: ${help}`);
  assert.deepEqual(told.toSorted(), said.toSorted());
});
