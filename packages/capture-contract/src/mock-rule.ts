import { nullable, oneOf, strictObject, taggedBy, Type } from "@headworks/contract-kit";
import type { Static, TSchema } from "typebox";
import { Condition } from "./condition.ts";
import { Id, NoDevice, Timestamp } from "./primitives.ts";

/** Bounds of mocks. Bytes are of what is stored; files are read when they are needed. */
export const MOCK_LIMITS = {
  /** Bytes of a body that is kept in a rule. */
  bodyBytes: 5_242_880,
  /** Bytes of a file that is given as a body, and of a body made from a template. */
  fileBytes: 16_777_216,
  delayMs: 600_000,
  /** Responses of one sequence, conditional or probabilistic rule. */
  responses: 1000,
  rules: 10_000,
  versions: 50,
  history: 1000,
} as const;

const kind = <const N extends string, P extends Parameters<typeof strictObject>[0]>(name: N, properties: P) =>
  strictObject({ type: oneOf([name]), ...properties });

const headerText = Type.String({ maxLength: 65_536 });

/** Header fields of a response; a list of values adds as many fields of that name. */
export const MockHeaders = Type.Record(
  Type.String({ minLength: 1, maxLength: 255 }),
  Type.Union([headerText, Type.Array(headerText, { maxItems: 100 })]),
  { description: "By name; a list adds several fields of that name. The proxy sets framing fields itself" },
);
export type MockHeaders = Readonly<Record<string, string | readonly string[]>>;

const bodyText = Type.String({ maxLength: MOCK_LIMITS.bodyBytes });

/** The parts of a response as given in a rule; omitted ones have a default. */
const responseProperties = {
  status_code: Type.Optional(
    Type.Integer({ minimum: 200, maximum: 599, description: "Status of the response. Default: 200" }),
  ),
  headers: Type.Optional(MockHeaders),
  body: Type.Optional(nullable(bodyText, { description: "Body as text" })),
  body_base64: Type.Optional(
    nullable(Type.String({ maxLength: Math.ceil(MOCK_LIMITS.bodyBytes / 3) * 4 }), { description: "Body in base64" }),
  ),
  body_file: Type.Optional(
    nullable(Type.String({ minLength: 1, maxLength: 4096 }), {
      description: "Body from a file below `<data_dir>/mock-bodies` or a directory of `mock_body_dirs`",
    }),
  ),
  delay_ms: Type.Optional(
    nullable(Type.Integer({ minimum: 0, maximum: MOCK_LIMITS.delayMs }), { description: "Delay before the response" }),
  ),
  delay_variance_ms: Type.Optional(
    nullable(Type.Integer({ minimum: 0, maximum: MOCK_LIMITS.delayMs }), {
      description: "Maximum random deviation of the delay, in both directions",
    }),
  ),
  template_enabled: Type.Optional(
    Type.Boolean({
      description: "Replace placeholders such as `{{request.path}}` and `{{uuid}}` in body and header values",
    }),
  ),
};

/** A response instead of the origin's; at most one of the three kinds of body. */
export const NewMockResponse = strictObject(responseProperties);
export type NewMockResponse = Omit<Static<typeof NewMockResponse>, "headers"> & { readonly headers?: MockHeaders };

/** A response of a rule with all defaults filled in. */
export const MockResponse = strictObject(
  {
    status_code: Type.Integer(),
    headers: MockHeaders,
    body: nullable(Type.String()),
    body_base64: nullable(Type.String()),
    body_file: nullable(Type.String()),
    delay_ms: nullable(Type.Integer()),
    delay_variance_ms: nullable(Type.Integer()),
    template_enabled: Type.Boolean(),
  },
  { $id: "MockResponse" },
);
export type MockResponse = Omit<Static<typeof MockResponse>, "headers"> & { readonly headers: MockHeaders };

/** Conditions on the request for one of the responses of a conditional rule. */
export type MockRequestCondition =
  | { readonly type: "header_equals"; readonly name: string; readonly value: string }
  | { readonly type: "header_matches"; readonly name: string; readonly pattern: string }
  | { readonly type: "query_param_equals"; readonly name: string; readonly value: string }
  | { readonly type: "json_path_equals"; readonly path: string; readonly value: unknown }
  | { readonly type: "json_path_matches"; readonly path: string; readonly pattern: string }
  | { readonly type: "body_matches"; readonly pattern: string }
  | { readonly type: "and" | "or"; readonly conditions: readonly MockRequestCondition[] };

const name = Type.String({ minLength: 1, maxLength: 255 });
const pattern = Type.String({ minLength: 1, maxLength: 1000 });
const value = Type.String({ maxLength: 65_536 });
const path = Type.String({ minLength: 1, maxLength: 1000 });
const several = Type.Array(Type.Unsafe<MockRequestCondition>({ $ref: "MockRequestCondition" }), {
  minItems: 1,
  maxItems: 1000,
});

export const MockRequestCondition = taggedBy<MockRequestCondition>(
  "type",
  [
    kind("header_equals", { name, value }),
    kind("header_matches", { name, pattern }),
    kind("query_param_equals", { name, value }),
    kind("json_path_equals", { path, value: Type.Unknown() }),
    kind("json_path_matches", { path, pattern }),
    kind("body_matches", { pattern }),
    kind("and", { conditions: several }),
    kind("or", { conditions: several }),
  ],
  { $id: "MockRequestCondition", description: "Conditions on the request" },
);

