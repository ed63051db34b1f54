import { spawn } from "node:child_process";
import { homedir } from "node:os";
import { type Command, Option } from "commander";
import { exitCodeOf, followSignals } from "@headworks/process-signals";
import { verbosity, type Verbosity } from "#logging/log-level.ts";
import { type AuthorityImport, readAuthorityImport } from "#settings/authority-import.ts";
import {
  type DataPaths,
  type DataPathSources,
  defaultDataPaths,
  resolveDataDir,
  resolveDataPaths,
} from "#settings/data-paths.ts";
import { SETTING_FIELDS, SETTING_INPUTS, type SettingInput } from "#settings/setting-inputs.ts";
import { type Flags, valuesOfFlags } from "#settings/setting-sources.ts";
import { StartupError } from "#settings/settings.ts";
import { DEFAULT_URL } from "./api-connection.ts";
import { CommandFailure, EXIT, type Invocation, type LogTarget } from "./invocation.ts";
import { shellQuoted, type Terminal, visibleText } from "./terminal.ts";

/** Time for open exchanges to complete after a request to stop. */
const GRACE_MS = 5000;

/** Inputs of a start besides the sources of the settings. */
export interface StartOptions {
  readonly dataDir: string;
  /** Paths outside of the data directory. */
  readonly dataPaths?: DataPaths;
  readonly flags: Flags;
  readonly environment?: Invocation["environment"];
  readonly allowInsecureApi?: boolean;
  readonly importedAuthority?: AuthorityImport | undefined;
  readonly logTarget: LogTarget;
  readonly verbosity: Verbosity;
  readonly isJsonLog?: boolean;
}

/** A running service as the commands see it. */
export interface StartedProxy {
  readonly addresses: { readonly proxy: string; readonly api: string; readonly socks: string | undefined };
  readonly command: string;
  readonly certificatePath: string;
  readonly fingerprint: string;
  /**
   * Stops accepting, gives open exchanges `graceMs`, commits what was recorded, and brings out the log. Throws
   * {@link CommandFailure} once all that is done, if entries could not be stored.
   */
  stop(graceMs?: number): Promise<void>;
}

/** Starts the service in this process. Throws {@link CommandFailure} for failures the user can fix. */
export async function startProxy(invocation: Invocation, options: StartOptions): Promise<StartedProxy> {
  const dataPaths = options.dataPaths ?? defaultDataPaths(options.dataDir);
  const terminal = options.logTarget === "stdout" ? invocation.stdout : invocation.stderr;
  // First, so that it loads what it needs beside the next line.
  const writer = await invocation.parts.startWriter();
  const [{ createProxy }, { log, output }] = await Promise.all([
    import("#proxy.ts"),
    invocation.parts.createLogger({
      path: dataPaths.logFile,
      target: options.logTarget,
      level: options.verbosity.level,
      isJson: options.isJsonLog ?? false,
      hasColours: terminal.style("dim", "x") !== "x",
    }),
  ]);
  const { unread, variable } = options.verbosity;
  if (unread.length > 0) log.warn({ variable, unread }, "Parts of the log level are not valid");
  const webDirectory = invocation.environment["WEIR_WEB_DIR"];
  try {
    const proxy = await createProxy({
      dataDir: options.dataDir,
      dataPaths,
      environment: options.environment ?? invocation.environment,
      flags: options.flags,
      log,
      logs: output,
      allowInsecureApi: options.allowInsecureApi ?? false,
      writer,
      ...(options.importedAuthority === undefined ? {} : { importedAuthority: options.importedAuthority }),
      ...(webDirectory === undefined || webDirectory === "" ? {} : { uiDirectory: webDirectory }),
    });
    return {
      addresses: proxy.addresses,
      command: proxy.command,
      certificatePath: proxy.certificatePath,
      fingerprint: proxy.fingerprint,
      stop: async (graceMs) => {
        let loss: string | undefined;
        try {
          loss = await proxy.stop(graceMs);
        } finally {
          await output.close();
        }
        if (loss !== undefined) throw new CommandFailure(EXIT.failure, loss);
      },
    };
  } catch (error) {
    await writer.terminate();
    await output.close();
    throw startFailure(error);
  }
}

