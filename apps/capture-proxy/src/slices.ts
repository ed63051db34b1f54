import type { FeatureName, SliceName } from "@headworks/capture-contract";
import { probeInterception } from "#api/interception-probe.ts";
import type { Interceptor, Observer, StoreFilter } from "#exchange/phases.ts";
import type { ProbeRoute } from "#exchange/outgoing.ts";
import { createRuleBundles } from "#portable/rule-bundles.ts";
import type { OpenSessionProxy, PortableRules, SliceHost, SliceTask } from "./slice.ts";
import { createAutosaveSlice } from "./slices/autosave/autosave.slice.ts";
import { createBlocklistSlice } from "./slices/blocklist/blocklist.slice.ts";
import { createBreakpointsSlice } from "./slices/breakpoints/breakpoints.slice.ts";
import { createCaptureSlice } from "./slices/capture/capture.slice.ts";
import { createCertSlice } from "./slices/cert/cert.slice.ts";
import type { AuthorityStore, CertSlice } from "./slices/cert/cert.slice.ts";
import { createConfigSlice } from "./slices/config/config.slice.ts";
import { createExportSlice } from "./slices/export/export.slice.ts";
import { createFocusSlice } from "./slices/focus/focus.slice.ts";
import { createGrpcSlice } from "./slices/grpc/grpc.slice.ts";
import { createLogsSlice } from "./slices/logs/logs.slice.ts";
import { createMetricsSlice } from "./slices/metrics/metrics.slice.ts";
import { createMirrorSlice } from "./slices/mirror/mirror.slice.ts";
import { createMocksSlice } from "./slices/mocks/mocks.slice.ts";
import { createPersistenceSlice } from "./slices/persistence/persistence.slice.ts";
import { createRewritesSlice } from "./slices/rewrites/rewrites.slice.ts";
import { createReplaySlice } from "./slices/replay/replay.slice.ts";
import { createRunsSlice } from "./slices/runs/runs.slice.ts";
import { createScriptsSlice } from "./slices/scripts/scripts.slice.ts";
import { createSessionsSlice } from "./slices/sessions/sessions.slice.ts";
import { createStreamsSlice } from "./slices/streams/streams.slice.ts";
import { createThrottleSlice } from "./slices/throttle/throttle.slice.ts";
import { createTrafficSlice } from "./slices/traffic/traffic.slice.ts";
import { createUpstreamSlice } from "./slices/upstream/upstream.slice.ts";
import { createWsTrafficSlice } from "./slices/ws-traffic/ws-traffic.slice.ts";

export { AuthorityStoreError, openAuthorityStore } from "./slices/cert/cert.slice.ts";
export type { AuthorityStore } from "./slices/cert/cert.slice.ts";

/** A slice without its types, which are checked where the slice is created. */
interface AnySlice {
  readonly name: SliceName;
  readonly operations: object;
  readonly interceptor?: Interceptor;
  readonly observer?: Observer;
  readonly storeFilter?: StoreFilter;
  readonly task?: SliceTask;
  readonly portableRules?: PortableRules;
  /** Disabling this feature removes everything but the slice's name. */
  readonly switchedOffBy?: FeatureName;
}

const FEATURE_SLICES: Readonly<Record<FeatureName, readonly SliceName[]>> = {
  grpc: ["grpc"],
  scripting: ["scripts"],
};

export interface Slices {
  readonly all: readonly AnySlice[];
  readonly cert: CertSlice;
  /** The interceptors of the named slices in that order; an intercepting slice that is not named is a bug. */
  interceptors(order: readonly SliceName[]): Interceptor[];
  observers(order: readonly SliceName[]): Observer[];
}

export function createSlices(
  host: SliceHost,
  authority: AuthorityStore,
  { probeRoute, openSessionProxy }: { readonly probeRoute: ProbeRoute; readonly openSessionProxy: OpenSessionProxy },
): Slices {
  const cert = createCertSlice(host, { authority, probe: probeInterception });
  const bundles = createRuleBundles(host, () =>
    all.flatMap(({ portableRules }) => (portableRules === undefined ? [] : [portableRules])),
  );
  const all: readonly AnySlice[] = withoutDisabled(host.settings.running.disabled_features, [
    createTrafficSlice(host, () => storeFilter),
    createSessionsSlice(host),
    createRunsSlice(host, openSessionProxy),
    createExportSlice(host),
    cert,
    createConfigSlice(host, bundles),
    createCaptureSlice(host),
    createAutosaveSlice(host),
    createBlocklistSlice(host),
    createBreakpointsSlice(host),
    createFocusSlice(host),
    createReplaySlice(host),
    createRewritesSlice(host),
    createScriptsSlice(host),
    createStreamsSlice(host),
    createWsTrafficSlice(host),
    createThrottleSlice(host),
    createUpstreamSlice(host, probeRoute),
    createLogsSlice(host),
    createMetricsSlice(host),
    createPersistenceSlice(host, bundles),
    createMirrorSlice(host),
    createMocksSlice(host),
    createGrpcSlice(host),
  ]);
  const storeFilter = all.find((slice) => slice.storeFilter !== undefined)?.storeFilter;
  return {
    all,
    cert,
    interceptors: (order) => inOrder(order, all, (slice) => slice.interceptor, "pipeline-order.ts"),
    observers: (order) => inOrder(order, all, (slice) => slice.observer, "pipeline-order.ts"),
  };
}

/** Slices of disabled features take part in nothing; the API knows them to report that. */
function withoutDisabled(disabled: readonly FeatureName[], slices: readonly AnySlice[]): readonly AnySlice[] {
  return slices.map((slice) => {
    const feature = disabled.find((each) => FEATURE_SLICES[each].includes(slice.name));
    return feature === undefined ? slice : { name: slice.name, operations: {}, switchedOffBy: feature };
  });
}

function inOrder<T>(
  order: readonly SliceName[],
  slices: readonly AnySlice[],
  part: (slice: AnySlice) => T | undefined,
  where: string,
): T[] {
  const missing = slices.find((slice) => part(slice) !== undefined && !order.includes(slice.name));
  if (missing) throw new TypeError(`The slice ${missing.name} has no place in ${where}`);
  return order.flatMap((name) => {
    const found = slices.find((slice) => slice.name === name);
    const taken = found && part(found);
    return taken === undefined ? [] : [taken];
  });
}
