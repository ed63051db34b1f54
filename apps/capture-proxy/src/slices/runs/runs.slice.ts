import { randomUUID } from "node:crypto";
import type { CaptureSession, Run, runsOperations } from "@headworks/capture-contract";
import type { Handlers } from "@headworks/contract-kit";
import { ApiError, notFound } from "#api/api-error.ts";
import type { ExchangeView } from "#exchange/exchange.ts";
import type { Observer } from "#exchange/phases.ts";
import type { OpenSessionProxy, SessionProxy, Slice, SliceHost, SliceTask } from "#slice.ts";

/** Runs: programs whose traffic is separated by a proxy and a session of their own. */
export function createRunsSlice(host: SliceHost, openProxy: OpenSessionProxy): Slice<typeof runsOperations> {
  const programs = new RunningPrograms(host, openProxy);
  return {
    name: "runs",
    operations: createRunsOperations(programs),
    observer: programs,
    task: programs,
  };
}

function createRunsOperations(programs: RunningPrograms): Handlers<typeof runsOperations> {
  const found = (id: string): Program => programs.find(id) ?? notFound("run", id);
  return {
    listRuns: () => {
      const all = programs.all().map(showRun).toReversed();
      return { status: 200, headers: { "x-total-count": String(all.length) }, body: all };
    },
    beginRun: async ({ body }) => ({ status: 200, body: showRun(await programs.begin(body?.name)) }),
    getRun: ({ params }) => ({ status: 200, body: showRun(found(params.id)) }),
    renewRun: ({ params }) => {
      const program = found(params.id);
      programs.renew(program);
      return { status: 200, body: showRun(program) };
    },
    endRun: async ({ params }) => {
      const program = found(params.id);
      await programs.end(program);
      return { status: 200, body: showRun(program) };
    },
  };
}

function showRun({ id, session, proxy, startedMs, endedMs, openExchanges }: Program): Run {
  return {
    id,
    session_id: session.id,
    session_name: session.name,
    proxy_url: proxy.url,
    started_at: new Date(startedMs).toISOString(),
    ended_at: endedMs === undefined ? null : new Date(endedMs).toISOString(),
    open_exchanges: openExchanges,
  };
}

/** Maximum number of open run proxies; each is a listener. */
export const MAX_RUNS = 64;
/** A run without a sign of life for this long is considered ended: its client was killed. */
const SILENCE_MS = 15 * 60_000;
/** The proxy of an ended run closes after this time without clients. */
const IDLE_MS = 30_000;
const SWEEP_MS = 5000;
/** Time for bytes already sent to arrive. */
const ARRIVAL_MS = 20;
/** Connections of exited programs are closed by then; remaining ones belong to programs that still run. */
const CLOSE_DELAY_MS = 300;
/** Maximum wait for exchanges in flight. */
const SETTLE_MS = 3000;

interface Program {
  readonly id: string;
  readonly session: CaptureSession;
  readonly number: number;
  readonly proxy: SessionProxy;
  readonly startedMs: number;
  endedMs: number | undefined;
  renewedMs: number;
  openExchanges: number;
}

/** Manages a proxy and a session per run. */
class RunningPrograms implements Observer, SliceTask {
  readonly name = "runs";
  readonly #host: Pick<SliceHost, "clock" | "events" | "log" | "store">;
  readonly #openProxy: OpenSessionProxy;
  readonly #byId = new Map<string, Program>();
  readonly #bySession = new Map<number, Program>();
  #opening = 0;

  constructor(host: Pick<SliceHost, "clock" | "events" | "log" | "store">, openProxy: OpenSessionProxy) {
    this.#host = host;
    this.#openProxy = openProxy;
  }

  all(): Program[] {
    return [...this.#byId.values()];
  }

  find(id: string): Program | undefined {
    return this.#byId.get(id);
  }

  /** Opens a proxy and a session. Throws 409 beyond {@link MAX_RUNS}. */
  async begin(name: string | undefined): Promise<Program> {
    const { clock, events, store } = this.#host;
    if (this.#byId.size + this.#opening >= MAX_RUNS) {
      throw new ApiError("CONFLICT", `${MAX_RUNS} runs are open already; end one first`);
    }
    this.#opening += 1;
    try {
      const startedMs = clock.now();
      const called = name ?? `run ${new Date(startedMs).toISOString().slice(0, 19).replace("T", " ")}`;
      const { session, number } = await store.openSession(called);
      const proxy = await this.#proxyOf(session, number);
      const renewedMs = clock.monotonic();
      const id = randomUUID();
      const program = { id, session, number, proxy, startedMs, endedMs: undefined, renewedMs, openExchanges: 0 };
      this.#byId.set(id, program);
      this.#bySession.set(number, program);
      events.changed("sessions");
      return program;
    } finally {
      this.#opening -= 1;
    }
  }

  async #proxyOf(session: CaptureSession, number: number): Promise<SessionProxy> {
    try {
      return await this.#openProxy(number);
    } catch (error) {
      await this.#host.store.deleteSession(session.id);
      throw error;
    }
  }

  renew(program: Program): void {
    program.renewedMs = this.#host.clock.monotonic();
  }

  /** Waits until the run's traffic is stored. The proxy stays open while clients use it. */
  async end(program: Program): Promise<void> {
    const { clock, events, store } = this.#host;
    program.endedMs ??= clock.now();
    await this.#settled(program);
    await store.flush();
    events.changed("sessions");
  }

  async #settled(program: Program): Promise<void> {
    const { clock } = this.#host;
    const startMs = clock.monotonic();
    for (;;) {
      await new Promise<void>((resolve) => void clock.after(ARRIVAL_MS, resolve));
      const waitedMs = clock.monotonic() - startMs;
      const mayBeOver = program.proxy.clientCount === 0 || waitedMs >= CLOSE_DELAY_MS;
      if ((mayBeOver && program.openExchanges === 0) || waitedMs >= SETTLE_MS) return;
    }
  }

  onStarted({ client }: ExchangeView): void {
    const program = client.session === undefined ? undefined : this.#bySession.get(client.session);
    if (program !== undefined) program.openExchanges += 1;
  }

  onFinished({ client }: ExchangeView): void {
    const program = client.session === undefined ? undefined : this.#bySession.get(client.session);
    // Exchanges that failed before their head was known were never announced.
    if (program !== undefined) program.openExchanges = Math.max(0, program.openExchanges - 1);
  }

  start(signal: AbortSignal): void {
    const stop = this.#host.clock.every(SWEEP_MS, () => this.#sweep());
    signal.addEventListener("abort", stop, { once: true });
  }

  #sweep(): void {
    const { clock, log } = this.#host;
    const nowMs = clock.monotonic();
    for (const program of this.#byId.values()) {
      const { endedMs, renewedMs, proxy } = program;
      if (proxy.clientCount > 0 || proxy.idleMs < IDLE_MS) continue;
      if (endedMs === undefined && nowMs - renewedMs < SILENCE_MS) continue;
      this.#close(program).catch((error: unknown) => log.error({ err: error }, "A run's proxy did not close"));
    }
  }

  async #close(program: Program): Promise<void> {
    const { events, store } = this.#host;
    this.#byId.delete(program.id);
    this.#bySession.delete(program.number);
    await program.proxy.close();
    await store.closeSession(program.number);
    events.changed("sessions");
  }
}
