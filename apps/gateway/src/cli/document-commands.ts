import { Option, type Command } from "commander";
import type { CheckParts } from "#config/check-document.ts";
import { adminOptions, examples } from "./invocation.ts";
import type { DiffOptions, FmtOptions, LintOptions, PlanOptions, Streams, ValidateOptions } from "./documents.ts";
import type { Explain, ExplainOptions } from "./explain.ts";

/**
 * `parts` is created only for commands that check, since building all checks is slow. Commands are loaded on use:
 * reading and checking documents is most of the program.
 */
interface DocumentCommandParts {
  readonly streams: Streams;
  readonly parts: () => CheckParts | Promise<CheckParts>;
  readonly explainRoute: () => Explain | Promise<Explain>;
  readonly ended: (exitCode: number) => void;
}

const FILE = "configuration, YAML or JSON; - for standard input";
const JSON_OPTION = ["--json", "print one JSON object"] as const;
const OFFLINE_OPTION = [
  "--offline",
  "report secrets and files missing on this machine as not checked, and check everything else",
] as const;

interface Checked {
  readonly offline?: boolean;
}

function partsFor(parts: CheckParts, { offline = false }: Checked): CheckParts {
  return { ...parts, isOffline: offline };
}

/** Adds the offline commands for configuration files. */
export function addDocumentCommands(program: Command, commandParts: DocumentCommandParts): void {
  addCheckingCommands(program, commandParts);
  addComparingCommands(program, commandParts);
  addExplainCommand(program, commandParts);
}

function addCheckingCommands(program: Command, { streams, parts, ended }: DocumentCommandParts): void {
  program
    .command("validate")
    .description("Check a configuration for errors; exit code 1 if there are any")
    .argument("<file>", FILE)
    .option(...JSON_OPTION)
    .option(...OFFLINE_OPTION)
    .action(async (file: string, options: ValidateOptions & Checked) => {
      const { validate } = await import("./documents.ts");
      ended(await validate(file, options, streams, partsFor(await parts(), options)));
    })
    .addHelpText(
      "after",
      examples("sluice validate gateway.yaml", "sluice validate --offline --json - < gateway.yaml"),
    );
  program
    .command("lint")
    .description("Report valid but probably unintended settings; exit code 2 if there are any")
    .argument("<file>", FILE)
    .option(...JSON_OPTION)
    .option(...OFFLINE_OPTION)
    .action(async (file: string, options: LintOptions & Checked) => {
      const { lint } = await import("./documents.ts");
      ended(await lint(file, options, streams, partsFor(await parts(), options)));
    })
    .addHelpText("after", examples("sluice lint gateway.yaml", "sluice lint --json gateway.yaml | jq .issues"));
  program
    .command("fmt")
    .description("Format a configuration in place; comments are kept")
    .argument("<file>", FILE)
    .option("--check", "only check; exit code 1 if it is not formatted")
    .action(async (file: string, options: FmtOptions) => {
      const { fmt } = await import("./documents.ts");
      ended(await fmt(file, options, streams));
    })
    .addHelpText(
      "after",
      examples("sluice fmt gateway.yaml", "sluice fmt --check gateway.yaml", "sluice fmt - < a > b"),
    );
  program
    .command("schema")
    .description("Print the JSON Schema of configurations, for editors")
    .action(async () => {
      const { schema } = await import("./documents.ts");
      ended(await schema(streams));
    })
    .addHelpText("after", examples("sluice schema > gateway.schema.json"));
}

function addComparingCommands(program: Command, { streams, parts, ended }: DocumentCommandParts): void {
  program
    .command("diff")
    .description("Show changes between two configurations: + added, - removed, ~ changed, > moved")
    .argument("<old>", FILE)
    .argument("<new>", FILE)
    .option(...JSON_OPTION)
    .action(async (old: string, young: string, options: DiffOptions) => {
      const { diff } = await import("./documents.ts");
      ended(await diff(old, young, options, streams));
    })
    .addHelpText("after", examples("sluice diff gateway.yaml next.yaml"));
  adminOptions(program.command("plan"))
    .description(
      "Show what publishing the second configuration instead of the first would change, and what is affected",
    )
    .argument("<old>", FILE)
    .argument("<new>", FILE)
    .option(...JSON_OPTION)
    .option(...OFFLINE_OPTION)
    .action(async (old: string, young: string, options: PlanOptions & Checked) => {
      const { plan } = await import("./documents.ts");
      ended(await plan(old, young, options, streams, partsFor(await parts(), options)));
    })
    .addHelpText(
      "after",
      examples(
        "sluice plan gateway.yaml next.yaml",
        "sluice plan gateway.yaml next.yaml --admin http://127.0.0.1:2019",
      ),
    );
}

function addExplainCommand(program: Command, { streams, parts, explainRoute, ended }: DocumentCommandParts): void {
  const collect = (line: string, lines: readonly string[] = []): readonly string[] => [...lines, line];
  program
    .command("explain")
    .description("Show which route matches a request, and why")
    .requiredOption("--path <path>", "path, optionally with a query")
    .option("-c, --config <file>", "configuration, YAML or JSON (environment: GATEWAY_CONFIG; ./gateway.yaml)")
    .option("--method <method>", "method of the request", "GET")
    .option("--host <host>", "host of the request")
    .option("--listener <name>", "listener of the request (default: the first)")
    .addOption(
      new Option("--scheme <scheme>", "scheme of the request (default: that of the listener)").choices([
        "http",
        "https",
      ]),
    )
    .option("--header <line>", 'header of the request, "Name: value"; repeatable', collect)
    .option(...JSON_OPTION)
    .option(...OFFLINE_OPTION)
    .action(async (options: ExplainOptions & Checked) => {
      const { explain } = await import("./explain.ts");
      ended(await explain(options, streams, partsFor(await parts(), options), await explainRoute()));
    })
    .addHelpText(
      "after",
      examples(
        "sluice explain --path /v1/users",
        'sluice explain -c gateway.yaml --path "/users?v=2" --host api.example.com --header "X-Beta: yes"',
      ),
    );
}
