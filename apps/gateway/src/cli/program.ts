import { Command, CommanderError, InvalidArgumentError, Option } from "commander";
import { releaseSignals } from "@headworks/process-signals";
import type { CheckParts } from "#config/check-document.ts";
import { addDocumentCommands } from "./document-commands.ts";
import { examples, EXIT, type Invocation } from "./invocation.ts";
import { addOnlineCommands } from "./online-commands.ts";
import type { ServeOptions } from "./serve.ts";

const MAX_WORKERS = 256;

/** Placeholders of options and arguments that are file names. */
const FILES: ReadonlySet<string> = new Set(["file", "old", "new"]);

/** Runs a command line; resolves to the exit code. Command modules are loaded on use. */
export async function runCommandLine(args: readonly string[], invocation: Invocation): Promise<number> {
  let code: number = EXIT.ok;
  const ended = (exitCode: number): void => void (code = exitCode);
  const program = new Command("sluice")
    .description("Sluice, the API gateway of Headworks")
    .version(invocation.version, "-v, --version", "print the version")
    // Same as in Weir; hidden from the help.
    .addOption(new Option("-V").hideHelp())
    .on("option:V", () => {
      invocation.stdout.write(`${invocation.version}\n`);
      throw new CommanderError(EXIT.ok, "commander.version", invocation.version);
    })
    .helpCommand("help [command...]", "display help for command")
    .exitOverride()
    .showSuggestionAfterError()
    .showHelpAfterError("See sluice --help.")
    .configureOutput({
      writeOut: (text) => void invocation.stdout.write(text),
      writeErr: (text) => void invocation.stderr.write(text),
      outputError: (text, write) => write(text.replace(/^error:/, "sluice:")),
      getOutHasColors: () => false,
      getErrHasColors: () => false,
    })
    .addHelpText(
      "after",
      examples("sluice serve -c gateway.yaml", "sluice validate gateway.yaml", "sluice status", "sluice quota acme"),
    );
  program.hook("preAction", async (_program, action) => {
    // Only `serve` handles signals; others are terminated by them.
    if (action.name() !== "serve") await releaseSignals(invocation.heldSignals);
  });
  addServe(program, invocation, ended);
  addDocumentCommands(program, {
    streams: invocation,
    parts: async () => await checkParts(invocation),
    explainRoute: async () => (await import("#document-checks.ts")).explainRoute,
    ended,
  });
  addOnlineCommands(program, invocation, ended);
  addCerts(program, invocation, ended);
  refuseEmptyPaths(program);
  try {
    await program.parseAsync(withHelpOf(program, args), { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    // Without a command the help is printed, with an error code.
    return error.exitCode === 0 ? EXIT.ok : EXIT.warnings;
  }
  return code;
}

/** Arguments adapted for commander, which looks at one word after `help` only. */
function withHelpOf(program: Command, words: readonly string[]): readonly string[] {
  let command = program;
  const path: string[] = [];
  let isHelp = false;
  for (const word of words) {
    if (command.commands.length === 0 || word.startsWith("-")) break;
    if (word === "help") {
      isHelp = true;
      continue;
    }
    const found = command.commands.find((each) => each.name() === word);
    if (found === undefined) {
      // `quota` has both subcommands and an argument.
      if (command.registeredArguments.length > 0) break;
      return [...path, word];
    }
    command = found;
    path.push(word);
  }
  return isHelp ? [...path, "--help"] : words;
}

function addServe(program: Command, invocation: Invocation, ended: (code: number) => void): void {
  program
    .command("serve")
    .description("Run the gateway; SIGHUP reloads the configuration")
    .option("-c, --config <file>", "configuration, YAML or JSON (environment: GATEWAY_CONFIG; ./gateway.yaml)")
    .addOption(
      new Option("-w, --workers <count>", "number of worker processes; 1 runs in this process")
        .env("GATEWAY_WORKERS")
        .argParser(workerCount)
        .default(1),
    )
    .option("--json", "print the addresses as one JSON line on standard error")
    .addHelpText(
      "after",
      examples("sluice serve", "sluice serve --workers 4", "GATEWAY_STATE_DB=state.db sluice serve -c gateway.yaml"),
    )
    .action(async (options: ServeOptions) => {
      const { serve } = await import("./serve.ts");
      ended(await serve(options, invocation));
    });
}

function addCerts(program: Command, invocation: Invocation, ended: (code: number) => void): void {
  program
    .command("certs")
    .description("Create certificates for a local admin API: a CA, a server, an operator")
    .argument("<directory>", "output directory; created if missing")
    .option("--name <name>", "name of the operator", "operator")
    .addHelpText("after", examples("sluice certs ./admin-certs", "sluice certs ./admin-certs --name ada"))
    .action(async (directory: string, options: { name: string }) => {
      const { certs } = await import("./certs.ts");
      ended(await certs(directory, options, invocation));
    });
}

/** Creates the checks of all parts of the gateway without starting any. */
async function checkParts({ environment, createLogger }: Invocation): Promise<CheckParts> {
  const [{ createSlices }, { documentChecks }, { systemClock }] = await Promise.all([
    import("#slices.ts"),
    import("#document-checks.ts"),
    import("#clock.ts"),
  ]);
  const log = await createLogger("silent");
  const slices = createSlices({ log, clock: systemClock, store: undefined, environment });
  return { checks: documentChecks(slices.all), clock: systemClock, environment };
}

/** An empty path, as from an unset variable, must not select the default. */
function refuseEmptyPaths(command: Command): void {
  for (const option of command.options) {
    if (FILES.has(/<(\w+)>$/.exec(option.flags)?.[1] ?? "")) option.argParser(named);
  }
  for (const argument of command.registeredArguments) {
    if (FILES.has(argument.name())) argument.argParser(named);
  }
  for (const inner of command.commands) refuseEmptyPaths(inner);
}

function named(value: string): string {
  if (value === "") throw new InvalidArgumentError("It must name a file.");
  return value;
}

/** Parses the number of worker processes; throws the option error if invalid. */
function workerCount(text: string): number {
  const workers = /^[0-9]{1,3}$/.test(text) ? Number(text) : 0;
  if (workers >= 1 && workers <= MAX_WORKERS) return workers;
  throw new InvalidArgumentError(`It must be a number of processes, 1 to ${MAX_WORKERS}.`);
}
