import { join } from "node:path";
import type { MirrorChange, MirrorStatus, Settings, mirrorOperations } from "@headworks/capture-contract";
import type { Handlers } from "@headworks/contract-kit";
import { compileHostPatterns, type HostMatcher } from "@headworks/host-patterns";
import { fieldValues } from "@headworks/http1";
import { changeSettings } from "#api/api-error.ts";
import type { BodyCapture } from "#exchange/body.ts";
import { exchangeUrl, type ExchangeView, type Scheme } from "#exchange/exchange.ts";
import type { Observer } from "#exchange/phases.ts";
import { fieldPairs, joinedFields } from "#exchange/shown-message.ts";
import type { Slice, SliceHost } from "#slice.ts";
import type { BodyHead } from "./mirror-messages.ts";
import { type GivenBody, MirrorQueue } from "./mirror-queue.ts";

/** Time limit for writing queued files at shutdown. */
const DRAIN_MS = 5000;

/** Writes response bodies to files for other tools. */
export function createMirrorSlice(host: SliceHost): Slice<typeof mirrorOperations> {
  const { settings, store, log, clock, events } = host;
  const defaultDir = join(host.dataDir, "mirror");
  const onChange = (): void => events.changed("mirror");
  const queue = new MirrorQueue({
    store,
    log,
    nowMs: () => clock.now(),
    monotonicMs: () => clock.monotonic(),
    after: (delayMs, callback) => clock.after(delayMs, callback),
    onTurn: onChange,
  });
  let refused: string | undefined;
  /** Undefined while the mirror is off or its directory is refused, which the status reports. */
  const policyOf = (running: Settings): MirrorPolicy | undefined => {
    const policy = compileMirrorPolicy(running.mirror, defaultDir);
    const problem = policy === undefined ? undefined : settings.outputProblem(policy.outputDir);
    if (problem !== undefined && problem !== refused) queue.drop(`The output directory ${problem}`, 0);
    refused = problem;
    return problem === undefined ? policy : undefined;
  };
  const observer = new MirrorObserver(queue, policyOf(settings.running));
  let known = JSON.stringify(settings.configured.mirror);
  settings.onChange((running) => {
    observer.policy = policyOf(running);
    if (observer.policy === undefined) queue.rest();
    const changed = JSON.stringify(settings.configured.mirror);
    if (changed === known) return;
    known = changed;
    onChange();
  });
  return {
    name: "mirror",
    operations: createMirrorOperations({ settings, queue, defaultDir, onChange: () => events.changed("config") }),
    observer,
    task: { start: () => undefined, stopped: async () => await queue.close(DRAIN_MS) },
  };
}

interface MirrorParts {
  readonly settings: SliceHost["settings"];
  readonly queue: Pick<MirrorQueue, "status">;
  readonly defaultDir: string;
  readonly onChange: () => void;
}

function createMirrorOperations(parts: MirrorParts): Handlers<typeof mirrorOperations> {
  const { settings, defaultDir, onChange } = parts;
  const change = (fields: MirrorChange): void => {
    const before = settings.configured.mirror;
    changeSettings("mirror/", () => settings.patch({ mirror: fields }));
    if (settings.configured.mirror !== before) onChange();
  };
  return {
    getMirror: () => ({ status: 200, body: mirrorStatus(parts) }),
    toggleMirror: ({ body }) => {
      const enabled = body?.enabled ?? !settings.running.mirror.enabled;
      change({ enabled });
      return { status: 200, body: { enabled, message: enabled ? "Mirroring enabled" : "Mirroring disabled" } };
    },
    updateMirror: ({ body }) => {
      const { enabled, output_dir: outputDir, host_filter: hostFilter, save_request_bodies: savesRequests } = body;
      change({
        ...(enabled !== undefined && { enabled }),
        // Sending back the status changes nothing: the default directory moves with the data directory.
        ...(outputDir !== undefined && { output_dir: outputDir === defaultDir ? null : outputDir }),
        ...(hostFilter !== undefined && { host_filter: hostFilter }),
        ...(savesRequests !== undefined && { save_request_bodies: savesRequests }),
      });
      return { status: 200, body: mirrorStatus(parts) };
    },
  };
}

