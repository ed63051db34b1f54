import type { LoadCommand, LoadReply, LoadResult } from "./load.ts";
import type { LoadJob } from "./load-job.ts";
import type { OriginReady } from "./origin.ts";
import { join } from "node:path";
import { Companion } from "./pinning.ts";

/** Controls the load client's process. One command at a time. */
export class DrivenLoad {
  readonly #process = new Companion(join(import.meta.dirname, "load.ts"));

  /** Connects through the proxy and sends one request on each kept connection. */
  async open(job: LoadJob): Promise<void> {
    await this.#obeyed({ do: "open", job });
  }

  /** Sends requests until either limit is reached and all have responses. Rejects at the first wrong response. */
  async run(limits: { readonly milliseconds?: number; readonly requests?: number }): Promise<LoadResult> {
    const { milliseconds = 3_600_000, requests = Number.MAX_SAFE_INTEGER } = limits;
    return await this.#obeyed({ do: "run", milliseconds, requests });
  }

  async close(): Promise<void> {
    await this.#obeyed({ do: "close" });
  }

  stop(): void {
    this.#process.stop();
  }

  async #obeyed(command: LoadCommand): Promise<LoadResult> {
    const response = this.#process.message<LoadReply>();
    this.#process.send(command);
    const reply = await response;
    if ("problem" in reply) throw new Error(reply.problem);
    return reply.result;
  }
}

/** Starts the origin's process; it writes its CA to `caFile`. */
export async function startOriginProcess(caFile: string): Promise<OriginReady & { stop: () => void }> {
  const companion = new Companion(join(import.meta.dirname, "origin.ts"), [caFile]);
  const ready = await companion.message<OriginReady>();
  return { ...ready, stop: () => companion.stop() };
}
