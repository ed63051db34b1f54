import { parse } from "yaml";
import { type Json, jsonPatch, mergePatch, PatchError } from "@headworks/json";
import { GatewaySettings, type Issue, type PublishedConfig } from "@headworks/gateway-contract";
import type {
  GenerationHistory,
  Generations,
  PastGeneration,
  SubmitOptions,
  SubmitOutcome,
} from "#config/generations.ts";
import type { RouteExplanation } from "#routing/explain.ts";
import type { RecentTraffic } from "#slices/metrics/metrics.slice.ts";
import { AdminError, type HandlerCall } from "./bind-operation.ts";
import { affectedBy } from "./traffic-shares.ts";

/** JSON Merge Patch (RFC 7396). */
const MERGE_PATCH = "application/merge-patch+json";

/** JSON Patch (RFC 6902). */
const JSON_PATCH = "application/json-patch+json";
const isSetting = (name: string): boolean => Object.hasOwn(GatewaySettings.properties, name);

export interface ConfigParts {
  readonly generations: Generations;
  readonly history: GenerationHistory;
  readonly recent: () => RecentTraffic | Promise<RecentTraffic>;
  /** Writes the accepted text to the configuration file. */
  readonly persist: (text: string) => Promise<void>;
  /** The file's text; undefined if unreadable. */
  readonly written: () => Promise<string | undefined>;
  readonly documents: {
    toYaml(document: unknown): string;
    toJson(document: unknown, indent?: number): string;
    /** Edits the text of document `before` so that it becomes `after`. */
    patchedText(text: string, before: unknown, after: unknown): Promise<string>;
    /** True if a text parses to the document in normal form. */
    says(text: string, document: unknown): Promise<boolean>;
    /** A document without inline secrets, and a function that restores them where allowed. */
    masked(document: unknown): { readonly document: unknown; restored(made: unknown): unknown };
    redacted(document: unknown): unknown;
    hashText(hash: number): string;
    readonly schema: () => Readonly<Record<string, unknown>>;
  };
  readonly explain: (requested: {
    readonly method: string;
    readonly target: string;
    readonly host?: string;
    readonly listener?: string;
    readonly scheme?: "http" | "https";
    readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  }) => RouteExplanation;
  /** Budgets and usage of a consumer; throws `AdminError` without quotas. */
  readonly usage: (consumer: string) => Promise<object>;
}

const DEFAULT_LIMIT = 25;

/** Handlers of `/config` and below, and of `/explain`. */
export function configOperations(parts: ConfigParts) {
  const { generations, documents } = parts;
  const publish = async (call: HandlerCall, options: SubmitOptions, textOf: TextOf) =>
    await submit(parts, call, options, textOf);
  const patched: TextOf = async (_, call) => await (isPatch(call) ? patchedText(parts, call) : wholeText(parts, call));
  // A complete document in a plan replaces nothing.
  const planned: TextOf = async (_, call) => (isPatch(call) ? await patchedText(parts, call) : String(call.body));
  return {
    getConfig: ({ headers }: HandlerCall) => {
      const { current, input } = generations;
      if (current === undefined || input === undefined) throw new AdminError("generation_not_found");
      const { number: generation, contentHash } = current;
      return shownDocument(parts, headers["accept"], { generation, contentHash }, documents.redacted(input));
    },
    ...entityOperations(parts),
    patchConfig: async (call: HandlerCall) => await publish(call, dryRunOf(call), patched),
    putConfig: async (call: HandlerCall) => await publish(call, dryRunOf(call), wholeText),
    planConfig: async (call: HandlerCall) => await publish(call, { dryRun: true }, planned),
    validateConfig: async ({ body }: HandlerCall) => {
      const issues = await generations.check(String(body));
      return { status: 200, body: { valid: !issues.some(({ severity }) => severity === "error"), issues } };
    },
    ...historyOperations(parts),
    getConfigSchema: () => ({ status: 200, body: documents.toJson(documents.schema()) }),
    explain: async ({ body }: HandlerCall) => {
      const requested = body as ExplainBody;
      const usage = requested.consumer === undefined ? {} : { consumer: await parts.usage(requested.consumer) };
      return { status: 200, body: documents.toJson({ ...parts.explain(explainedRequest(requested)), ...usage }) };
    },
  };
}

