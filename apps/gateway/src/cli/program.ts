// Tested by ../../test/cli-serve.test.ts
import { Command, CommanderError } from "commander";
import { EXIT, type Invocation } from "./invocation.ts";
import { serve, type ServeOptions } from "./serve.ts";

/** Runs one command line; resolves to the exit code. */
export async function runCommandLine(args: readonly string[], invocation: Invocation): Promise<number> {
  let code: number = EXIT.ok;
  const program = new Command("sluice")
    .description("Sluice, the API gateway of Headworks")
    .exitOverride()
    .showSuggestionAfterError()
    .configureOutput({
      writeOut: (text) => void invocation.stdout.write(text),
      writeErr: (text) => void invocation.stderr.write(text),
    });
  program
    .command("serve")
    .description("Run the gateway until it is asked to stop; SIGHUP reads the configuration again")
    .option("-c, --config <file>", "configuration, YAML or JSON (environment: GATEWAY_CONFIG; ./gateway.yaml)")
    .option("--json", "say the addresses as one JSON line on standard error")
    .addHelpText("after", "\nExamples:\n  sluice serve\n  GATEWAY_STATE_DB=state.db sluice serve -c gateway.yaml\n")
    .action(async (options: ServeOptions) => {
      code = await serve(options, invocation);
    });
  try {
    await program.parseAsync([...args], { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return error.exitCode === 0 ? EXIT.ok : EXIT.warnings;
  }
  return code;
}
