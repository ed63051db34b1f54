import { tmpdir } from "node:os";
import type { EventKind, EventPayloads } from "@headworks/gateway-contract";
import { FakeClock } from "@headworks/testkit";
import { pino } from "pino";
import { type GenerationArchive, GenerationHistory, type GenerationParts, Generations } from "#config/generations.ts";
import type { CompiledRoute } from "#request/context.ts";

/** An event as it was emitted. */
export interface SeenEvent {
  readonly kind: EventKind;
  readonly payload: unknown;
}

/** Generations with everything around them watched: events, log lines, the clock. */
export function generationRig({
  archive,
  ...parts
}: Partial<GenerationParts> & { readonly archive?: GenerationArchive } = {}): {
  readonly generations: Generations;
  readonly history: GenerationHistory;
  readonly events: SeenEvent[];
  readonly lines: string[];
  readonly clock: FakeClock;
} {
  const events: SeenEvent[] = [];
  const lines: string[] = [];
  const clock = new FakeClock();
  const log = pino({ level: "trace" }, { write: (line: string) => lines.push(line) });
  const history = new GenerationHistory(archive, log);
  const generations = new Generations({
    slices: [],
    instance: "0123456789abcdef",
    checks: [],
    clock,
    environment: {},
    directory: tmpdir(),
    log,
    history,
    events: {
      emit: <K extends EventKind>(kind: K, payload: EventPayloads[K]) => events.push({ kind, payload }),
    },
    compileTable: (routes: readonly CompiledRoute[]) => ({
      resolve: (request) => {
        request.route = routes[0];
        return routes.length > 0;
      },
    }),
    compileActions: () => ({
      actionFor: () => ({ kind: "response", response: () => ({ status: 204, fields: [], body: "" }) }),
    }),
    ...parts,
  });
  return { generations, history, events, lines, clock };
}