function mirrorStatus({ settings, queue, defaultDir }: MirrorParts): MirrorStatus {
  const { enabled, output_dir: outputDir, host_filter: hostFilter, save_request_bodies } = settings.running.mirror;
  return {
    enabled,
    output_dir: outputDir ?? defaultDir,
    host_filter: hostFilter === null ? null : [...hostFilter],
    save_request_bodies,
    ...queue.status(),
  };
}

/** Compiled mirror settings. */
interface MirrorPolicy {
  readonly outputDir: string;
  /** Undefined for all hosts. */
  readonly hosts: HostMatcher | undefined;
  readonly savesRequests: boolean;
}

/** Undefined while the mirror is off. */
function compileMirrorPolicy(settings: Settings["mirror"], defaultDir: string): MirrorPolicy | undefined {
  if (!settings.enabled) return undefined;
  const filter = settings.host_filter;
  return {
    outputDir: settings.output_dir ?? defaultDir,
    hosts: filter === null || filter.length === 0 ? undefined : compileHostPatterns(filter, "focus"),
    savesRequests: settings.save_request_bodies,
  };
}

/** Queues the bodies of finished exchanges. */
class MirrorObserver implements Observer {
  readonly name = "mirror";
  policy: MirrorPolicy | undefined;
  readonly #queue: Pick<MirrorQueue, "offer" | "drop">;

  constructor(queue: Pick<MirrorQueue, "offer" | "drop">, policy: MirrorPolicy | undefined) {
    this.#queue = queue;
    this.policy = policy;
  }

  onFinished(exchange: ExchangeView): void {
    const { policy } = this;
    if (policy === undefined || !exchange.isRecorded || exchange.passthrough) return;
    const { request, response, requestBody, responseBody } = exchange;
    if (response === undefined || policy.hosts?.matches(request.host) === false) return;
    const hasRequest = policy.savesRequests && requestBody.sizeBytes > 0;
    if (responseBody.sizeBytes === 0 && !hasRequest) return;
    const isLost = responseBody.state === "not_stored" || (hasRequest && requestBody.state === "not_stored");
    if (isLost) return this.#queue.drop("The body was not captured: bodies are not recorded, or storage fell behind");
    const isBroken = exchange.state.step === "failed";
    const givenBody = responseBody.sizeBytes > 0 ? given(responseBody) : undefined;
    const question = hasRequest ? given(requestBody) : undefined;
    this.#queue.offer({
      entryId: exchange.id,
      bodies: {
        ...(givenBody !== undefined && { response: givenBody }),
        ...(question !== undefined && { request: question }),
      },
      job: {
        outputDir: policy.outputDir,
        host: request.host,
        port: OWN_PORTS[request.scheme] === request.port ? undefined : request.port,
        path: request.path,
        response: givenBody === undefined ? undefined : headOf(responseBody, response.fields, isBroken),
        request: question === undefined ? undefined : headOf(requestBody, request.fields, false),
        facts: factsOf(exchange, response),
      },
    });
  }
}

const OWN_PORTS: Readonly<Record<Scheme, number>> = { http: 80, ws: 80, https: 443, wss: 443, tcp: -1 };

/** A copy of a small body, since its pieces may retain large buffers. */
function given(body: BodyCapture): GivenBody {
  if (body.spooled !== undefined) return "stored";
  const bytes = new Uint8Array(body.pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of body.pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}

function headOf(body: BodyCapture, fields: readonly string[], isBroken: boolean): BodyHead {
  return {
    contentType: fieldValues(fields, "content-type")[0],
    contentEncoding: fieldValues(fields, "content-encoding"),
    sizeBytes: body.sizeBytes,
    storedBytes: body.storedBytes,
    isBroken,
  };
}

function factsOf(exchange: ExchangeView, response: NonNullable<ExchangeView["response"]>): Record<string, unknown> {
  const { request, moments, startedAtMs, id } = exchange;
  return {
    url: exchangeUrl(request),
    method: request.method,
    status_code: response.status,
    headers: joinedFields(response.fields),
    headers_list: fieldPairs(response.fields),
    timestamp: new Date(startedAtMs).toISOString(),
    duration_ms: moments.ended > 0 ? Math.round((moments.ended - moments.started) * 1000) / 1000 : null,
    entry_id: id,
  };
}