/** A redacted document as YAML or, if requested, JSON. */
function shownDocument(
  parts: ConfigParts,
  accept: string | string[] | undefined,
  { generation, contentHash }: Pick<PastGeneration, "generation" | "contentHash">,
  document: unknown,
) {
  const { documents } = parts;
  const headers = identity(parts, generation, contentHash);
  if (!wantsJson(accept)) return { status: 200, headers, body: documents.toYaml(document) };
  return {
    status: 200,
    headers: { ...headers, "content-type": "application/json" },
    body: `${documents.toJson(document, 2)}\n`,
  };
}

/** History and rollback. */
function historyOperations(parts: ConfigParts) {
  const { generations, history, persist } = parts;
  const kept = async (generation: number): Promise<PastGeneration> => {
    const past = await stored(async () => await history.find(generation));
    if (past === undefined) throw new AdminError("generation_not_found");
    return past;
  };
  return {
    listGenerations: async ({ query }: HandlerCall) => {
      const { limit = DEFAULT_LIMIT } = query as { limit?: number };
      const list = (await stored(async () => await history.newest(limit))).map((past) => ({
        generation: past.generation,
        content_hash: past.contentHash,
        route_count: past.routeCount,
        published_at: new Date(past.publishedMs).toISOString(),
        source: past.source,
        actor: past.actor ?? null,
        is_running: past.generation === generations.current?.number,
      }));
      return { status: 200, body: { generations: list } };
    },
    getGeneration: async ({ params, headers }: HandlerCall) => {
      const past = await kept((params as { generation: number }).generation);
      return shownDocument(parts, headers["accept"], past, past.redacted);
    },
    rollbackConfig: async (call: HandlerCall) => {
      const { generation } = call.body as { generation: number };
      call.note(`back to ${generation}`);
      const past = await kept(generation);
      const outcome = await generations.submit(
        async () => {
          const text = await history.textToRun(past, generations.input ?? {});
          await refuseLoss(parts, call, text);
          return { text, source: "rollback", actor: call.caller.name };
        },
        { persist },
      );
      if (outcome.outcome === "published") call.note(`back to ${generation}: generation ${outcome.generation}`);
      if (outcome.outcome === "rejected") throw notAgain(generation, rejected(outcome.issues));
      return await published(parts, outcome);
    },
  };
}

/** The error of a rollback to a generation that is no longer valid. */
function notAgain(generation: number, { code, message, issues = [] }: AdminError): AdminError {
  const why =
    code === "config_redacted_value"
      ? `It has secrets in the document itself, and those are not kept over a restart. See it with sluice config get --generation ${generation}, put them in and apply it`
      : message;
  return new AdminError(code, `Generation ${generation} cannot run any more. ${why}`, { issues });
}

async function stored<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    throw new AdminError("state_store_unavailable", undefined, { cause: error });
  }
}

/** Single entities of the running document. */
function entityOperations(parts: ConfigParts) {
  const { generations, documents } = parts;
  const entities = (name: string) => () => {
    const { current, input } = generations;
    if (current === undefined || input === undefined) throw new AdminError("generation_not_found");
    const list = (documents.redacted(input) as Readonly<Record<string, unknown>>)[name] ?? [];
    const headers = identity(parts, current.number, current.contentHash);
    return { status: 200, headers, body: documents.toJson({ [name]: list }) };
  };
  return {
    listRoutes: entities("routes"),
    listServices: entities("services"),
    listConsumers: entities("consumers"),
    listPolicies: entities("policies"),
  };
}

interface ExplainBody {
  readonly method?: string;
  readonly path: string;
  readonly host?: string;
  readonly listener?: string;
  readonly scheme?: "http" | "https";
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly consumer?: string;
}

function explainedRequest({
  method = "GET",
  path: target,
  consumer: _consumer,
  ...rest
}: ExplainBody): Parameters<ConfigParts["explain"]>[0] {
  return { method, target, ...rest };
}

function dryRunOf({ query }: HandlerCall): SubmitOptions {
  return (query as { dry_run?: boolean }).dry_run === true ? { dryRun: true } : {};
}

/** Builds the complete document of a call. */
type TextOf = (parts: ConfigParts, call: HandlerCall) => Promise<string>;

