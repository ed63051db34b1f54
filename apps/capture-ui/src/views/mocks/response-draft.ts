import type {
  Condition,
  MockRequestCondition,
  MockResponse,
  MockResponseConfig,
  NewMockResponse,
} from "@headworks/capture-contract";
import { conditionOfResponse } from "@headworks/match-condition";
import type { Vocabulary } from "../../rules/condition-draft.ts";
import {
  bodyDraft,
  type BodyDraft,
  headerDraft,
  type HeaderDraft,
  headersRecord,
  markedBody,
  recordDrafts,
} from "../../rules/message-draft.ts";

/** Vocabulary of a response's condition: request fields only, without negation. */
export const RESPONSE_VOCABULARY: Vocabulary = {
  comparisons: new Map([
    ["query_param", ["equals"]],
    ["header", ["equals", "matches"]],
    ["json", ["equals", "matches"]],
    ["body", ["contains", "matches"]],
  ]),
  hasNot: false,
};

/** A rule condition in response form; null if it cannot be expressed. */
export function toResponseCondition(condition: Condition): MockRequestCondition | null {
  switch (condition.type) {
    case "header":
      return condition.value == null ? null : { type: "header_equals", name: condition.name, value: condition.value };
    case "header_pattern":
      return { type: "header_matches", name: condition.name, pattern: condition.pattern };
    case "query_param":
      return condition.value == null
        ? null
        : { type: "query_param_equals", name: condition.name, value: condition.value };
    case "json_path":
      return condition.value === undefined
        ? null
        : { type: "json_path_equals", path: condition.path, value: condition.value };
    case "json_path_pattern":
      return { type: "json_path_matches", path: condition.path, pattern: condition.pattern };
    case "body_pattern":
      return { type: "body_matches", pattern: condition.pattern };
    case "and":
    case "or": {
      const conditions = condition.conditions.map(toResponseCondition);
      const whole = conditions.filter((each) => each !== null);
      return whole.length === 0 || whole.length < conditions.length
        ? null
        : { type: condition.type, conditions: whole };
    }
    default:
      return null;
  }
}

/** One response in the editor; numbers as typed. */
export interface ResponseDraft {
  readonly key: number;
  readonly status: string;
  readonly headers: readonly HeaderDraft[];
  readonly source: "body" | "file";
  readonly body: BodyDraft;
  readonly file: string;
  readonly delayMs: string;
  readonly varianceMs: string;
  readonly template: boolean;
  readonly weight: string;
  /** Used by conditional responses except the default one. */
  readonly when: WhenDraft;
}

/** The condition of a response: its last complete form, and whether it is complete now. */
export interface WhenDraft {
  readonly condition: Condition;
  readonly isWhole: boolean;
}

export type ConfigKind = MockResponseConfig["type"];

/** The responses of a rule in the editor. Values of other modes are kept while switching modes. */
export interface ConfigDraft {
  readonly kind: ConfigKind;
  readonly responses: readonly ResponseDraft[];
  /** Default response of a conditional rule. */
  readonly otherwise: ResponseDraft;
  readonly cycle: boolean;
}

let lastKey = 0;

export function newResponse(): ResponseDraft {
  lastKey += 1;
  return {
    key: lastKey,
    status: "200",
    headers: [headerDraft("Content-Type", "application/json")],
    source: "body",
    body: { encoding: "utf8", text: "{}" },
    file: "",
    delayMs: "",
    varianceMs: "",
    template: false,
    weight: "50",
    when: { condition: { type: "query_param", name: "", value: "" }, isWhole: false },
  };
}

export function draftOfResponse(response: MockResponse | NewMockResponse): ResponseDraft {
  const { body, body_base64: base64, body_file: file } = response;
  return {
    ...newResponse(),
    status: String(response.status_code ?? 200),
    headers: recordDrafts(response.headers ?? {}),
    source: file == null ? "body" : "file",
    body: base64 == null ? bodyDraft(body ?? null, "utf8") : bodyDraft(base64, "base64"),
    file: file ?? "",
    delayMs: response.delay_ms == null ? "" : String(response.delay_ms),
    varianceMs: response.delay_variance_ms == null ? "" : String(response.delay_variance_ms),
    template: response.template_enabled ?? false,
  };
}

