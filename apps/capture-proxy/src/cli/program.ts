import { Argument, Command, CommanderError, InvalidArgumentError } from "commander";
import type { ApiFailure } from "@headworks/contract-kit/client";
import { releaseSignals } from "@headworks/process-signals";
import { CommandFailure, EXIT, type Invocation, type Outcome } from "./invocation.ts";
import { globalOptions } from "./global-options.ts";

/** One group for each slice of the contract, in the order of the help; a test holds it against the contract. */
export const COMMAND_GROUPS: readonly CommandGroup[] = [
  { slice: "traffic", summary: "List, search, follow and import captured traffic" },
  { slice: "streams", summary: "WebSockets, event streams, JSON streams and gRPC calls, message by message" },
  { slice: "sessions", summary: "Capture sessions: named sets of entries" },
  { slice: "runs", summary: "Programs with their own proxy and session (see `weir run`)" },
  { slice: "export", summary: "Export HAR files, and requests as commands or code" },
  { slice: "capture", summary: "Switch recording on or off" },
  { slice: "config", summary: "Settings of the running service" },
  { slice: "mirror", summary: "Write response bodies to files as they pass" },
  { slice: "autosave", summary: "Automatic session snapshots" },
  { slice: "replay", summary: "Resend requests, once or many times, and compare the responses" },
  { slice: "breakpoints", summary: "Pause requests and responses to edit or drop them" },
  { slice: "rewrites", summary: "Change requests and responses" },
  { slice: "scripts", summary: "Run JavaScript for exchanges: create, test, trace" },
  { slice: "mocks", summary: "Respond to requests instead of the origin" },
  { slice: "blocklist", summary: "Block hosts" },
  { slice: "throttle", summary: "Simulate slow networks: bandwidth, latency, loss" },
  { slice: "ws-traffic", alias: "ws", summary: "WebSocket messages, and rules for them" },
  { slice: "logs", summary: "Configure, rotate and follow the log" },
  { slice: "upstream", summary: "Test the upstream proxy" },
  { slice: "grpc", summary: "gRPC calls and messages, and schemas to decode them" },
  { slice: "persistence", summary: "Export, import, save and restore all rules" },
  { slice: "focus", summary: "Highlight hosts" },
  { slice: "cert", summary: "CA certificate of the running service" },
  { slice: "metrics", summary: "Health, counters and performance" },
];

/** A command whose options and action are loaded when it is called, so that the others start fast. */
interface LazyCommand {
  readonly name: string;
  readonly alias?: string | undefined;
  readonly summary: string;
  /** The help that it is filled with has examples of its own. */
  readonly hasExamples?: boolean;
  readonly fill: (command: Command, invocation: Invocation, outcome: Outcome) => Promise<void>;
}

const COMMANDS: readonly LazyCommand[] = [
  {
    name: "serve",
    summary: "Start the proxy, its API and its web UI (the default command)",
    hasExamples: true,
    fill: async (command, invocation, outcome) => {
      const { addServeOptions, serve } = await import("./serve.ts");
      addServeOptions(command);
      command.action(async () => {
        outcome.exitCode = await serve(invocation, command);
      });
    },
  },
  {
    name: "run",
    summary: "Run a program with its traffic captured: weir run -- npm test",
    hasExamples: true,
    fill: async (command, invocation, outcome) => {
      const { addRunOptions, run } = await import("./run-command.ts");
      addRunOptions(command);
      command.action(async () => {
        outcome.exitCode = await run(invocation, command);
      });
    },
  },
  ...COMMAND_GROUPS.map(({ slice, alias, summary }): LazyCommand => ({
    name: slice,
    alias,
    summary,
    fill: async (command, invocation, outcome) => {
      for (const option of globalOptions()) command.addOption(option);
      const { addOperationCommands } = await import("./call.ts");
      addOperationCommands(command, slice, invocation, outcome);
      if (slice === "traffic") (await import("./tail.ts")).addTailCommand(command, invocation, outcome);
      if (slice === "ws-traffic") (await import("./ws-tail.ts")).addWsTailCommand(command, invocation, outcome);
      if (slice === "grpc") (await import("./grpc-schemas.ts")).addGrpcSchemaCommands(command, invocation);
      if (slice === "logs") (await import("./logs.ts")).addLogsTailCommand(command, invocation, outcome);
      if (slice === "scripts") (await import("./scripts.ts")).addScriptValidateCommand(command, invocation, outcome);
      if (slice === "replay") (await import("./replay.ts")).addReplayCommands(command, invocation, outcome);
    },
  })),
  {
    name: "diff",
    summary: "Compare two entries, a replay with its original, or two sessions",
    fill: async (command, invocation, outcome) => {
      const { fillDiffCommand } = await import("./diff.ts");
      fillDiffCommand(command, invocation, outcome);
    },
  },
  {
    name: "ca",
    summary: "CA in the data directory: export, import, renew, install",
    fill: async (command, invocation, outcome) => {
      const { addCaCommands } = await import("./ca.ts");
      addCaCommands(command, invocation, outcome);
    },
  },
  {
    name: "doctor",
    summary: "Check this machine, the data directory and the running service",
    fill: async (command, invocation, outcome) => {
      const { fillDoctor } = await import("./doctor.ts");
      fillDoctor(command, invocation, outcome);
    },
  },
  {
    name: "completion",
    summary: "Print a completion script for bash, zsh or fish",
    fill: async (command, invocation, outcome) => {
      const { completionScript, SHELLS } = await import("./completion.ts");
      const argument = new Argument("<shell>", "The shell").choices(SHELLS);
      command.addArgument(argument).action(async (shell: (typeof SHELLS)[number]) => {
        const whole = await buildProgram(invocation, outcome, "all");
        invocation.stdout.write(completionScript(whole, shell));
      });
    },
  },
];

