import { Readable } from "node:stream";
import { pino } from "pino";
import { runCommandLine } from "#cli/program.ts";

/** What a command line did. */
export interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Runs a command line in this process. */
export async function sluice(
  args: readonly string[],
  environment: Readonly<Record<string, string | undefined>> = {},
  { isTTY = false, stdin = "" } = {},
): Promise<Ran> {
  let [out, err] = ["", ""];
  const code = await runCommandLine(args, {
    version: "9.9.9",
    environment,
    stdin: Readable.from([Buffer.from(stdin)]),
    stdout: { isTTY, write: (text) => (out += text) },
    stderr: { isTTY, write: (text) => (err += text) },
    createLogger: async () => await Promise.resolve(pino({ enabled: false })),
    heldSignals: () => [],
    exitNow: () => undefined,
  });
  return { code, out, err };
}
