import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { peer, runProcess, startOrigin } from "@headworks/testkit";
import type { Exit, Origin, TemporaryDirectory } from "@headworks/testkit";
import { Cleanups, LOCAL_NAMES, MAIN, originAuthority, workDirectory } from "./rig.ts";

// Programs that know nothing of Weir are captured by nothing but the environment that `weir run` gives them.

const cleanups = new Cleanups();
let origin: Origin;
let directory: TemporaryDirectory;
before(async () => {
  directory = await workDirectory(cleanups);
  const tls = { authority: originAuthority, names: LOCAL_NAMES };
  origin = cleanups.use(
    await startOrigin({ tls, handler: (request, response) => response.end(`answer to ${request.url}`) }),
  );
  await writeFile(directory.file("origins.pem"), originAuthority.certificatePem);
  await writeFile(directory.file("Get.java"), JAVA);
});
after(() => cleanups.run());

const PYTHON = "import sys, urllib.request; sys.stdout.write(urllib.request.urlopen(sys.argv[1]).read().decode())";
const NODE = "fetch(process.argv[1]).then((answer) => answer.text()).then((text) => process.stdout.write(text))";
const JAVA = `import java.net.URI;
import java.net.http.*;

public class Get {
  public static void main(String[] arguments) throws Exception {
    var request = HttpRequest.newBuilder(URI.create(arguments[0])).build();
    System.out.print(HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString()).body());
  }
}
`;

const PROGRAMS: readonly [name: string, args: (url: string) => string[]][] = [
  ["curl", (url) => ["-sS", url]],
  ["wget", (url) => ["-q", "-O", "-", url]],
  ["python3", (url) => ["-c", PYTHON, url]],
  ["node", (url) => ["-e", NODE, url]],
  ["java", (url) => ["-XX:TieredStopAtLevel=1", directory.file("Get.java"), url]],
];

async function weirRun(har: string, ...command: string[]): Promise<Exit> {
  return await weirRunIn({}, har, ...command);
}

async function weirRunIn(env: Record<string, string>, har: string, ...command: string[]): Promise<Exit> {
  const args = [
    MAIN,
    "run",
    "--isolated",
    `--har=${har}`,
    `--upstream-ca=${directory.file("origins.pem")}`,
    "--",
    ...command,
  ];
  return await runProcess(process.execPath, args, { timeoutMs: 60_000, env });
}

interface Har {
  readonly log: {
    readonly entries: readonly {
      readonly request: { readonly url: string };
      readonly response: { readonly status: number; readonly content: { readonly text?: string } };
    }[];
  };
}

for (const [name, args] of PROGRAMS) {
  const program = name === "node" ? { path: process.execPath, skip: false } : peer(name);
  test(`weir run captures ${name} without a word to it`, { skip: program.skip }, async () => {
    const har = directory.file(`${name}.har`);
    const url = `https://localhost:${origin.port}/run-${name}?x=1`;
    const exit = await weirRun(har, program.path, ...args(url));
    assert.equal(exit.code, 0, exit.stderr);
    assert.equal(exit.stdout, `answer to /run-${name}?x=1`);
    const { entries } = (JSON.parse(await readFile(har, "utf8")) as Har).log;
    const own = entries.filter(({ request }) => request.url === url);
    assert.deepEqual(
      own.map(({ response }) => [response.status, response.content.text]),
      [[200, `answer to /run-${name}?x=1`]],
    );
  });
}

test("weir run ends with the code of the program", async () => {
  const { code } = await weirRun(directory.file("none.har"), process.execPath, "-e", "process.exit(37)");
  assert.equal(code, 37);
  assert.deepEqual((JSON.parse(await readFile(directory.file("none.har"), "utf8")) as Har).log.entries, []);
});

test("a program that weir run starts does not find Weir's own compile cache in its environment", async () => {
  const env = { NODE_COMPILE_CACHE: "", XDG_CACHE_HOME: directory.file("cache") };
  const show = "console.log(JSON.stringify([process.env.NODE_COMPILE_CACHE, process.env.XDG_CACHE_HOME]))";
  const { code, stdout } = await weirRunIn(env, directory.file("environment.har"), process.execPath, "-e", show);
  assert.deepEqual([code, JSON.parse(stdout)], [0, ["", directory.file("cache")]]);
});