/** The exit code and message of a failed start; unexpected errors keep their stack. */
function startFailure(error: unknown): unknown {
  const system = systemError(error);
  if (system?.code === "EADDRINUSE") {
    return new CommandFailure(EXIT.addressInUse, inUseSentence(error, system), { cause: error });
  }
  if (error instanceof StartupError) {
    return new CommandFailure(EXIT.cannotStart, error.message, { cause: error });
  }
  if (system?.code === "EACCES" && system.port !== undefined) {
    return new CommandFailure(
      EXIT.cannotStart,
      `This user may not listen on port ${system.port}; choose one above 1023`,
      { cause: error },
    );
  }
  if (system?.code === "EADDRNOTAVAIL") {
    return new CommandFailure(
      EXIT.cannotStart,
      `This machine has no address ${system.address ?? ""}; choose another with --host or --api-host`,
      { cause: error },
    );
  }
  if (system?.hostname !== undefined) {
    return new CommandFailure(
      EXIT.cannotStart,
      `The name ${system.hostname} cannot be resolved; choose an address with --host or --api-host`,
      { cause: error },
    );
  }
  if (system?.path !== undefined) {
    return new CommandFailure(EXIT.cannotStart, `Cannot use ${system.path}: ${(error as Error).message}`, {
      cause: error,
    });
  }
  return error;
}

interface SystemError {
  readonly code: string;
  readonly port?: number;
  /** Of an error of listening: the flag of the port. */
  readonly flag?: string;
  readonly address?: string;
  readonly hostname?: string;
  readonly path?: string;
}

function systemError(error: unknown): SystemError | undefined {
  for (
    let cause: unknown = error;
    typeof cause === "object" && cause !== null;
    cause = (cause as { cause?: unknown }).cause
  ) {
    if ("code" in cause && typeof cause.code === "string" && cause.code.startsWith("E")) return cause as SystemError;
  }
  return undefined;
}

function inUseSentence(error: unknown, { port, address, flag }: SystemError): string {
  if (error instanceof StartupError) return error.message;
  const subject = port === undefined ? "The address" : `Port ${port}${address === undefined ? "" : ` on ${address}`}`;
  const choice = flag === undefined ? "" : ` with ${flag}${flag === "--socks-port" ? "" : " (0 selects a free port)"}`;
  return `${subject} is in use: stop the program that uses it, or choose another port${choice}`;
}

/** Shown below the options of `weir serve --help`. */
const SERVE_HELP = `
Every setting can be given in <data dir>/config.json, as an environment variable (WEIR_… or SERVICE_…), or as a flag;
later ones take precedence. "weir config describe" shows each value and its source.

Other environment variables:
  WEIR_DATA_DIR     the data directory
  WEIR_WEB_DIR      a built web UI to serve instead of the included one
  WEIR_LOG          log level: off, error, warn, info, debug, trace, or weir=debug,info (RUST_LOG is read too)
  NO_COLOR          no colours

Examples:
  weir serve
  weir serve --proxy-port 9000 --api-port 9001 --data-dir ./capture
  weir serve --host 0.0.0.0 --allowed-ip 192.168.1.0/24      devices of the local network
  weir serve --passthrough-domain '*.bank.example' --ignored-domain telemetry.example
  weir serve -p 0 -a 0 --json | jq -r .proxy

Exit codes: 0 stopped, 1 failed, 2 wrong usage, 3 address in use, 4 cannot start.
`;

/** Adds the flags of `weir serve`. */
export function addServeOptions(command: Command): void {
  addSettingOptions(command);
  command
    .option("--data-dir <path>", "Directory of captured traffic, settings and the CA (env WEIR_DATA_DIR)")
    .option(
      "-d, --db-path <file>",
      "Database of captured traffic, with its bodies beside it. Default: traffic.db in the data directory (env WEIR_DB_PATH)",
    )
    .option(
      "-c, --cert-path <directory>",
      "Directory of the CA. Default: certs in the data directory (env WEIR_CERT_PATH)",
    )
    .option("-l, --log-path <file>", "Log file. Default: logs/weir.log in the data directory (env WEIR_LOG_PATH)")
    .option("--insecure-api", "Allow the API on a non-loopback address without authentication")
    .option("--ca-cert-file <path>", "Use this CA instead of one of Weir's own, PEM (env WEIR_CA_CERT_FILE)")
    .option("--ca-key-file <path>", "Its private key, PEM (env WEIR_CA_KEY_FILE)")
    .option("--open-browser", "Open the web UI in the browser")
    .option("--json", "Print the addresses as one line of JSON")
    .addHelpText("after", SERVE_HELP);
}

/** `weir serve`: runs until a signal requests to stop; resolves to the exit code. */
export async function serve(invocation: Invocation, command: Command): Promise<number> {
  const stopRequest = firstSignal(invocation);
  try {
    await serveUntil(invocation, command, stopRequest.received);
    return EXIT.ok;
  } finally {
    stopRequest.release();
  }
}

