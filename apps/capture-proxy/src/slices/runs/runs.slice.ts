import type { Run, runsOperations } from "@headworks/capture-contract";
import type { Handlers } from "@headworks/contract-kit";
import { notFound } from "#api/api-error.ts";
import type { OpenSessionProxy, Slice, SliceHost } from "#slice.ts";
import { type Program, RunningPrograms } from "./running-programs.ts";

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
