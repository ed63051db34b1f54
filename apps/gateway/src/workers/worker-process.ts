// The program of a worker process; `WorkerHandle` starts it.
import { leaveSignalsToParent } from "@headworks/process-signals";
import { ProcessLink, type Batch, type Handlers } from "./process-link.ts";
import type { ControlCalls, ListenerAddress, WorkerCalls, WorkerSetup } from "./worker-calls.ts";
import type { DataPlane } from "./data-plane.ts";

// A terminal or a service manager signals every process of the group; the control process decides how to act on it.
// When the control process is gone, the link closes and this process ends. All other modules are loaded after this
// line.
leaveSignalsToParent();

let plane: Promise<DataPlane> | undefined;

async function started(): Promise<DataPlane> {
  if (plane === undefined) throw new Error("The worker was not started");
  return await plane;
}

async function start(setup: WorkerSetup): Promise<readonly ListenerAddress[]> {
  plane = openPlane(setup);
  return (await plane).addresses;
}

async function openPlane(setup: WorkerSetup): Promise<DataPlane> {
  const [{ DataPlane: Plane }, { openProcessLog }, { systemClock }] = await Promise.all([
    import("./data-plane.ts"),
    import("#process-log.ts"),
    import("#clock.ts"),
  ]);
  const log = openProcessLog(setup.logLevel).child({ worker: setup.worker });
  return await Plane.start(setup, { link, log, clock: systemClock });
}

const handlers: Handlers<WorkerCalls> = {
  start,
  prepare: async (candidate) => await (await started()).prepare(candidate),
  publish: async (generation) => await (await started()).publish(generation),
  discard: async () => (await started()).discard(),
  metrics: async () => await (await started()).metricsText(),
  states: async () => (await started()).states(),
  traffic: async () => (await started()).traffic(),
  force: async (forced) => (await started()).force(forced),
  issued: async (credentials) => await (await started()).adoptIssued(credentials),
  tickets: async (secret) => (await started()).adoptTickets(secret),
  purge: async ({ route }) => (await started()).purge(route),
  withdraw: async () => (await started()).withdraw(),
  stop: async ({ graceMs }) => await (await started()).stop(graceMs),
};

const link = new ProcessLink<ControlCalls, WorkerCalls>((batch) => {
  if (process.connected) process.send?.(batch, undefined, undefined, () => undefined);
}, handlers);

process.on("message", (batch: Batch) => link.receive(batch));