/** The names of all top-level commands. */
export const COMMAND_NAMES: readonly string[] = COMMANDS.map((command) => command.name);

/** Every first word that names a command. */
const COMMAND_WORDS: ReadonlySet<string> = new Set([
  ...COMMANDS.flatMap(({ name, alias }) => (alias === undefined ? [name] : [name, alias])),
  "help",
]);

/** Commands to which signals mean something; the others are ended by them. */
const TAKES_SIGNALS: ReadonlySet<string> = new Set(["serve", "run"]);

/** Runs one command line (without node and script); resolves to the exit code. */
export async function runCommandLine(args: readonly string[], invocation: Invocation): Promise<number> {
  const outcome: Outcome = { exitCode: EXIT.ok };
  const explained = explainedWords(args);
  const words = explained ?? withDefaultCommand(args);
  const name = words[commandIndex(words)] ?? "";
  if (!TAKES_SIGNALS.has(name)) await releaseSignals(invocation.heldSignals);
  try {
    const program = await buildProgram(invocation, outcome, name);
    // With the flag, commander would print the help of the last known command instead of an error.
    const path = explained && pathOfCommand(program, explained);
    await program.parseAsync(path === undefined ? withoutVainHelp(program, words) : [...path, "--help"], {
      from: "user",
    });
    return outcome.exitCode;
  } catch (error) {
    return failureCode(await forPeople(error), invocation);
  }
}

/** The command tree. Only the named command is complete; `"all"` completes every one. */
export async function buildProgram(
  invocation: Invocation,
  outcome: Outcome,
  complete: string | undefined,
): Promise<Command> {
  const program = new Command("weir")
    .description("Weir captures, shows and exports the HTTP traffic that passes through it.")
    .version(invocation.version, "-V, --version", "Print the version")
    .helpOption("-h, --help", "Show help")
    .helpCommand("help [command...]", "Show help for a command")
    .enablePositionalOptions()
    .showSuggestionAfterError()
    .exitOverride()
    .configureOutput({
      writeOut: (text) => invocation.stdout.write(text),
      writeErr: (text) => invocation.stderr.write(text),
      outputError: (text, write) => write(text.replace(/^error:/, invocation.stderr.style("red", "weir:"))),
      getOutHelpWidth: () => helpWidth(invocation.stdout.columns),
      getErrHelpWidth: () => helpWidth(invocation.stderr.columns),
    });
  for (const option of globalOptions()) program.addOption(option);
  program.addHelpText("after", TOP_HELP);
  for (const { name, alias, summary, hasExamples, fill } of COMMANDS) {
    const command = program.command(name).summary(summary).description(summary);
    if (alias !== undefined) command.alias(alias);
    const words: readonly (string | undefined)[] = ["all", name, alias ?? name];
    if (!words.includes(complete)) continue;
    await fill(command, invocation, outcome);
    if (hasExamples !== true) (await import("./examples.ts")).addExamples(command, name);
  }
  refuseEmptyPaths(program);
  pointToHelp(program, "weir");
  return program;
}

/** Errors about unknown commands and options point to the help. */
function pointToHelp(command: Command, path: string): void {
  command.showHelpAfterError(`See ${path} --help.`);
  for (const below of command.commands) pointToHelp(below, `${path} ${below.name()}`);
}

const TOP_HELP = `
Examples:
  weir                                  start with the current configuration
  weir run -- npm test                  capture what one program sends
  weir traffic list -q "status:5xx"     list captured traffic
  weir export har -o traffic.har        export captured traffic
  weir doctor                           diagnose problems

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 address in use, 4 cannot start, 5 condition of --fail-on met.
`;

function helpWidth(columns: number): number {
  return Number.isFinite(columns) ? Math.min(columns, 120) : 100;
}

