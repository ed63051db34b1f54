import type { Static } from "typebox";
import { defineOperations, media, nullable, oneOf, strictObject, Type } from "@headworks/contract-kit";
import { COUNTED, EntryIdParams, Id, IdParams, named, Timestamp, ToggleBody, ToggleResult } from "./primitives.ts";

/** The hooks of scripts, in the order of an exchange. */
export const SCRIPT_HOOKS = [
  "on_request",
  "on_response",
  "on_websocket_message",
  "on_grpc_message",
  "on_traffic_store",
  "on_session_start",
  "on_session_end",
] as const;

export const ScriptHook = oneOf([...SCRIPT_HOOKS]);

export type ScriptHook = Static<typeof ScriptHook>;

/** The function that a script declares for a hook. */
export const HOOK_FUNCTIONS: Readonly<Record<ScriptHook, string>> = {
  on_request: "onRequest",
  on_response: "onResponse",
  on_websocket_message: "onWebSocketMessage",
  on_grpc_message: "onGrpcMessage",
  on_traffic_store: "onTrafficStore",
  on_session_start: "onSessionStart",
  on_session_end: "onSessionEnd",
};

const pattern = (what: string) =>
  Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 400,
      description: `${what}; \`*\` matches any characters, \`?\` one, in any case`,
    }),
  );

/** The exchanges that a script sees; all given members must match. */
export const ScriptFilter = strictObject(
  {
    url_pattern: pattern("The whole URL"),
    host_pattern: pattern("The host"),
    path_pattern: pattern("The path with the query"),
    method: Type.Optional(Type.String({ minLength: 1, maxLength: 32, description: "The method, in any case" })),
  },
  { $id: "ScriptFilter" },
);

export type ScriptFilter = Static<typeof ScriptFilter>;

const source = Type.String({
  minLength: 1,
  maxLength: 1_048_576,
  pattern: "\\S",
  description: "JavaScript that declares a function for each hook: `function onRequest(request, context) { … }`",
});
const hooks = (description: string) => Type.Array(ScriptHook, { maxItems: SCRIPT_HOOKS.length, description });
const onError = oneOf(["stop_chain", "continue"], {
  description:
    "After an error or a timeout: `stop_chain` runs no further script for this message, `continue` runs them. The message goes on as it was before the failed script. Default: `stop_chain`",
});
const priority = Type.Integer({
  minimum: -1_000_000,
  maximum: 1_000_000,
  description: "Scripts run with the lowest number first, then the oldest. Default: 100",
});

/** JavaScript that runs for exchanges. */
export const Script = strictObject(
  {
    id: Id,
    name: Type.String(),
    description: nullable(Type.String()),
    source: Type.String(),
    hooks: hooks("The hooks that call it"),
    enabled: Type.Boolean(),
    priority: Type.Integer(),
    match_filter: Type.Optional(ScriptFilter),
    on_error: onError,
    created_at: Timestamp,
    modified_at: Timestamp,
    problem: nullable(Type.String(), {
      description: "Why the source cannot run, such as a syntax error; null if it can",
    }),
  },
  { $id: "Script" },
);

export type Script = Static<typeof Script>;

const writable = {
  name: named("Name of the script"),
  source,
  description: Type.Optional(nullable(Type.String({ maxLength: 10_000 }))),
  hooks: Type.Optional(hooks("The hooks that call it. Default: those whose function the source declares")),
  match_filter: Type.Optional(nullable(ScriptFilter, { description: "Null: every exchange" })),
  on_error: Type.Optional(onError),
  enabled: Type.Optional(Type.Boolean({ description: "Whether it runs. Default: true" })),
  priority: Type.Optional(priority),
};

export const NewScript = strictObject(writable, { $id: "NewScript" });

export type NewScript = Static<typeof NewScript>;

/** Body of an update: only what is given changes; what GET returned may be sent back. */
export const ScriptUpdate = strictObject(
  {
    ...writable,
    name: Type.Optional(writable.name),
    source: Type.Optional(source),
    id: Type.Optional(Id),
    created_at: Type.Optional(Timestamp),
    modified_at: Type.Optional(Timestamp),
    problem: Type.Optional(nullable(Type.String())),
  },
  { $id: "ScriptUpdate" },
);

export type ScriptUpdate = Static<typeof ScriptUpdate>;

/** One call of a hook. */
export const ScriptExecution = strictObject(
  {
    script_id: Id,
    script_name: Type.String(),
    hook: Type.Optional(ScriptHook),
    traffic_entry_id: Type.Optional(Id),
    duration_ms: Type.Number({ description: "Time in the script, without waiting for its thread" }),
    success: Type.Boolean(),
    error: nullable(Type.String(), { description: "With the line of the source where known" }),
    console: Type.Array(Type.String(), { description: "Lines of `console`, with their level unless it is `log`" }),
    changes: Type.Array(Type.String(), { description: "Readable list of what the script changed" }),
    timestamp: Timestamp,
  },
  { $id: "ScriptExecution" },
);