async function submit(parts: ConfigParts, call: HandlerCall, options: SubmitOptions, textOf: TextOf) {
  const { generations, persist } = parts;
  if (options.dryRun === true) call.note("dry run");
  const ifMatch = hashesOf(call.headers["if-match"]);
  const outcome = await generations.submit(
    async () => ({ text: await textOf(parts, call), source: "admin", actor: call.caller.name }),
    { ...options, ...(ifMatch === undefined ? {} : { ifMatch }), persist },
  );
  if (outcome.outcome === "published") call.note(`generation ${outcome.generation}`);
  return await published(parts, outcome);
}

const typeOf = ({ headers }: HandlerCall): string | undefined =>
  String(headers["content-type"] ?? "")
    .split(";")[0]
    ?.trim()
    .toLowerCase();

const isPatch = (call: HandlerCall): boolean => [MERGE_PATCH, JSON_PATCH].some((type) => type === typeOf(call));

/** Applies the patch of a request body to the running document. */
async function patchedText(parts: ConfigParts, call: HandlerCall): Promise<string> {
  const { generations, documents } = parts;
  const { input, text: running } = generations;
  if (input === undefined || running === undefined) throw new AdminError("generation_not_found");
  const written = mayOverwrite(call) ? running : await writtenText(parts, input, running);
  const masked = documents.masked(input);
  try {
    const type = typeOf(call) === JSON_PATCH ? JSON_PATCH : MERGE_PATCH;
    const patched = patchedDocument(masked.document as Json, type, String(call.body));
    return await documents.patchedText(written, input, masked.restored(patched));
  } catch (error) {
    if (error instanceof PatchError) throw new AdminError("patch_invalid", error.message, { cause: error });
    throw error;
  }
}

/** The request body. Fails if the file has unpublished edits that would be lost, unless forced. */
async function wholeText(parts: ConfigParts, call: HandlerCall): Promise<string> {
  const text = String(call.body);
  await refuseLoss(parts, call, text);
  return text;
}

const mayOverwrite = ({ query }: HandlerCall): boolean => (query as { overwrite?: boolean }).overwrite === true;

async function refuseLoss(parts: ConfigParts, call: HandlerCall, next: string): Promise<void> {
  const { input, text: running } = parts.generations;
  if (mayOverwrite(call) || input === undefined || running === undefined) return;
  await writtenText(parts, input, running, next);
}

/** The file's text if it equals the running or the new document; anything else would be a lost edit. */
async function writtenText(parts: ConfigParts, input: unknown, running: string, next = running): Promise<string> {
  const written = (await parts.written()) ?? running;
  if (written === running || written === next || (await parts.documents.says(written, input))) return written;
  throw new AdminError("config_file_differs");
}

async function published(parts: ConfigParts, outcome: SubmitOutcome) {
  switch (outcome.outcome) {
    case "published":
    case "unchanged":
    case "valid": {
      const { generation, contentHash, routeCount, warnings, changes } = outcome;
      const body: PublishedConfig = {
        generation,
        content_hash: contentHash,
        route_count: routeCount,
        warnings: warnings.map(plain),
        changes: changes.map((change) => ({ ...change, pointers: [...change.pointers] })),
        ...(outcome.outcome === "valid" ? { affected: affectedBy(outcome.plan, await parts.recent()) } : {}),
      };
      return { status: 200, headers: identity(parts, generation, contentHash), body };
    }
    case "rejected":
      throw rejected(outcome.issues);
    case "conflict":
      throw new AdminError("config_conflict");
    case "not_persisted":
      throw new AdminError("config_write_failed", undefined, { cause: outcome.error });
  }
}

function rejected(issues: readonly Issue[]): AdminError {
  const errors = issues.filter(({ severity }) => severity === "error");
  const [first] = errors;
  const isRedacted = errors.length > 0 && errors.every(({ code }) => code === "redacted_placeholder");
  const total = errors.reduce((sum, { count: stands = 1 }) => sum + stands, 0);
  const count = total === 1 ? "1 error" : `${total} errors`;
  const message = `The configuration has ${count}${first === undefined ? "" : `: ${first.message}`}`;
  return new AdminError(isRedacted ? "config_redacted_value" : "config_invalid", message, { issues });
}

function plain({ code, path, message, severity, line, column, count }: Issue): PublishedConfig["warnings"][number] {
  return {
    code,
    path,
    message,
    severity,
    ...(line === undefined ? {} : { line }),
    ...(column === undefined ? {} : { column }),
    ...(count === undefined ? {} : { count }),
  };
}