/** How a rule selects its response. `R` is the response as given (input) or with its defaults (output). */
export type MockResponseConfigOf<R> =
  | { readonly type: "single"; readonly response: R }
  | {
      readonly type: "sequence";
      readonly responses: readonly R[];
      readonly current_index?: number;
      readonly cycle?: boolean;
    }
  | {
      readonly type: "conditional";
      readonly conditions: readonly { readonly condition: MockRequestCondition; readonly response: R }[];
      readonly default_response: R;
    }
  | {
      readonly type: "probabilistic";
      readonly responses: readonly { readonly weight: number; readonly response: R }[];
    };

const responseConfigKinds = <R extends TSchema>(response: R) => [
  kind("single", { response }),
  kind("sequence", {
    responses: Type.Array(response, {
      minItems: 1,
      maxItems: MOCK_LIMITS.responses,
      description: "In order, one for each request",
    }),
    current_index: Type.Optional(
      Type.Integer({ minimum: 0, maximum: MOCK_LIMITS.responses, description: "Index of the next response" }),
    ),
    cycle: Type.Optional(
      Type.Boolean({ description: "Start over after the last one (default); otherwise repeat the last" }),
    ),
  }),
  kind("conditional", {
    conditions: Type.Array(strictObject({ condition: MockRequestCondition, response }), {
      maxItems: MOCK_LIMITS.responses,
      description: "The first that matches applies",
    }),
    default_response: response,
  }),
  kind("probabilistic", {
    responses: Type.Array(
      strictObject({
        weight: Type.Integer({ minimum: 0, maximum: 1_000_000, description: "Share of the total weight" }),
        response,
      }),
      { minItems: 1, maxItems: MOCK_LIMITS.responses },
    ),
  }),
];

export type NewMockResponseConfig = MockResponseConfigOf<NewMockResponse>;
export const NewMockResponseConfig = taggedBy<NewMockResponseConfig>("type", responseConfigKinds(NewMockResponse), {
  description: "How the response is selected: `single`, `sequence`, `conditional` or `probabilistic`",
});

export type MockResponseConfig = MockResponseConfigOf<MockResponse>;
export const MockResponseConfig = taggedBy<MockResponseConfig>("type", responseConfigKinds(MockResponse), {
  $id: "MockResponseConfig",
});

/** When a rule expires. */
export const MockExpiration = taggedBy<MockExpiration>(
  "type",
  [
    kind("date_time", { expires_at: Timestamp }),
    kind("hit_count", { max_hits: Type.Integer({ minimum: 1, maximum: 1_000_000_000 }) }),
    kind("duration", { duration_secs: Type.Integer({ minimum: 1, maximum: 3_153_600_000 }) }),
  ],
  {
    $id: "MockExpiration",
    description: "Hits and durations count from when the expiration was last set or the rule last enabled",
  },
);
export type MockExpiration =
  | { readonly type: "date_time"; readonly expires_at: string }
  | { readonly type: "hit_count"; readonly max_hits: number }
  | { readonly type: "duration"; readonly duration_secs: number };

/** A rule as it was before an update or a rollback. */
export const MockVersion = strictObject(
  {
    version: Type.Integer(),
    condition: Condition,
    response_config: MockResponseConfig,
    saved_at: Timestamp,
    comment: nullable(Type.String()),
  },
  { $id: "MockVersion" },
);
export type MockVersion = Omit<Static<typeof MockVersion>, "response_config"> & {
  readonly response_config: MockResponseConfig;
};

export const MockRule = strictObject(
  {
    id: Id,
    name: Type.String(),
    description: nullable(Type.String()),
    tags: Type.Array(Type.String()),
    collection_id: nullable(Id),
    condition: Condition,
    response_config: MockResponseConfig,
    enabled: Type.Boolean(),
    priority: Type.Integer({ description: "If several rules match, the lowest number wins" }),
    created_at: Timestamp,
    updated_at: Timestamp,
    hit_count: Type.Integer(),
    expiration: nullable(MockExpiration),
    expired: Type.Boolean({
      description: "The rule has expired; it is inactive until its expiration is set or the rule is enabled again",
    }),
    version: Type.Integer(),
    version_history: Type.Optional(
      Type.Array(MockVersion, { description: "Newest first; omitted if empty, and in lists" }),
    ),
    response_schema: nullable(Type.String({ description: "JSON Schema, as text, for the bodies of the rule" })),
    response_script: Type.Null({ description: "Reserved" }),
    device_id: NoDevice,
  },
  { $id: "MockRule" },
);
export type MockRule = Omit<Static<typeof MockRule>, "response_config" | "version_history" | "expiration"> & {
  readonly response_config: MockResponseConfig;
  readonly version_history?: MockVersion[];
  readonly expiration: MockExpiration | null;
};

/** The flat form of a response, which scripts send beside the rule's own fields. */
export const flatResponse = {
  status_code: responseProperties.status_code,
  headers: responseProperties.headers,
  body: responseProperties.body,
  body_base64: responseProperties.body_base64,
  body_file: responseProperties.body_file,
  delay_ms: responseProperties.delay_ms,
  delay_variance_ms: responseProperties.delay_variance_ms,
  template_enabled: responseProperties.template_enabled,
} as const;