export type ScriptExecution = Static<typeof ScriptExecution>;

/** A script to begin with. */
export const ScriptTemplate = strictObject(
  {
    name: Type.String(),
    description: Type.String(),
    source: Type.String(),
    hooks: hooks("The hooks that it uses"),
    priority: Type.Integer(),
    on_error: onError,
    match_filter: Type.Optional(ScriptFilter),
  },
  { $id: "ScriptTemplate" },
);

export type ScriptTemplate = Static<typeof ScriptTemplate>;

const TIMEOUT = "Maximum milliseconds of one call, waiting for its thread included";
const MEMORY = "Maximum memory of one script, in mebibytes";
const CONSOLE = "Keep the lines that scripts write with `console`";
const HISTORY = "Number of executions that are kept; the oldest are removed";

/** The limits under which scripts run. */
export const ScriptConfig = strictObject(
  {
    timeout_ms: Type.Integer({ description: TIMEOUT }),
    memory_limit_mb: Type.Integer({ description: MEMORY }),
    capture_console: Type.Boolean({ description: CONSOLE }),
    history_limit: Type.Integer({ description: HISTORY }),
    max_memory_bytes: Type.Integer({ description: "`memory_limit_mb` in bytes" }),
    enable_console: Type.Boolean({ description: "The same as `capture_console`" }),
    allow_network: Type.Boolean({ description: "Always false: scripts have no network" }),
    allow_fs: Type.Boolean({ description: "Always false: scripts have no files" }),
  },
  { $id: "ScriptConfig" },
);

export type ScriptConfig = Static<typeof ScriptConfig>;

/** Body of a change; what GET returned may be sent back. Of two names of one limit, the one that differs counts. */
export const ScriptConfigUpdate = strictObject(
  {
    timeout_ms: Type.Optional(Type.Integer({ minimum: 10, maximum: 60_000, description: TIMEOUT })),
    memory_limit_mb: Type.Optional(Type.Integer({ minimum: 2, maximum: 512, description: MEMORY })),
    capture_console: Type.Optional(Type.Boolean({ description: CONSOLE })),
    history_limit: Type.Optional(Type.Integer({ minimum: 0, maximum: 1_000_000, description: HISTORY })),
    max_memory_bytes: Type.Optional(
      Type.Integer({
        minimum: 2_097_152,
        maximum: 536_870_912,
        multipleOf: 1_048_576,
        description: "`memory_limit_mb` in bytes",
      }),
    ),
    enable_console: Type.Optional(Type.Boolean({ description: "The same as `capture_console`" })),
    allow_network: Type.Optional(Type.Literal(false, { description: "Scripts have no network" })),
    allow_fs: Type.Optional(Type.Literal(false, { description: "Scripts have no files" })),
  },
  { $id: "ScriptConfigUpdate" },
);

export type ScriptConfigUpdate = Static<typeof ScriptConfigUpdate>;

const sampleHeaders = Type.Record(Type.String(), Type.Union([Type.String(), Type.Array(Type.String())]), {
  description: "Values by field name; an array for several fields of a name",
});
const sampleBody = Type.Optional(
  nullable(Type.String({ maxLength: 8_388_608 }), { description: "The body: text, or `base64:` and standard base64" }),
);

/** A request that exists only for a dry run or a preview. */
export const SampleRequest = strictObject(
  {
    method: Type.Optional(Type.String({ minLength: 1, maxLength: 32, description: "The method. Default: GET" })),
    url: Type.Optional(
      Type.String({ minLength: 1, maxLength: 8192, description: "The URL. Default: https://example.com/" }),
    ),
    headers: Type.Optional(sampleHeaders),
    body: sampleBody,
  },
  { $id: "SampleRequest" },
);

export const SampleResponse = strictObject(
  {
    status_code: Type.Optional(Type.Integer({ minimum: 100, maximum: 599, description: "The status. Default: 200" })),
    status_message: Type.Optional(Type.String({ maxLength: 255 })),
    headers: Type.Optional(sampleHeaders),
    body: sampleBody,
  },
  { $id: "SampleResponse" },
);

const sampleMessage = strictObject(
  {
    direction: Type.Optional(oneOf(["send", "receive"], { description: "`send` is from the client. Default: `send`" })),
    message_type: Type.Optional(oneOf(["text", "binary"], { description: "Default: `text`" })),
    payload: Type.Optional(Type.String({ maxLength: 8_388_608, description: "Text, or `base64:` and base64" })),
    service: Type.Optional(Type.String({ maxLength: 255, description: "gRPC: `package.Service`" })),
    method: Type.Optional(Type.String({ maxLength: 255, description: "gRPC: the name of the method" })),
  },
  { $id: "SampleMessage" },
);