function identity({ documents }: ConfigParts, generation: number, hash: number): Record<string, string> {
  const text = documents.hashText(hash);
  return { etag: `"${text}"`, "x-gateway-config-generation": String(generation), "x-gateway-config-hash": text };
}

/** Hashes of If-Match; undefined without the field and for `*`. */
function hashesOf(field: string | string[] | undefined): readonly number[] | undefined {
  if (typeof field !== "string" || field.trim() === "*") return undefined;
  return field.split(",").map((member) => {
    const text = member.trim().replace(/^(?:W\/)?"(.*)"$/, "$1");
    if (/^0x[0-9a-f]{1,14}$/i.test(text) || /^[0-9]{1,16}$/.test(text)) return Number(text);
    throw new AdminError("config_conflict", "If-Match names no content hash");
  });
}

function wantsJson(accept: string | string[] | undefined): boolean {
  const text = String(accept ?? "").toLowerCase();
  return text.includes("application/json") && !text.includes("yaml");
}

/** Applies a patch to the running document in normal form. Throws {@link PatchError}. */
function patchedDocument(running: Json, type: typeof MERGE_PATCH | typeof JSON_PATCH, text: string): Json {
  const patch = readPatch(text);
  if (type === MERGE_PATCH) {
    refuseTwice(patch);
    return withoutEmptyGateway(mergePatch(running, settingsBelowGateway(patch)));
  }
  const operations = Array.isArray(patch) ? patch.map((operation: Json) => pathsBelowGateway(operation)) : patch;
  return withoutEmptyGateway(jsonPatch(withGateway(running), operations));
}

/** The parser's messages quote the text, which may contain secrets. */
function readPatch(text: string): Json {
  try {
    JSON.parse(text);
    // Parsed again to keep integers that a number would round.
    return parse(text, { intAsBigInt: true, schema: "json", uniqueKeys: false, prettyErrors: false }) as Json;
  } catch {
    throw new PatchError("The patch is no JSON");
  }
}

/** Moves pointers to gateway settings from the root below `/gateway`. */
function pathsBelowGateway(operation: Json): Json {
  if (!isMembers(operation)) return operation;
  const moved = (pointer: Json | undefined): Json | undefined =>
    typeof pointer === "string" && isSetting(pointer.split("/")[1] ?? "") ? `/gateway${pointer}` : pointer;
  const pointers = { path: moved(operation["path"]), from: moved(operation["from"]) };
  const given = Object.entries(pointers).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]));
  return { ...operation, ...(Object.fromEntries(given) as Readonly<Record<string, Json>>) };
}

/** The normal form omits empty sections. */
function withGateway(running: Json): Json {
  return isMembers(running) && !Object.hasOwn(running, "gateway") ? { ...running, gateway: {} } : running;
}

/** Removes an empty section that was added for the patch. */
function withoutEmptyGateway(patched: Json): Json {
  if (!isMembers(patched)) return patched;
  const { gateway, ...rest } = patched;
  return gateway !== undefined && isMembers(gateway) && Object.keys(gateway).length === 0 ? rest : patched;
}

/** Moves gateway settings from the root below `gateway`, where they take precedence. */
function settingsBelowGateway(value: Json): Json {
  if (!isMembers(value)) return value;
  const members = Object.entries(value);
  const settings = members.filter(([name]) => isSetting(name));
  if (settings.length === 0) return value;
  const { gateway = {} } = value;
  if (!isMembers(gateway)) throw new PatchError('"gateway" is no object, and settings of it stand at the root');
  return {
    ...Object.fromEntries(members.filter(([name]) => !isSetting(name))),
    gateway: { ...gateway, ...Object.fromEntries(settings) },
  };
}

function refuseTwice(patch: Json): void {
  if (!isMembers(patch) || !isMembers(patch["gateway"] ?? null)) return;
  const gateway = patch["gateway"] as Readonly<Record<string, Json>>;
  const twice = Object.keys(patch).find((name) => isSetting(name) && Object.hasOwn(gateway, name));
  if (twice !== undefined) throw new PatchError(`"${twice}" is set at the root and under "gateway"; keep one of them`);
}

function isMembers(value: Json): value is { readonly [name: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
