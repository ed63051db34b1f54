import type { Settings } from "@headworks/capture-contract";
import { compileHostPatterns } from "@headworks/host-patterns";
import type { HostMatcher } from "@headworks/host-patterns";
import { fieldValues } from "@headworks/http1";
import type { BodyCapture } from "#exchange/body.ts";
import { exchangeUrl } from "#exchange/exchange.ts";
import type { ExchangeView, Scheme } from "#exchange/exchange.ts";
import type { Observer } from "#exchange/phases.ts";
import { fieldPairs, joinedFields } from "#exchange/shown-message.ts";
import type { BodyHead } from "./mirror-messages.ts";
import type { GivenBody, MirrorQueue } from "./mirror-queue.ts";

/** Compiled mirror settings. */
export interface MirrorPolicy {
  readonly outputDir: string;
  /** Undefined for all hosts. */
  readonly hosts: HostMatcher | undefined;
  readonly savesRequests: boolean;
}

/** Undefined while the mirror is off. */
export function compileMirrorPolicy(settings: Settings["mirror"], defaultDir: string): MirrorPolicy | undefined {
  if (!settings.enabled) return undefined;
  const filter = settings.host_filter;
  return {
    outputDir: settings.output_dir ?? defaultDir,
    hosts: filter === null || filter.length === 0 ? undefined : compileHostPatterns(filter, "focus"),
    savesRequests: settings.save_request_bodies,
  };
}

/** Queues the bodies of finished exchanges. */
export class MirrorObserver implements Observer {
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