export function draftOfConfig(config: MockResponseConfig): ConfigDraft {
  const base = { otherwise: newResponse(), cycle: true, kind: config.type };
  switch (config.type) {
    case "single":
      return { ...base, responses: [draftOfResponse(config.response)] };
    case "sequence":
      return { ...base, responses: config.responses.map(draftOfResponse), cycle: config.cycle ?? true };
    case "probabilistic":
      return {
        ...base,
        responses: config.responses.map(({ weight, response }) => ({
          ...draftOfResponse(response),
          weight: String(weight),
        })),
      };
    case "conditional":
      return {
        ...base,
        responses: config.conditions.map(({ condition, response }) => ({
          ...draftOfResponse(response),
          when: { condition: conditionOfResponse(condition), isWhole: true },
        })),
        otherwise: draftOfResponse(config.default_response),
      };
  }
}

/** The problem of a response, or null. */
function responseProblem(draft: ResponseDraft, kind: ConfigKind, isDefault: boolean): string | null {
  if (!/^[2-5]\d\d$/u.test(draft.status.trim())) return "Enter a status from 200 to 599";
  for (const text of [draft.delayMs, draft.varianceMs]) {
    if (!/^\d{0,6}$/u.test(text.trim())) return "Enter the delay in milliseconds";
  }
  if (draft.source === "file" && draft.file.trim() === "") return "Enter a file";
  if (kind === "probabilistic" && !/^\d{1,7}$/u.test(draft.weight.trim())) return "Weight must be a whole number";
  return kind === "conditional" && !isDefault && responseCondition(draft) === null
    ? "Complete the condition of each response"
    : null;
}

function responseCondition({ when }: ResponseDraft): MockRequestCondition | null {
  return when.isWhole ? toResponseCondition(when.condition) : null;
}

const optionalNumber = (text: string): number | null => (text.trim() === "" ? null : Number(text));

function responseOf(draft: ResponseDraft): NewMockResponse {
  return {
    status_code: Number(draft.status),
    headers: headersRecord(draft.headers),
    ...(draft.source === "file"
      ? { body_file: draft.file.trim() }
      : draft.body.encoding === "base64"
        ? { body_base64: markedBody(draft.body).slice("base64:".length) }
        : { body: draft.body.text }),
    delay_ms: optionalNumber(draft.delayMs),
    delay_variance_ms: optionalNumber(draft.varianceMs),
    template_enabled: draft.template,
  };
}

type BuiltConfig =
  | { readonly ok: true; readonly config: ReturnType<typeof build> }
  | { readonly ok: false; readonly message: string };

/** The responses of a draft, or the problem of the first invalid one. */
export function configOf(draft: ConfigDraft): BuiltConfig {
  const shown = draft.kind === "single" ? draft.responses.slice(0, 1) : draft.responses;
  const problem =
    shown.map((each) => responseProblem(each, draft.kind, false)).find((each) => each !== null) ??
    (draft.kind === "conditional" ? responseProblem(draft.otherwise, draft.kind, true) : null);
  if (problem !== null && problem !== undefined) return { ok: false, message: problem };
  if (shown.length === 0 && draft.kind !== "conditional") return { ok: false, message: "Add a response" };
  return { ok: true, config: build(draft, shown) };
}

function build({ kind, otherwise, cycle }: ConfigDraft, shown: readonly ResponseDraft[]) {
  switch (kind) {
    case "single":
      return { type: kind, response: responseOf(shown[0] ?? otherwise) } as const;
    case "sequence":
      return { type: kind, responses: shown.map(responseOf), cycle } as const;
    case "probabilistic":
      return {
        type: kind,
        responses: shown.map((each) => ({ weight: Number(each.weight), response: responseOf(each) })),
      } as const;
    case "conditional":
      return {
        type: kind,
        conditions: shown.flatMap((each) => {
          const condition = responseCondition(each);
          return condition === null ? [] : [{ condition, response: responseOf(each) }];
        }),
        default_response: responseOf(otherwise),
      } as const;
  }
}

/** Headers about framing and coding, which do not apply to a response given as text. */
const OF_THE_WIRE = new Set([
  "content-length",
  "content-encoding",
  "transfer-encoding",
  "connection",
  "keep-alive",
  "date",
  "trailer",
]);

/** The headers of a captured response to repeat in a mock. */
export function mockFields(list: readonly (readonly [string, string])[]): [string, string][] {
  return list.flatMap(([name, value]): [string, string][] =>
    OF_THE_WIRE.has(name.toLowerCase()) ? [] : [[name, value]],
  );
}
