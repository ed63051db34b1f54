import assert from "node:assert/strict";
import { constants } from "node:os";
import { fileURLToPath } from "node:url";
import { describe, test } from "node:test";
import { IGNORED_SIGNALS, STOP_SIGNALS } from "@headworks/process-signals";
import {
  rawClient,
  readResponse,
  spawnProcess,
  startOrigin,
  temporaryDirectory,
  waitUntil,
  type SpawnedProcess,
} from "@headworks/testkit";
import { writeFile } from "node:fs/promises";
import { entryOptions } from "../scripts/entry-options.ts";

type Signal = NodeJS.Signals;

/** The effect of each signal on a service, in any of its processes. */
const EFFECTS: Readonly<Record<string, readonly string[]>> = {
  stops: STOP_SIGNALS,
  "means nothing": [...IGNORED_SIGNALS, "SIGPOLL", "SIGPIPE", "SIGXFSZ"],
  "reads the configuration again, or stops": ["SIGHUP"],
  "has no effect on any process": ["SIGCHLD", "SIGCONT", "SIGURG", "SIGWINCH"],
  "reports a fault": ["SIGILL", "SIGTRAP", "SIGABRT", "SIGIOT", "SIGBUS", "SIGFPE", "SIGSEGV", "SIGSYS"],
  "is the profiler's": ["SIGPROF"],
  suspends: ["SIGTSTP", "SIGTTIN", "SIGTTOU"],
  "cannot be caught": ["SIGKILL", "SIGSTOP"],
};

interface Program {
  readonly name: string;
  readonly entry: string;
  readonly args: readonly string[];
  /** The effect of SIGHUP. */
  readonly hangup: "stops" | "reloads";
  /** The first module after the launcher's first lines, and in a worker after those of its program. */
  readonly loadedNext: readonly string[];
}

const WEIR: Program = {
  name: "Weir",
  entry: fileURLToPath(new URL("../apps/capture-proxy/bin/weir.js", import.meta.url)),
  args: ["serve", "--json", "-p", "0", "-a", "0"],
  hangup: "stops",
  loadedNext: ["/capture-proxy/src/main.ts"],
};
const SLUICE: Program = {
  name: "Sluice",
  entry: fileURLToPath(new URL("../apps/gateway/bin/sluice.js", import.meta.url)),
  args: ["serve", "--json"],
  hangup: "reloads",
  loadedNext: ["/gateway/src/main.ts"],
};
const WORKERS: Program = {
  ...SLUICE,
  name: "Sluice with two workers",
  args: [...SLUICE.args, "--workers", "2"],
  loadedNext: ["/gateway/src/main.ts", "/workers/data-plane.ts"],
};
const PROGRAMS = [WEIR, SLUICE, WORKERS];

/** Makes a process send itself signals when a file is loaded. */
function sentAtLoading(files: readonly string[], signals: readonly Signal[]): string {
  const script = `import { registerHooks } from "node:module";
    const files = new Set(${JSON.stringify(files)});
    registerHooks({ load(url, context, next) {
      for (const file of files) {
        if (!url.endsWith(file)) continue;
        files.delete(file);
        for (const signal of ${JSON.stringify(signals)}) process.kill(process.pid, signal);
      }
      return next(url, context);
    } });`;
  return `data:text/javascript,${encodeURIComponent(script)}`;
}

interface Running extends AsyncDisposable {
  readonly child: SpawnedProcess;
  /** A request that reached the origin and has no response yet. */
  begin(): Promise<{ readonly response: Promise<string> }>;
  /** Lets the origin respond. */
  release(): void;
  /** Sends a signal to every process. */
  signal(signal: Signal): void;
}

async function start(program: Program, preloads: readonly string[] = []): Promise<Running> {
  const directory = await temporaryDirectory();
  const released = Promise.withResolvers<void>();
  const origin = await startOrigin({
    handler: (request, response) => {
      if (request.url === "/at-once") response.end("at once");
      else void released.promise.then(() => response.end("whole"));
    },
  });
  const file = directory.file("gateway.json");
  const endpoint = { address: "127.0.0.1", port: origin.port };
  await writeFile(
    file,
    JSON.stringify({
      listeners: [{ name: "public", address: "127.0.0.1", port: 0 }],
      upstreams: [{ name: "u", endpoints: [endpoint] }],
      services: [{ name: "s", upstream: "u" }],
      routes: [{ name: "r", service: "s", match: { path: { type: "prefix", value: "/" } }, action: { type: "proxy" } }],
    }),
  );
  const preload = preloads.flatMap((url) => ["--import", url]);
  const child = await spawnProcess(
    process.execPath,
    [...entryOptions(program.entry), ...preload, program.entry, ...program.args],
    { env: { WEIR_DATA_DIR: directory.file("data"), GATEWAY_CONFIG: file, GATEWAY_SHUTDOWN_DELAY_MS: "0" } },
  );
  const [line] = await child.waitForOutput(/^\{(?:"proxy"|"generation").*\}$/m, 60_000);
  const facts = JSON.parse(line) as { proxy?: string; listeners?: { port: number }[] };
  const port = facts.listeners?.[0]?.port ?? Number(new URL(facts.proxy ?? "").port);
  const target = facts.proxy === undefined ? "" : origin.url;
  const send = async (path: string): Promise<string> => {
    await using client = await rawClient(port);
    await client.write(`GET ${target}${path} HTTP/1.1\r\nHost: 127.0.0.1:${origin.port}\r\n\r\n`);
    return (await readResponse(client)).body.toString();
  };
  return {
    child,
    begin: async () => {
      const before = origin.requests.length;
      const response = send("/held");
      response.catch(() => undefined);
      await waitUntil(() => origin.requests.length > before, { what: "the request in progress" });
      // Opens a connection to the process that gets the next signals.
      assert.equal(await send("/at-once"), "at once");
      return { response };
    },
    release: () => released.resolve(),
    signal: (signal) => void process.kill(-child.pid, signal),
    [Symbol.asyncDispose]: async () => {
      released.resolve();
      await child.stop("SIGKILL");
      await origin.close();
      await directory.remove();
    },
  };
}

