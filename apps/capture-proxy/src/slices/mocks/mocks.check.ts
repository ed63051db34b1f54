import { Ajv, type ErrorObject, type ValidateFunction } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import {
  type Condition,
  MOCK_LIMITS,
  type MockRequestCondition,
  type MockResponse,
  type MockResponseConfig,
  type NewMock,
  type NewMockResponse,
} from "@headworks/capture-contract";
import { compilePattern, type LinearPattern } from "@headworks/linear-pattern";
import { compileCondition, conditionOfResponse, parseCondition, parseRuleCondition } from "@headworks/match-condition";
import { type ErrorDetail, validationError } from "#api/api-error.ts";
import { filledConfig, filledResponse, type MockDraft, responsesOf } from "./mock-rule.ts";
import { headerPairs } from "./prepared-response.ts";

/** Runs patterns of schemas in time linear in the body. */
const linearRegExp = Object.assign((pattern: string) => new PatternOfSchema(pattern), { code: "linearRegExp" });

/** The members of `RegExp` that the validator uses. */
class PatternOfSchema {
  readonly #source: string;
  readonly #compiled: LinearPattern;

  constructor(source: string) {
    this.#source = source;
    this.#compiled = compilePattern(source);
  }

  test(text: string): boolean {
    return this.#compiled.test(text);
  }

  exec(): null {
    return null;
  }

  /** The validator identifies patterns by their text. */
  toString(): string {
    return `/${this.#source}/`;
  }
}

const options = {
  strict: false,
  validateFormats: false,
  allErrors: false,
  code: { regExp: linearRegExp },
} as const;

const FLAT = [
  "status_code",
  "headers",
  "body",
  "body_base64",
  "body_file",
  "delay_ms",
  "delay_variance_ms",
  "template_enabled",
] as const satisfies readonly (keyof NewMock & keyof NewMockResponse)[];

const SHORTHAND = ["url_pattern", "host_pattern", "path_pattern", "method"] as const;

/** Reads the body of a create or update, with defaults. Throws 400 with all issues. */
export function readDraft(body: NewMock, hasCollection: (id: string) => boolean): MockDraft {
  const issues: ErrorDetail[] = [];
  const isShorthand = body.condition === undefined && SHORTHAND.some((name) => body[name] !== undefined);
  const read = parseRuleCondition(body, "body");
  const condition = read.ok ? read.condition : undefined;
  if (!read.ok) issues.push(...read.issues);
  const config = draftConfig(body, isShorthand, issues);
  const name = body.name?.trim() ?? (isShorthand ? shorthandName(body) : undefined);
  if (name === undefined) issues.push({ path: "body/name", message: "is required" });
  const collectionId = body.collection_id ?? null;
  if (collectionId !== null && !hasCollection(collectionId)) {
    issues.push({ path: "body/collection_id", message: "is not a collection" });
  }
  if (condition === undefined || config === undefined || name === undefined || issues.length > 0) {
    throw validationError(issues);
  }
  const draft: MockDraft = {
    name,
    description: body.description ?? null,
    tags: body.tags ?? [],
    collectionId,
    condition,
    responseConfig: config,
    enabled: body.enabled ?? true,
    priority: body.priority ?? 100,
    expiration: body.expiration ?? null,
    responseSchema: body.response_schema ?? null,
  };
  const found = draftIssues(draft, "body");
  if (found.length > 0) throw validationError(found);
  return draft;
}

function draftConfig(body: NewMock, isShorthand: boolean, issues: ErrorDetail[]): MockResponseConfig | undefined {
  const flat = FLAT.filter((name) => body[name] !== undefined);
  const given = [body.response, body.response_config, flat[0]].filter((each) => each !== undefined);
  if (given.length > 1) {
    const path = body.response_config === undefined || flat[0] === undefined ? "response" : flat[0];
    issues.push({ path: `body/${path}`, message: "the response is given twice; use one form" });
  }
  if (body.response_config !== undefined) return filledConfig(body.response_config);
  if (body.response !== undefined) return { type: "single", response: filledResponse(body.response) };
  if (flat.length > 0 || isShorthand) return { type: "single", response: filledResponse(flatResponseOf(body)) };
  issues.push({ path: "body/response", message: "is required" });
  return undefined;
}

function flatResponseOf(body: NewMock): NewMockResponse {
  return Object.fromEntries(FLAT.flatMap((name) => (body[name] === undefined ? [] : [[name, body[name]]])));
}

function shorthandName(body: NewMock): string {
  const pattern = body.url_pattern ?? body.path_pattern ?? body.host_pattern ?? "everything";
  return `${body.method ?? "Any method"} ${pattern}`.slice(0, 255);
}

/** Checks a rule beyond its schema; paths begin with `prefix`. */
export function draftIssues(
  draft: Pick<MockDraft, "condition" | "responseConfig" | "responseSchema">,
  prefix: string,
): ErrorDetail[] {
  const { responseConfig, responseSchema } = draft;
  const issues = conditionIssues(draft.condition, `${prefix}/condition`);
  issues.push(...configIssues(responseConfig, `${prefix}/response_config`));
  const responses = responsesOf(responseConfig);
  for (const [index, response] of responses.entries()) {
    const path = `${prefix}/${responsePath(responseConfig, index)}`;
    issues.push(...responseIssues(response, path));
  }
  const problem = responseSchema === null ? undefined : schemaProblem(responseSchema);
  if (problem !== undefined) issues.push({ path: `${prefix}/response_schema`, message: problem });
  else if (responseSchema !== null) {
    for (const [index, response] of responses.entries()) {
      const misfit = bodyProblem(responseSchema, response);
      const path = `${prefix}/${responsePath(responseConfig, index)}/body`;
      if (misfit !== undefined) issues.push({ path, message: misfit });
    }
  }
  return issues;
}

