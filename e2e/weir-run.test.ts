import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import { mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { peer, proxyClient, runProcess, startOrigin } from "@headworks/testkit";
import type { Exit, Origin, TemporaryDirectory } from "@headworks/testkit";
import { Cleanups, LOCAL_NAMES, MAIN, originAuthority, startWeir, workDirectory } from "./rig.ts";
import type { Weir } from "./rig.ts";

// Programs without any setting for Weir are captured only by the environment of `weir run`.

const cleanups = new Cleanups();
let origin: Origin;
let directory: TemporaryDirectory;
before(async () => {
  directory = await workDirectory(cleanups);
  const tls = { authority: originAuthority, names: LOCAL_NAMES };
  origin = cleanups.use(
    await startOrigin({ tls, handler: (request, response) => response.end(`response to ${request.url}`) }),
  );
  await writeFile(directory.file("origins.pem"), originAuthority.certificatePem);
  await writeFile(directory.file("Get.java"), JAVA);
});
after(() => cleanups.run());

const PYTHON = "import sys, urllib.request; sys.stdout.write(urllib.request.urlopen(sys.argv[1]).read().decode())";
const NODE = "fetch(process.argv[1]).then((response) => response.text()).then((text) => process.stdout.write(text))";
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

interface Har {
  readonly log: {
    readonly entries: readonly {
      readonly request: { readonly url: string };
      readonly response: { readonly status: number; readonly content: { readonly text?: string } };
    }[];
  };
}

/** Starts each of the given programs, and reports their exit codes. */
const EACH = `const { spawnSync } = require("node:child_process");
const ends = JSON.parse(process.argv[1]).map(([path, ...args]) => spawnSync(path, args, { encoding: "utf8" }));
process.stdout.write(JSON.stringify(ends));`;

/** Prints its environment and sends nothing, with an exit code of its own. */
const SHOW = `console.log(JSON.stringify([process.env.NODE_COMPILE_CACHE, process.env.XDG_CACHE_HOME]));
process.exitCode = 37;`;

async function weirRun(
  name: string,
  env: Readonly<Record<string, string>>,
  ...command: string[]
): Promise<{ readonly exit: Exit; readonly entries: Har["log"]["entries"] }> {
  const har = directory.file(`${name}.har`);
  const options = ["--isolated", `--har=${har}`, `--upstream-ca=${directory.file("origins.pem")}`];
  const exit = await runProcess(process.execPath, [MAIN, "run", ...options, "--", ...command], {
    timeoutMs: 120_000,
    env,
  });
  assert.ok(existsSync(har), exit.stderr);
  return { exit, entries: (JSON.parse(await readFile(har, "utf8")) as Har).log.entries };
}

/** A cache folder filled by other tests, so that Weir need not compile its sources again. */
async function cacheHome(): Promise<string> {
  const home = directory.file("cache");
  await mkdir(join(home, "weir"), { recursive: true });
  const made = process.env["NODE_COMPILE_CACHE"] ?? "";
  if (made !== "") await symlink(made, join(home, "weir", "compile-cache"));
  return home;
}

describe("weir run with programs without settings", () => {
  const programs = PROGRAMS.map(([name, args]) => {
    const { path, skip } = name === "node" ? { path: process.execPath, skip: false } : peer(name);
    return { name, skip, command: (url: string): string[] => [path, ...args(url)] };
  });
  const urlOf = (name: string): string => `https://localhost:${origin.port}/run-${name}?x=1`;
  let ran: Awaited<ReturnType<typeof weirRun>>;
  const ends = new Map<string, { readonly status: number; readonly stdout: string; readonly stderr: string }>();
  before(async () => {
    const there = programs.filter(({ skip }) => skip === false);
    const commands = there.map(({ name, command }) => command(urlOf(name)));
    ran = await weirRun("programs", {}, process.execPath, "-e", EACH, JSON.stringify(commands));
    assert.equal(ran.exit.code, 0, ran.exit.stderr);
    const all = JSON.parse(ran.exit.stdout) as { status: number; stdout: string; stderr: string }[];
    for (const [at, { name }] of there.entries()) ends.set(name, all[at] ?? assert.fail(name));
  });

  for (const { name, skip } of programs) {
    test(`weir run captures ${name} without any setting`, { skip }, () => {
      const end = ends.get(name);
      assert.deepEqual([end?.status, end?.stdout], [0, `response to /run-${name}?x=1`], end?.stderr);
      const own = ran.entries.filter(({ request }) => request.url === urlOf(name));
      assert.deepEqual(
        own.map(({ response }) => [response.status, response.content.text]),
        [[200, `response to /run-${name}?x=1`]],
      );
    });
  }
});

describe("weir run with a program that sends nothing", () => {
  let home: string;
  let ran: Awaited<ReturnType<typeof weirRun>>;
  before(async () => {
    home = await cacheHome();
    ran = await weirRun("none", { NODE_COMPILE_CACHE: "", XDG_CACHE_HOME: home }, process.execPath, "-e", SHOW);
  });

  test("weir run exits with the program's code, and its report is empty", () => {
    assert.equal(ran.exit.code, 37, ran.exit.stderr);
    assert.deepEqual(ran.entries, []);
  });

  test("a program under weir run does not get Weir's compile cache in its environment", () => {
    assert.deepEqual(JSON.parse(ran.exit.stdout), ["", home]);
    assert.ok(readdirSync(join(home, "weir", "compile-cache")).length > 0, "Weir had a cache of its own");
  });
});

describe("weir run with a Weir that has other clients", () => {
  let weir: Weir;
  before(async () => {
    weir = cleanups.use(await startWeir());
  });

  interface Session {
    readonly id: string;
    readonly name: string | null;
    readonly is_current: boolean;
    readonly request_count: number;
  }
  const sessions = async (): Promise<readonly Session[]> => await weir.get("/sessions");
  const pathsOf = async (sessionId: string | undefined): Promise<string[]> => {
    const entries = await weir.get<{ request: { url: string } }[]>(`/traffic?session_id=${sessionId}&limit=1000`);
    return entries.map(({ request }) => new URL(request.url).pathname);
  };

  /** Sends as fast as possible on several connections until stopped; returns the number of responses. */
  function foreignLoad(): { readonly stop: () => Promise<number> } {
    let isFinished = false;
    let sent = 0;
    const client = proxyClient(weir.proxyPort, { ca: weir.caPem });
    const senders = Array.from({ length: 4 }, async (_, number) => {
      while (!isFinished) {
        const { status } = await client.fetch(`https://localhost:${origin.port}/foreign-${number}`);
        assert.equal(status, 200);
        sent += 1;
      }
    });
    return {
      stop: async () => {
        isFinished = true;
        await Promise.all(senders);
        return sent;
      },
    };
  }

  const [curl, python] = [peer("curl"), peer("python3")];
  const skip = curl.skip || python.skip;
  test(
    "reports of runs have only their programs and child processes, under load of others, which is unaffected",
    { skip },
    async () => {
      const before = (await sessions()).find(({ is_current: isCurrent }) => isCurrent);
      const load = foreignLoad();
      const runs = ["left", "right"].map(async (name) => {
        const url = (client: string): string => `https://localhost:${origin.port}/${name}-${client}`;
        const commands = [
          `'${curl.path}' -sS '${url("curl")}'`,
          `'${curl.path}' -sS --socks5-hostname "$(echo $http_proxy | sed s,http://,,)" -k '${url("socks")}'`,
          `'${process.execPath}' -e '${NODE}' '${url("node")}'`,
          `sh -c "'${python.path}' -c '${PYTHON}' '${url("python")}'"`,
        ];
        const har = directory.file(`${name}.har`);
        const options = ["--api-url", weir.apiUrl, "--session", name, "--summary", "--har", har];
        const exit = await runProcess(
          process.execPath,
          [MAIN, "run", ...options, "--", "sh", "-c", commands.join(";echo;")],
          {
            timeoutMs: 120_000,
          },
        );
        assert.equal(exit.code, 0, exit.stderr);
        const responses = ["curl", "socks", "node", "python"].map((client) => `response to /${name}-${client}`);
        assert.equal(exit.stdout, responses.join("\n"), exit.stderr);
        const { log } = JSON.parse(await readFile(har, "utf8")) as Har;
        const urls = log.entries.map(({ request }) => request.url);
        // Through SOCKS5 there is only the tunnel.
        assert.deepEqual(
          urls.filter((each) => each !== `https://localhost:${origin.port}/`),
          ["curl", "node", "python"].map(url),
        );
        assert.equal(urls.length, 4, urls.join());
        assert.match(exit.stderr, /^weir: 4 exchanges, /m);
        assert.doesNotMatch(exit.stderr, /foreign/);
      });
      await Promise.all(runs);
      const sent = await load.stop();
      const after = await sessions();
      assert.equal(after.find(({ is_current: isCurrent }) => isCurrent)?.id, before?.id);
      await weir.waitForEntries(Math.min(1000, sent), "/foreign");
      const foreign = after.find(({ id }) => id === before?.id);
      assert.deepEqual(new Set((await pathsOf(foreign?.id)).map((path) => path.slice(0, 8))), new Set(["/foreign"]));
      for (const name of ["left", "right"]) {
        const own = after.find((session) => session.name === name);
        assert.equal(own?.request_count, 4, name);
      }
    },
  );
});