const VALUE_OPTIONS = new Set(["--api-url", "--timeout"]);

/** Where the first word is that is a command; values of the options before it are no commands. */
function commandIndex(words: readonly string[]): number {
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? "";
    if (VALUE_OPTIONS.has(word)) at++;
    else if (!word.startsWith("-")) return at;
  }
  return -1;
}

/**
 * The command of `weir help traffic list`, `traffic list`, since commander only considers the first word; undefined if
 * the words do not request the help of a command.
 */
function explainedWords(words: readonly string[]): readonly string[] | undefined {
  const at = commandIndex(words);
  const named = words[at] === "help" ? words.slice(at + 1) : [];
  return named.length === 0 ? undefined : [...words.slice(0, at), ...named];
}

/**
 * The words as far as they lead to a command; undefined when one of them names none. What stands behind a command that has
 * no others below it are its arguments, and `run` would start the program that they name.
 */
function pathOfCommand(program: Command, words: readonly string[]): readonly string[] | undefined {
  let command = program;
  let end = 0;
  while (command.commands.length > 0) {
    const at = commandIndex(words.slice(end));
    if (at === -1) return words;
    const word = words[end + at] ?? "";
    const found = command.commands.find((each) => each.name() === word || each.aliases().includes(word));
    if (found === undefined) return undefined;
    command = found;
    end += at + 1;
  }
  return words.slice(0, end);
}

/** Removes help flags after an unknown command, so that commander reports it. */
function withoutVainHelp(program: Command, words: readonly string[]): readonly string[] {
  const isVain = words.some(isHelpFlag) && pathOfCommand(program, words) === undefined;
  return isVain ? words.filter((word) => !isHelpFlag(word)) : words;
}

function isHelpFlag(word: string): boolean {
  return word === "--help" || word === "-h";
}

/** Names of arguments whose values are paths or program names. */
const PATH_ARGUMENTS: ReadonlyMap<string, string> = new Map([
  ["file", "file"],
  ["files", "file"],
  ["certificate", "file"],
  ["key", "file"],
  ["command", "program"],
]);

/** An empty path, as of a variable that is not set, must not be taken for the default or for the current directory. */
function refuseEmptyPaths(command: Command): void {
  for (const option of command.options) {
    const what = /<(path|file|directory)>$/.exec(option.flags)?.[1];
    if (what !== undefined && option.parseArg === undefined) option.argParser((value) => nonEmpty(value, what));
  }
  for (const argument of command.registeredArguments) {
    const what = PATH_ARGUMENTS.get(argument.name());
    if (what === undefined) continue;
    if (argument.variadic) {
      argument.argParser((value, all: readonly string[] | undefined) => [...(all ?? []), nonEmpty(value, what)]);
    } else {
      argument.argParser((value) => nonEmpty(value, what));
    }
  }
  for (const inner of command.commands) refuseEmptyPaths(inner);
}

function nonEmpty(value: string, what: string): string {
  if (value === "") throw new InvalidArgumentError(`It must name a ${what}.`);
  return value;
}

/** `weir` and `weir --proxy-port 9000` mean `weir serve …`. */
function withDefaultCommand(args: readonly string[]): readonly string[] {
  const [first] = args;
  if (first === undefined) return ["serve"];
  if (!first.startsWith("-") || ["-h", "--help", "-V", "--version"].includes(first)) return args;
  const known = args[commandIndex(args)];
  const isGlobal = ["--api-url", "--timeout", "--json"].some((name) => first === name || first.startsWith(`${name}=`));
  if (isGlobal && known !== undefined && COMMAND_WORDS.has(known)) return args;
  return ["serve", ...args];
}

/** A refusal of the service as the sentence it is; the class is loaded only by commands that call the service. */
async function forPeople(error: unknown): Promise<unknown> {
  if (!(error instanceof Error) || error.name !== "ApiFailure") return error;
  const { apiFailureText } = await import("./api-connection.ts");
  return new CommandFailure(EXIT.failure, apiFailureText(error as ApiFailure), { cause: error });
}

/** Prints an error on standard error, once, and returns the exit code. */
function failureCode(error: unknown, invocation: Invocation): number {
  if (error instanceof CommanderError) {
    // Commander has written its message already; asking for help or the version is no failure.
    return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
  }
  const { stderr } = invocation;
  if (error instanceof CommandFailure) {
    if (error.message !== "") stderr.write(`${stderr.style("red", "weir:")} ${error.message}\n`);
    return error.exitCode;
  }
  stderr.write(
    `${stderr.style("red", "weir:")} ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`,
  );
  return EXIT.failure;
}

/** A top-level command whose subcommands are operations of the API. Kept apart so that help needs no schema. */
interface CommandGroup {
  readonly slice: string;
  /** A shorter name that does the same. */
  readonly alias?: string;
  readonly summary: string;
}