test("each signal of the system has a defined effect", () => {
  const known = new Set(Object.values(EFFECTS).flat());
  assert.deepEqual(
    Object.keys(constants.signals).filter((signal) => !known.has(signal)),
    [],
  );
});

for (const program of PROGRAMS) {
  const harmless: readonly Signal[] = [
    ...IGNORED_SIGNALS,
    "SIGPIPE",
    "SIGXFSZ",
    ...(program.hangup === "reloads" ? (["SIGHUP"] as const) : []),
  ];
  test(`${program.name} loses no request to a harmless signal during its first lines, while running or draining, and opens no debugger`, async () => {
    await using running = await start(program, [sentAtLoading(program.loadedNext, harmless)]);
    const { child } = running;
    const first = await running.begin();
    for (const signal of harmless) running.signal(signal);
    const second = await running.begin();
    running.signal("SIGTERM");
    if (program === WEIR) await child.waitForOutput(/./);
    for (const signal of harmless) running.signal(signal);
    running.release();
    assert.deepEqual([await first.response, await second.response], ["whole", "whole"]);
    const exit = await child.exited;
    assert.deepEqual([exit.code, exit.signal], [0, null]);
    assert.doesNotMatch(exit.stderr + exit.stdout, /Debugger|worker_ended/);
    // One for a signal during the first lines, and at least one for later ones.
    if (program.hangup === "reloads") assert.ok(exit.stdout.split('"code":"config_published"').length > 3, exit.stdout);
  });
}

describe("a stop signal drains", { concurrency: 2 }, () => {
  // Each app has its own tests of SIGINT and SIGTERM.
  const cases = [
    ...(["SIGQUIT", "SIGHUP"] as const).map((signal) => ({ program: WEIR, signal })),
    ...(["SIGQUIT", "SIGPWR", "SIGXCPU"] as const).map((signal) => ({ program: SLUICE, signal })),
    { program: WORKERS, signal: "SIGQUIT" as const },
  ];
  for (const { program, signal } of cases) {
    test(`${program.name}: ${signal}`, async () => {
      await using running = await start(program);
      const { response } = await running.begin();
      running.signal(signal);
      setImmediate(() => running.release());
      assert.equal(await response, "whole");
      assert.deepEqual([(await running.child.exited).code, running.child.stderr().includes("Debugger")], [0, false]);
    });
  }
});

for (const program of PROGRAMS) {
  test(`${program.name} starts and then stops gracefully if it is signalled during its first lines`, async () => {
    await using running = await start(program, [sentAtLoading(program.loadedNext, ["SIGQUIT"])]);
    assert.equal((await running.child.exited).code, 0);
  });

  test(`${program.name} stops at once at a second signal while draining`, async () => {
    await using running = await start(program);
    await running.begin();
    running.signal("SIGTERM");
    let hasEnded = false;
    const exited = running.child.exited.finally(() => (hasEnded = true));
    await waitUntil(
      () => {
        // Sent to the service's own process only: a key press signals the group, which may count as a second signal.
        if (!hasEnded) void running.child.stop("SIGQUIT", 60_000);
        return hasEnded;
      },
      { what: "the end" },
    );
    assert.equal((await exited).code, 128 + constants.signals.SIGQUIT);
  });
}

test("a worker that a signal ends before its first line is restarted", async () => {
  const script = 'if (process.env.NODE_UNIQUE_ID === "1") process.kill(process.pid, "SIGHUP")';
  await using running = await start(WORKERS, [`data:text/javascript,${encodeURIComponent(script)}`]);
  const { response } = await running.begin();
  running.release();
  assert.equal(await response, "whole");
});

for (const { name, entry, command } of [
  { ...WEIR, command: ["completion", "bash"] },
  { ...SLUICE, command: ["schema"] },
]) {
  test(`a command of ${name} ends at a signal during its first lines`, async () => {
    const file = name === WEIR.name ? WEIR.loadedNext : SLUICE.loadedNext;
    const child = await spawnProcess(process.execPath, [
      "--import",
      sentAtLoading(file, ["SIGHUP"]),
      entry,
      ...command,
    ]);
    await using _child = child;
    const { code, signal } = await child.exited;
    assert.deepEqual([code, signal], [null, "SIGHUP"]);
  });
}
