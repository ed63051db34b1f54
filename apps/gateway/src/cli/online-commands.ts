import type { Command } from "commander";
import type { Online, OnlineOptions } from "./admin-client.ts";
import { adminOptions, examples, EXIT, type Invocation } from "./invocation.ts";
import type { ApplyOptions } from "./online.ts";

type Ended = (code: number) => void;
type Run<O extends OnlineOptions> = (online: Online, options: O) => Promise<number>;

/** Adds the commands for a running gateway. */
export function addOnlineCommands(program: Command, invocation: Invocation, ended: Ended): void {
  const act = async <O extends OnlineOptions>(options: O, run: Run<O>): Promise<void> => {
    ended(await online(options, invocation, run));
  };
  addStatus(program, act);
  addQuota(program, act);
  addConfig(program, act);
  addEvents(program, act);
}

type Act = <O extends OnlineOptions>(options: O, run: Run<O>) => Promise<void>;

/** The module with all actions, loaded on use. */
const load = async () => await import("./online.ts");

function withAdminOptions(command: Command): Command {
  return adminOptions(command).option("--json", "print the response as JSON");
}

function addStatus(program: Command, act: Act): void {
  withAdminOptions(program.command("status"))
    .description("Show the state of a running gateway and its upstreams")
    .addHelpText("after", examples("sluice status", "sluice status --json | jq .upstreams"))
    .action(async (options: OnlineOptions) => {
      await act(options, async (given) => await (await load()).status(given));
    });
}

function addQuota(program: Command, act: Act): void {
  const quota = withAdminOptions(program.command("quota"))
    .description("Show quota usage of consumers")
    .argument("[consumer]", "name of the consumer (default: all)")
    .addHelpText(
      "after",
      examples("sluice quota", "sluice quota acme", "sluice quota adjust acme daily -100 --reason refund"),
    )
    .action(async (consumer: string | undefined, options: OnlineOptions) => {
      await act(options, async (given) => await (await load()).quota(consumer, given));
    });
  withAdminOptions(quota.command("adjust"))
    .description("Correct a consumer's usage in the current window: a negative number returns requests")
    .argument("<consumer>")
    .argument("<budget>", "daily or monthly")
    .argument("<delta>", "requests to add to the count, such as -100")
    .requiredOption("--reason <text>", "reason for the audit log")
    .allowUnknownOption(false)
    .addHelpText("after", examples("sluice quota adjust acme daily -100 --reason 'ticket 4711'"))
    .action(async (consumer: string, budget: string, delta: string, options: OnlineOptions & { reason: string }) => {
      await act({ ...quota.opts<OnlineOptions>(), ...options }, async (given, { reason }) => {
        return await (await load()).adjust({ consumer, budget, delta, reason }, given);
      });
    });
}

const OVERWRITE = ["--overwrite", "also overwrite unpublished edits in the gateway's file"] as const;

function addConfig(program: Command, act: Act): void {
  const config = program
    .command("config")
    .description("Read and change the configuration of a running gateway")
    .addHelpText(
      "after",
      examples("sluice config get", "sluice config apply next.yaml --dry-run", "sluice config rollback 3"),
    );
  withAdminOptions(config.command("get"))
    .description("Print the running configuration, inline secrets redacted; YAML, or JSON with --json")
    .option("--generation <number>", "an earlier generation")
    .addHelpText("after", examples("sluice config get", "sluice config get --generation 3 --json"))
    .action(async (options: OnlineOptions & { generation?: string }) => {
      await act(options, async (given, { generation }) => await (await load()).get(generation, given));
    });
  withAdminOptions(config.command("apply"))
    .description("Publish a configuration; nothing changes if it has errors")
    .argument("<file>", "configuration, YAML or JSON; - for standard input")
    .option("--dry-run", "show changes without applying them")
    .option("--if-match <hash>", "refuse unless the running configuration has this hash")
    .option(...OVERWRITE)
    .addHelpText("after", examples("sluice config apply next.yaml --dry-run", "sluice config apply next.yaml"))
    .action(async (file: string, options: OnlineOptions & ApplyOptions) => {
      await act(options, async (given, chosen) => await (await load()).apply(file, chosen, given));
    });
  withAdminOptions(config.command("rollback"))
    .description("Publish an earlier configuration again")
    .argument("<generation>", "number from sluice config history")
    .option(...OVERWRITE)
    .addHelpText("after", examples("sluice config rollback 3"))
    .action(async (generation: string, options: OnlineOptions & ApplyOptions) => {
      await act(options, async (given, chosen) => await (await load()).rollback(generation, chosen, given));
    });
  withAdminOptions(config.command("history"))
    .description("List published configurations, newest first")
    .addHelpText("after", examples("sluice config history"))
    .action(async (options: OnlineOptions) => {
      await act(options, async (given) => await (await load()).history(given));
    });
}

function addEvents(program: Command, act: Act): void {
  withAdminOptions(program.command("events"))
    .description("Print the latest events, oldest first; with --json one JSON object per line")
    .option("-f, --follow", "continue with new events")
    .option("-n, --limit <number>", "number of past events", "20")
    .addHelpText("after", examples("sluice events", "sluice events --follow", "sluice events -f --json | jq .kind"))
    .action(async (options: OnlineOptions & { follow?: boolean; limit: string }) => {
      await act(options, async (given, chosen) => await (await load()).events(chosen, given));
    });
}

async function online<O extends OnlineOptions>(options: O, invocation: Invocation, run: Run<O>): Promise<number> {
  const { AdminClient, AdminCallError } = await import("./admin-client.ts");
  try {
    const client = new AdminClient(options, invocation.environment);
    return await run({ client, invocation, isJson: options.json === true }, options);
  } catch (error) {
    if (!(error instanceof AdminCallError)) throw error;
    invocation.stderr.write(`sluice: ${error.message}\n`);
    return EXIT.failure;
  }
}