export const ScriptTest = strictObject(
  {
    source,
    hook: oneOf([...SCRIPT_HOOKS], { description: "The hook to call" }),
    entry_id: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 64,
        description: "A captured entry to test with, instead of `request` and `response`",
        "x-entry-id": true,
      }),
    ),
    request: Type.Optional(SampleRequest),
    response: Type.Optional(SampleResponse),
    message: Type.Optional(sampleMessage),
  },
  { $id: "ScriptTest" },
);

export type ScriptTest = Static<typeof ScriptTest>;

const testedBody = {
  body: nullable(Type.String(), { description: "Without content codings; binary as `base64:` and base64" }),
  headers: Type.Record(Type.String(), Type.String(), {
    description: "Fields of the same name joined with commas, Set-Cookie with line ends",
  }),
  headers_list: Type.Array(Type.Array(Type.String(), { minItems: 2, maxItems: 2 })),
};

/** A request before or after a test. */
export const TestedRequest = strictObject(
  { method: Type.String(), url: Type.String(), ...testedBody },
  { $id: "TestedRequest" },
);

export type TestedRequest = Static<typeof TestedRequest>;

/** A response before or after a test. */
export const TestedResponse = strictObject(
  { status_code: Type.Integer(), status_message: Type.String(), ...testedBody },
  { $id: "TestedResponse" },
);

export type TestedResponse = Static<typeof TestedResponse>;

/** What a script would do; nothing is sent, stored or kept. */
export const ScriptTestResult = strictObject(
  {
    modified: Type.Boolean({ description: "The script changed the message" }),
    continue_: Type.Boolean({ description: "False: it responded itself, dropped the message or cut the exchange off" }),
    response: nullable(TestedResponse, { description: "The script's own response" }),
    error: nullable(Type.String()),
    console: Type.Array(Type.String()),
    changes: Type.Array(Type.String()),
    duration_ms: Type.Number({ description: "Time in the script" }),
    delay_ms: Type.Number({ description: "How long the message would wait; a test does not" }),
    request: nullable(TestedRequest, { description: "The request before the script" }),
    modified_request: nullable(TestedRequest, { description: "The request after the script, if it was changed" }),
    original_response: nullable(TestedResponse, { description: "The response before the script" }),
    modified_response: nullable(TestedResponse, { description: "The response after the script, if it was changed" }),
    modified_payload: nullable(Type.String(), { description: "The message after the script, if it was changed" }),
  },
  { $id: "ScriptTestResult" },
);

export type ScriptTestResult = Static<typeof ScriptTestResult>;

/** Whether a source can run. */
export const ScriptValidation = strictObject(
  {
    valid: Type.Boolean(),
    error: Type.Optional(Type.String()),
    line: Type.Optional(Type.Integer({ description: "From 1" })),
    column: Type.Optional(Type.Integer({ description: "From 1" })),
    hooks: Type.Optional(hooks("The hooks whose functions it declares")),
  },
  { $id: "ScriptValidation" },
);

export type ScriptValidation = Static<typeof ScriptValidation>;

/** A script that would run, in the order of execution. */
export const ScriptMatch = strictObject(
  {
    id: Id,
    name: Type.String(),
    priority: Type.Integer(),
    enabled: Type.Boolean(),
    hooks: hooks("The hooks that call it"),
    match_filter: Type.Optional(ScriptFilter),
  },
  { $id: "ScriptMatch" },
);

export type ScriptMatch = Static<typeof ScriptMatch>;

export const ScriptMatchPreview = strictObject({
  url: Type.String({ minLength: 1, maxLength: 8192 }),
  method: Type.Optional(Type.String({ minLength: 1, maxLength: 32, description: "The method. Default: GET" })),
  host: Type.Optional(Type.String({ minLength: 1, maxLength: 255, description: "Default: the host of the URL" })),
  path: Type.Optional(Type.String({ minLength: 1, maxLength: 8192, description: "Default: the path of the URL" })),
  hook: Type.Optional(ScriptHook),
});

export type ScriptMatchPreview = Static<typeof ScriptMatchPreview>;

const history = (defaultLimit: number) =>
  strictObject({
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1000,
        description: `Maximum number of executions. Default: ${String(defaultLimit)}`,
      }),
    ),
  });

