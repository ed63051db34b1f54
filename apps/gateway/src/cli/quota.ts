import { parseExact } from "./admin-client.ts";
import { EXIT } from "./invocation.ts";
import type { Online } from "./online-commands.ts";
import { painter, tableText, type Cell } from "./table.ts";

type Count = number | bigint;

interface UsageRecord {
  readonly consumers: readonly {
    readonly consumer: string;
    readonly synced: boolean;
    readonly budgets: readonly {
      readonly budget: string;
      readonly limit: Count;
      readonly used: Count;
      readonly remaining: Count;
      readonly reset_epoch_s: number;
    }[];
  }[];
}

/** `sluice quota [consumer]`: prints budgets and what remains of them. */
export async function quota(consumer: string | undefined, online: Online): Promise<number> {
  const query = consumer === undefined ? "" : `?consumer=${encodeURIComponent(consumer)}`;
  const { text } = await online.client.call({ path: `/quotas/usage${query}` });
  show(text, online);
  return EXIT.ok;
}

/** The unparsed arguments. */
export interface Adjustment {
  readonly consumer: string;
  readonly budget: string;
  readonly delta: string;
  readonly reason: string;
}

/** `sluice quota adjust`: corrects a counter and prints the consumer's budgets. */
export async function adjust({ consumer, budget, delta, reason }: Adjustment, online: Online): Promise<number> {
  const { stderr } = online.invocation;
  if (!/^[+-]?[0-9]{1,16}$/.test(delta) || !Number.isSafeInteger(Number(delta))) {
    stderr.write(`sluice: ${JSON.stringify(delta)} is no number of requests\n`);
    return EXIT.warnings;
  }
  if (budget !== "daily" && budget !== "monthly") {
    stderr.write(`sluice: a budget is daily or monthly, not ${JSON.stringify(budget)}\n`);
    return EXIT.warnings;
  }
  const { text } = await online.client.call({
    method: "POST",
    path: "/quotas/adjust",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ consumer, budget, delta: Number(delta), reason }),
  });
  show(text, online);
  return EXIT.ok;
}

function show(text: string, { invocation, isJson }: Online): void {
  const { stdout, environment } = invocation;
  if (isJson) return void stdout.write(`${text}\n`);
  const { consumers } = parseExact(text) as UsageRecord;
  if (consumers.length === 0) return void stdout.write("No consumer has quotas\n");
  const rows = consumers.flatMap(({ consumer, synced, budgets }): readonly (readonly Cell[])[] =>
    synced
      ? budgets.map(({ budget, used, limit, remaining, reset_epoch_s }) => [
          consumer,
          budget,
          String(used),
          String(limit),
          { text: String(remaining), style: BigInt(remaining) === 0n ? "red" : undefined },
          `${new Date(reset_epoch_s * 1000).toISOString().slice(0, 16)}Z`,
        ])
      : [[consumer, { text: "not counted yet", style: "yellow" }, "", "", "", ""]],
  );
  const head = ["consumer", "budget", "used", "limit", "remaining", "resets"];
  stdout.write(tableText(head, rows, painter(stdout, environment), ["used", "limit", "remaining"]));
}