async function serveUntil(
  invocation: Invocation,
  command: Command,
  stopRequest: Promise<NodeJS.Signals>,
): Promise<void> {
  const given = command.opts<{
    dataDir?: string;
    logPath?: string;
    dbPath?: string;
    certPath?: string;
    insecureApi?: boolean;
    caCertFile?: string;
    caKeyFile?: string;
    openBrowser?: boolean;
    json?: boolean;
  }>();
  const flags = settingFlags(command);
  const { environment } = invocation;
  const dataDir = resolveDataDir({ flag: given.dataDir, environment, platform: process.platform, homeDir: homedir() });
  const proxy = await startProxy(invocation, {
    dataDir,
    dataPaths: dataPathsOf({ flags: given, environment, dataDir }),
    flags,
    allowInsecureApi: given.insecureApi ?? false,
    importedAuthority: importedAuthority(given, environment),
    // With JSON, standard output is read by a program.
    logTarget: given.json === true ? "stderr" : "stdout",
    verbosity: verbosity(environment, flags["verbose"] === true ? "debug" : "info"),
    isJsonLog: flags["log-json"] === true,
  });
  const facts = {
    ...proxy.addresses,
    dataDir,
    certificatePath: proxy.certificatePath,
    fingerprint: proxy.fingerprint,
    version: invocation.version,
    command: proxy.command,
  };
  if (given.json === true) invocation.stdout.write(`${JSON.stringify(jsonFacts(facts))}\n`);
  else invocation.stdout.write(banner(facts, invocation.stdout));
  if (given.openBrowser === true) openBrowser(proxy.addresses.api);
  const signal = await stopRequest;
  if (given.json !== true) invocation.stdout.write(stoppingLine(signal));
  await proxy.stop(GRACE_MS);
}

/** As {@link resolveDataPaths}, with the exit code of a start that cannot be. */
function dataPathsOf(sources: DataPathSources): DataPaths {
  try {
    return resolveDataPaths(sources);
  } catch (error) {
    throw startFailure(error);
  }
}

/** As {@link readAuthorityImport}, with the exit code of a start that cannot be. */
function importedAuthority(
  given: { readonly caCertFile?: string; readonly caKeyFile?: string },
  environment: Invocation["environment"],
): AuthorityImport | undefined {
  try {
    return readAuthorityImport({ certificateFlag: given.caCertFile, keyFlag: given.caKeyFile, environment });
  } catch (error) {
    throw startFailure(error);
  }
}

function stoppingLine(signal: NodeJS.Signals): string {
  const again = signal === "SIGINT" ? "Ctrl+C" : "a second signal";
  return `Stopping: open exchanges have ${GRACE_MS / 1000} seconds to complete; ${again} stops at once\n`;
}

function jsonFacts(facts: Parameters<typeof banner>[0]): object {
  return {
    proxy: facts.proxy,
    api: facts.api,
    ...(facts.socks === undefined ? {} : { socks: facts.socks }),
    pid: process.pid,
    data_dir: facts.dataDir,
    certificate: facts.certificatePath,
    fingerprint_sha256: facts.fingerprint,
    version: facts.version,
  };
}

/** The first request to stop; a second one ends the process without waiting. */
function firstSignal(invocation: Invocation): {
  readonly received: Promise<NodeJS.Signals>;
  readonly release: () => void;
} {
  const { promise, resolve } = Promise.withResolvers<NodeJS.Signals>();
  let isStopping = false;
  const stop = (signal: NodeJS.Signals): void => {
    if (isStopping) invocation.exitNow(exitCodeOf(signal));
    isStopping = true;
    resolve(signal);
  };
  return { received: promise, release: followSignals(invocation.heldSignals, { stop }) };
}

function openBrowser(url: string): void {
  const [program, args] =
    process.platform === "darwin"
      ? ["open", [url]]
      : process.platform === "win32"
        ? ["cmd", ["/c", "start", "", url]]
        : ["xdg-open", [url]];
  const child = spawn(program, args, { stdio: "ignore", detached: true });
  // Without a desktop there is nothing to open, and the banner names the address.
  child.on("error", () => undefined);
  child.unref();
}

interface BannerFacts {
  readonly proxy: string;
  readonly api: string;
  /** Undefined where that listener is off. */
  readonly socks?: string | undefined;
  readonly dataDir: string;
  readonly certificatePath: string;
  readonly fingerprint: string;
  readonly version: string;
  /** The command with which this was started: `weir`, or `npx weir` in a clone. */
  readonly command: string;
}