export const scriptsOperations = defineOperations({
  listScripts: {
    method: "GET",
    path: "/scripts",
    summary: "List scripts in the order in which they run",
    responseFields: COUNTED,
    access: "scripts:read",
    responses: { 200: Type.Array(Script) },
    expose: { mcp: { name: "list_scripts", readOnly: true } },
  },
  createScript: {
    method: "POST",
    path: "/scripts",
    summary: "Create a script",
    description: "A source that cannot be compiled is refused, with line and column.",
    access: "scripts:write",
    body: NewScript,
    responses: { 201: strictObject({ id: Id, script: Script }) },
  },
  listScriptTemplates: {
    method: "GET",
    path: "/scripts/templates",
    summary: "Scripts to begin with",
    access: "scripts:read",
    responses: { 200: Type.Array(ScriptTemplate) },
  },
  getScriptTypes: {
    method: "GET",
    path: "/scripts/types",
    summary: "The script API as TypeScript declarations",
    access: "scripts:read",
    responses: { 200: media("text/plain; charset=utf-8", "A `.d.ts` file for editors") },
  },
  getScriptConfig: {
    method: "GET",
    path: "/scripts/config",
    summary: "The limits under which scripts run",
    access: "scripts:read",
    responses: { 200: ScriptConfig },
  },
  updateScriptConfig: {
    method: "PUT",
    path: "/scripts/config",
    summary: "Change the limits under which scripts run",
    access: "scripts:write",
    body: ScriptConfigUpdate,
    responses: { 200: ScriptConfig },
  },
  listScriptHistory: {
    method: "GET",
    path: "/scripts/history",
    summary: "Executions of all scripts, newest first",
    responseFields: COUNTED,
    access: "scripts:read",
    query: history(100),
    responses: { 200: Type.Array(ScriptExecution) },
  },
  testScript: {
    method: "POST",
    path: "/scripts/test",
    summary: "Run a source on a sample or a captured entry, without any effect",
    access: "scripts:read",
    body: ScriptTest,
    responses: { 200: ScriptTestResult },
  },
  validateScript: {
    method: "POST",
    path: "/scripts/validate",
    summary: "Check the syntax of a source without running it",
    access: "scripts:read",
    body: strictObject({ source: Type.String({ maxLength: 1_048_576 }) }),
    responses: { 200: ScriptValidation },
    expose: { cli: false },
  },
  previewScriptMatches: {
    method: "POST",
    path: "/scripts/match-preview",
    summary: "The scripts that would run for a request, in order",
    access: "scripts:read",
    body: ScriptMatchPreview,
    responses: { 200: Type.Array(ScriptMatch) },
  },
  getScript: {
    method: "GET",
    path: "/scripts/{id}",
    summary: "One script",
    access: "scripts:read",
    params: IdParams,
    responses: { 200: Script },
  },
  updateScript: {
    method: "PUT",
    path: "/scripts/{id}",
    summary: "Update a script",
    access: "scripts:write",
    params: IdParams,
    body: ScriptUpdate,
    responses: { 204: null },
  },
  deleteScript: {
    method: "DELETE",
    path: "/scripts/{id}",
    summary: "Delete a script with its history and stored values",
    access: "scripts:delete",
    params: IdParams,
    responses: { 204: null },
  },
  toggleScript: {
    method: "POST",
    path: "/scripts/{id}/toggle",
    summary: "Enable or disable a script",
    access: "scripts:write",
    params: IdParams,
    body: ToggleBody,
    bodyOptional: true,
    responses: { 200: ToggleResult },
  },
  reorderScript: {
    method: "POST",
    path: "/scripts/{id}/reorder",
    summary: "Move a script in the order of execution",
    description:
      "`direction` moves it by one place, disabled scripts included, and renumbers all priorities in steps of ten from 100; `priority` is set as it is given.",
    access: "scripts:write",
    params: IdParams,
    body: strictObject({
      direction: Type.Optional(oneOf(["up", "down"], { description: "`up` runs earlier" })),
      priority: Type.Optional(priority),
    }),
    responses: { 204: null },
  },
  getScriptHistory: {
    method: "GET",
    path: "/scripts/{id}/history",
    summary: "Executions of one script, newest first",
    responseFields: COUNTED,
    access: "scripts:read",
    params: IdParams,
    query: history(50),
    responses: { 200: Type.Array(ScriptExecution) },
  },
  clearScriptHistory: {
    method: "DELETE",
    path: "/scripts/{id}/history",
    summary: "Remove the executions of one script",
    access: "scripts:delete",
    params: IdParams,
    responses: { 204: null },
  },
  getScriptTraces: {
    method: "GET",
    path: "/traffic/{id}/script-traces",
    summary: "Script executions for an entry, oldest first",
    access: "traffic:read",
    params: EntryIdParams,
    responses: { 200: Type.Array(ScriptExecution) },
  },
});