function responsePath(config: MockResponseConfig, index: number): string {
  switch (config.type) {
    case "single":
      return "response_config/response";
    case "sequence":
      return `response_config/responses/${index}`;
    case "probabilistic":
      return `response_config/responses/${index}/response`;
    case "conditional":
      return index < config.conditions.length
        ? `response_config/conditions/${index}/response`
        : "response_config/default_response";
  }
}

function conditionIssues(condition: Condition, path: string): ErrorDetail[] {
  const read = parseCondition(condition, path);
  if (!read.ok) return [...read.issues];
  if (compileCondition(condition).atRequest.possible) return [];
  return [{ path, message: "depends on the response, which mocks do not have" }];
}

function configIssues(config: MockResponseConfig, path: string): ErrorDetail[] {
  if (config.type === "probabilistic" && config.responses.every(({ weight }) => weight === 0)) {
    return [{ path: `${path}/responses`, message: "at least one weight must be above 0" }];
  }
  if (config.type !== "conditional") return [];
  return config.conditions.flatMap(({ condition }, index) =>
    requestConditionIssues(condition, `${path}/conditions/${index}/condition`),
  );
}

function requestConditionIssues(condition: MockRequestCondition, path: string): ErrorDetail[] {
  return conditionIssues(conditionOfResponse(condition), path);
}

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

function responseIssues(response: MockResponse, path: string): ErrorDetail[] {
  const issues: ErrorDetail[] = [];
  for (const [name, value] of headerPairs(response.headers)) {
    const field = `${path}/headers/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
    if (!TOKEN.test(name)) issues.push({ path: field, message: "is not the name of a header field" });
    if (/[\u0000-\u0008\u000a-\u001f\u007f]/.test(value)) {
      issues.push({ path: field, message: "has a line break or another control character in its value" });
    }
  }
  const bodies = (["body", "body_base64", "body_file"] as const).filter((name) => response[name] !== null);
  if (bodies.length > 1) issues.push({ path: `${path}/${bodies[1]}`, message: `cannot be combined with ${bodies[0]}` });
  if (response.body !== null && Buffer.byteLength(response.body) > MOCK_LIMITS.bodyBytes) {
    issues.push({ path: `${path}/body`, message: `is larger than ${MOCK_LIMITS.bodyBytes} bytes` });
  }
  if (response.body_base64 !== null && !isBase64(response.body_base64)) {
    issues.push({ path: `${path}/body_base64`, message: "is not base64" });
  }
  return issues;
}

function isBase64(text: string): boolean {
  return text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text);
}

/**
 * Why a text is unusable as JSON Schema: invalid JSON, an invalid schema (2020-12, or draft 6 or 7 when declared), an
 * external reference, or a pattern without linear time. Undefined for a usable one.
 */
export function schemaProblem(text: string): string | undefined {
  const compiled = compiledSchema(text);
  return typeof compiled === "string" ? compiled : undefined;
}

/**
 * Why a response body does not fit a valid schema. Responses with an error status, without a body, from a file or a
 * template are not checked: their content is unknown here or intended.
 */
export function bodyProblem(text: string, response: MockResponse): string | undefined {
  if (response.status_code >= 400 || response.body === null || isFilledIn(response, response.body)) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(response.body);
  } catch {
    return "is not JSON, so it cannot fit response_schema";
  }
  const compiled = compiledSchema(text);
  if (typeof compiled === "string") return compiled;
  try {
    if (compiled(value)) return undefined;
  } catch (error) {
    return error instanceof RangeError ? "is nested too deeply for response_schema" : String(error);
  }
  const [first] = compiled.errors ?? [];
  return `does not fit response_schema: ${first === undefined ? "it is not valid" : sentence(first)}`;
}

function isFilledIn(response: MockResponse, body: string): boolean {
  return response.template_enabled && body.includes("{{");
}

function compiledSchema(text: string): ValidateFunction | string {
  let schema: unknown;
  try {
    schema = JSON.parse(text);
  } catch {
    return "is not JSON";
  }
  if (typeof schema !== "boolean" && (typeof schema !== "object" || schema === null || Array.isArray(schema))) {
    return "is not a JSON Schema";
  }
  const draft = typeof schema === "object" ? (schema as { $schema?: unknown }).$schema : undefined;
  const isOld = typeof draft === "string" && /draft-0[67]/.test(draft);
  try {
    const ajv = isOld ? new Ajv(options) : new Ajv2020(options);
    return ajv.compile(schema);
  } catch (error) {
    return `cannot be used as a JSON Schema: ${error instanceof Error ? error.message.slice(0, 300) : String(error)}`;
  }
}

function sentence(error: ErrorObject): string {
  return `${error.instancePath === "" ? "the body" : error.instancePath} ${error.message ?? "is not valid"}`;
}