/** The output of `weir serve` once it listens: addresses, how to send traffic through the proxy, and the CA. */
export function banner(facts: BannerFacts, terminal: Terminal): string {
  const name = (text: string): string => terminal.style("dim", text.padEnd(12));
  const address = (text: string): string => terminal.style("cyan", text);
  const path = shellQuoted(facts.certificatePath);
  return [
    terminal.style("bold", `Weir ${facts.version} is running`),
    "",
    `  ${name("Proxy")}${address(facts.proxy)}`,
    ...(facts.socks === undefined ? [] : [`  ${name("SOCKS5")}${address(facts.socks)}, not intercepted: tunnels only`]),
    `  ${name("Web UI, API")}${address(facts.api)}`,
    `  ${name("Set-up page")}${address(`${facts.api}/setup`)}, or http://weir/ through the proxy`,
    `  ${name("Data")}${visibleText(facts.dataDir)}`,
    `  ${name("CA")}${visibleText(facts.certificatePath)}`,
    `  ${name("")}SHA-256 ${facts.fingerprint}`,
    "",
    "  Capture one program, with the CA trusted:",
    `    ${facts.command} run${apiOption(facts.api)} -- curl https://example.com`,
    "  Or configure a client yourself:",
    `    curl --proxy ${facts.proxy} --cacert ${path} https://example.com`,
    "",
    terminal.style("dim", "  Press Ctrl+C to stop."),
    "",
  ].join("\n");
}

/** The option with the address of this service, unless it is the default. */
function apiOption(api: string): string {
  const url = new URL(api);
  if (url.hostname === "0.0.0.0" || url.hostname === "[::]") url.hostname = new URL(DEFAULT_URL).hostname;
  return url.origin === DEFAULT_URL ? "" : ` --api-url ${url.origin}`;
}

/** One-letter forms of settings' flags. */
const LETTERS: Readonly<Record<string, string>> = {
  "proxy-port": "p",
  "api-port": "a",
  host: "H",
  "max-requests": "m",
  verbose: "v",
};

const defaults = new Map(SETTING_FIELDS.map((field) => [field.name, field.default]));

/** Adds a flag for every setting that has one; name, default, variable and description come from the settings. */
export function addSettingOptions(command: Command): void {
  for (const input of SETTING_INPUTS) {
    if (input.flag === null) continue;
    for (const option of optionsOf(input, input.flag)) command.addOption(option);
  }
}

/**
 * What was given on the command line, by flag name without dashes, as the settings take it. Throws
 * {@link CommandFailure} for a value that no setting takes: the command line is wrong then, before anything is tried.
 */
export function settingFlags(command: Command): Flags {
  const flags: Record<string, string | number | boolean | readonly string[]> = {};
  for (const input of SETTING_INPUTS) {
    if (input.flag === null) continue;
    const isNegative = input.flag.startsWith("no-");
    const key = new Option(`--${input.flag}`).attributeName();
    if (command.getOptionValueSource(key) !== "cli") continue;
    const value = command.getOptionValue(key) as string | boolean | readonly string[];
    // Commander reads `--no-https` as https = false; the setting's flag is called no-https.
    flags[input.flag] = isNegative ? value === false : value;
  }
  try {
    valuesOfFlags(flags);
  } catch (error) {
    throw error instanceof StartupError ? new CommandFailure(EXIT.usage, error.message, { cause: error }) : error;
  }
  return flags;
}

function optionsOf(input: SettingInput, flag: string): Option[] {
  const letter = LETTERS[flag] === undefined ? "" : `-${LETTERS[flag]}, `;
  const text = `${input.description}${facts(input)}`;
  if (input.takes === "value") {
    const option = new Option(`${letter}--${flag} <${input.placeholder}>`, text);
    // For help and completion; the settings reject other values.
    if (input.choices !== undefined) option.argChoices = [...input.choices];
    return [option];
  }
  if (input.takes === "list") {
    const collect = (value: string, previous: readonly string[] | undefined): readonly string[] => [
      ...(previous ?? []),
      value,
    ];
    return [new Option(`${letter}--${flag} <${input.placeholder}>`, text).argParser(collect)];
  }
  if (flag.startsWith("no-")) return [new Option(`--${flag}`, text)];
  return [new Option(`${letter}--${flag}`, text), new Option(`--no-${flag}`, `The opposite of --${flag}`).hideHelp()];
}

function facts(input: SettingInput): string {
  const parts: string[] = [];
  const [field] = input.fields;
  const value =
    input.fields.length === 1 && field !== undefined && !input.flag?.startsWith("no-")
      ? defaults.get(field)
      : undefined;
  if (input.takes === "list") parts.push("repeatable");
  if (value === true) parts.push(`on; --no-${input.flag ?? ""} switches it off`);
  else if (typeof value === "number" || (typeof value === "string" && value !== "")) parts.push(`default ${value}`);
  parts.push(`env WEIR_${input.environment[0] ?? ""}`);
  return ` (${parts.join("; ")})`;
}
