import type { Invocation, OfflineAuthority, Parts } from "#cli/invocation.ts";

const [{ runCommandLine }, { terminalOf }, { EXIT }] = await Promise.all([
  import("#cli/program.ts"),
  import("#cli/terminal.ts"),
  import("#cli/invocation.ts"),
]);

const STANDARD_OUTPUT = 1;
const STANDARD_ERROR = 2;
const reportProblem = (sentence: string): void => void process.stderr.write(`weir: ${sentence}\n`);

/** Modules that commands may use, loaded on first use. */
export const parts: Parts = {
  createLogger: async ({ path, target, level, isJson, hasColours }) => {
    const [{ pino }, { DescriptorLines, reasonOf }, { openLogOutput }] = await Promise.all([
      import("pino"),
      import("@headworks/log-file"),
      import("#logging/log-output.ts"),
    ]);
    // A stalled terminal or full disk must not stall the proxy.
    const stream = new DescriptorLines({
      descriptor: target === "stdout" ? STANDARD_OUTPUT : STANDARD_ERROR,
      onProblem: (error) =>
        reportProblem(`The log cannot be written: ${reasonOf(error)}. It is tried again every second`),
      onRecovered: (lostLines) => log.warn({ missing: lostLines }, "The log is written again"),
    });
    const output = openLogOutput({
      path,
      stream,
      hasColours,
      isJson,
      hasFile: target !== "stderr-only",
      clock: (await import("./clock.ts")).systemClock,
      reportProblem,
    });
    // For exits that await nothing.
    process.on("exit", () => output.flushSync());
    const log = pino({ level, base: null }, output);
    return { log, output };
  },
  startWriter: async () => (await import("#storage/write/start-writer-thread.ts")).startWriterThread(),
  checkDatabase: async (path, content) => {
    const { openDatabase, STATE_MIGRATIONS, TRAFFIC_MIGRATIONS } = await import("#storage/database.ts");
    const migrations = { state: STATE_MIGRATIONS, traffic: TRAFFIC_MIGRATIONS, other: undefined }[content];
    const database = openDatabase(path, { readOnly: true, ...(migrations === undefined ? {} : { migrations }) });
    try {
      const responses = database
        .prepare("PRAGMA quick_check(10)")
        .all()
        .flatMap((row) => Object.values(row).map(String));
      return responses.filter((response) => response !== "ok");
    } finally {
      database.close();
    }
  },
  openAuthority: async (directory) => {
    const { openAuthorityStore } = await import("#slices/cert/cert.slice.ts");
    const warn = (_facts: object, message: string): void => reportProblem(message);
    const store = openAuthorityStore({ directory, nowMs: () => Date.now(), log: { warn, info: () => undefined } });
    const facts = (): OfflineAuthority => ({
      path: store.certificatePath,
      certificatePem: store.current.certificatePem,
      certificateDer: store.current.certificateDer,
      fingerprint: store.current.fingerprintSha256,
      subject: store.current.subject,
      notBefore: store.current.notBefore,
      notAfter: store.current.notAfter,
      renew: () => {
        store.renew();
        return facts();
      },
    });
    return facts();
  },
  openSocket: async (url) => {
    const { WebSocket } = await import("ws");
    const socket = new WebSocket(url, { perMessageDeflate: false, handshakeTimeout: 10_000, maxPayload: 67_108_864 });
    let reason = "the connection ended";
    socket.on("error", (error) => (reason = error.message));
    return {
      onOpen: (listener) => void socket.on("open", listener),
      onMessage: (listener) => void socket.on("message", (data: Buffer) => listener(data.toString("utf8"))),
      onClose: (listener) => void socket.once("close", () => listener(reason)),
      send: (text) => socket.send(text),
      close: () => socket.close(),
    };
  },
};

/**
 * Runs the command line and ends the process. `environment` is the process environment at start; `heldSignals` returns
 * the signals received since and restores their handling.
 */
export async function main(
  environment: Invocation["environment"],
  heldSignals: Invocation["heldSignals"],
): Promise<never> {
  const gone = new AbortController();
  let outputFailure: Error | undefined;
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    // EPIPE is normal, since the reader may close early; a full disk is an error.
    if (error.code !== "EPIPE" && error.code !== "EIO") outputFailure ??= error;
    gone.abort();
  });
  // No channel is left to report this.
  process.stderr.on("error", () => undefined);

  const { version } = (await import("../package.json", { with: { type: "json" } })).default;
  const invocation: Invocation = {
    version,
    environment,
    stdin: process.stdin,
    stdout: terminalOf(process.stdout, environment),
    stderr: terminalOf(process.stderr, environment),
    parts,
    outputGone: gone.signal,
    heldSignals,
    exitNow: (code) => process.exit(code),
  };
  const exitCode = await runCommandLine(process.argv.slice(2), invocation);
  await Promise.all([written(process.stdout), written(process.stderr)]);
  if (outputFailure !== undefined) process.stderr.write(`weir: Cannot write the output: ${outputFailure.message}\n`);
  process.exit(exitCode === EXIT.ok && outputFailure !== undefined ? EXIT.failure : exitCode);
}

/** Resolves when everything written has left the process or cannot be delivered. */
async function written(stream: NodeJS.WriteStream): Promise<void> {
  await new Promise<void>((resolve) => {
    stream.once("error", () => resolve());
    stream.write("", () => resolve());
  });
}
