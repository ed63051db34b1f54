import type { BreakpointDecision, Modification, Replacement } from "@headworks/capture-contract";
import { validationError } from "#api/api-error.ts";
import { fieldProblem } from "#rules/field-problem.ts";

/** One change to a paused message; `path` is the part of the request body it came from. */
export type EditStep = { readonly path: string } & (
  | { readonly kind: "set-method"; readonly method: string }
  | { readonly kind: "set-url"; readonly url: string }
  | { readonly kind: "set-path"; readonly target: string }
  | { readonly kind: "set-status"; readonly status: number }
  | { readonly kind: "set-reason"; readonly reason: string | null }
  | { readonly kind: "set-field"; readonly name: string; readonly value: string }
  | { readonly kind: "remove-field"; readonly name: string }
  | { readonly kind: "set-all-fields"; readonly pairs: readonly (readonly [string, string])[] }
  | { readonly kind: "set-shown-fields"; readonly shown: Readonly<Record<string, string>> }
  | { readonly kind: "set-body"; readonly body: GivenBody }
  | { readonly kind: "replace-in-body"; readonly pattern: string; readonly replacement: string }
  | { readonly kind: "replace-in-url"; readonly pattern: string; readonly replacement: string }
);

export type GivenBody =
  | { readonly form: "text"; readonly text: string }
  | { readonly form: "bytes"; readonly bytes: Buffer };

export type Decision =
  | { readonly action: "continue" }
  | { readonly action: "modify"; readonly steps: readonly EditStep[]; readonly delayMs: number }
  | { readonly action: "abort" }
  | {
      readonly action: "respond";
      readonly status: number;
      readonly reason: string | undefined;
      readonly fields: readonly (readonly [string, string])[];
      readonly body: GivenBody;
    };

type Flat = Omit<BreakpointDecision, "action" | "decision">;

/** Parses a decision in any accepted form; throws 400 for contradictions. */
export function parseDecision(body: BreakpointDecision): Decision {
  const { action, decision, ...outer } = body;
  const { name, parts, at } = chosen(action, decision, outer);
  switch (name) {
    case "continue":
    case "allow":
      return refuseParts(parts, at, { action: "continue" });
    case "abort":
    case "reject":
      return refuseParts(parts, at, { action: "abort" });
    case "modify":
      return modify(parts, at);
    case "respond":
      return respond(parts, at);
  }
}

type ActionName = NonNullable<BreakpointDecision["decision"]>;

function chosen(
  action: BreakpointDecision["action"],
  decision: BreakpointDecision["decision"],
  outer: Flat,
): { name: ActionName; parts: Flat; at: string } {
  if (action !== undefined && decision !== undefined) {
    throw validationError([{ path: "body/decision", message: "cannot be combined with action" }]);
  }
  if (typeof action === "object") {
    const [extra] = given(outer);
    if (extra !== undefined) {
      throw validationError([
        { path: `body/${extra}`, message: "cannot be combined with action, which holds the decision" },
      ]);
    }
    const { action: name, ...parts } = action;
    return { name, parts, at: "body/action" };
  }
  const name = action ?? decision;
  if (name === undefined) throw validationError([{ path: "body/action", message: "is required" }]);
  return { name, parts: outer, at: "body" };
}

function given(parts: Flat): string[] {
  return Object.entries(parts).flatMap(([name, value]) => (value === undefined ? [] : [name]));
}

/** Empty fields are ignored; others would be lost silently, so they are refused. */
function refuseParts(parts: Flat, at: string, decision: Decision): Decision {
  const isEmpty = (value: unknown): boolean =>
    value === null || value === undefined || (typeof value === "object" && Object.keys(value).length === 0);
  const extra = Object.entries(parts).find(([, value]) => !isEmpty(value));
  if (extra !== undefined) {
    throw validationError([{ path: `${at}/${extra[0]}`, message: `is not allowed with ${decision.action}` }]);
  }
  return decision;
}

function modify(parts: Flat, at: string): Decision {
  const { modifications, request, response, ...flat } = parts;
  const steps: EditStep[] = [];
  let delayMs = 0;
  if (Array.isArray(modifications)) {
    for (const [index, modification] of modifications.entries()) {
      const path = `${at}/modifications/${index}`;
      const step = stepOf(modification, path);
      if (step.kind === "delay") delayMs += step.ms;
      else steps.push(step);
    }
  } else if (modifications !== undefined) {
    steps.push(...replacementSteps(modifications, `${at}/modifications`));
  }
  if (request !== undefined && response !== undefined && response !== null) {
    throw validationError([
      { path: `${at}/response`, message: "cannot be combined with request: only one of them is paused" },
    ]);
  }
  if (request !== undefined) steps.push(...replacementSteps(request, `${at}/request`));
  if (response !== undefined && response !== null) steps.push(...replacementSteps(response, `${at}/response`));
  steps.push(...replacementSteps(flat, at));
  return { action: "modify", steps, delayMs };
}

/** Fields of each kind of modification. */
const TAKES: Readonly<Record<Modification["type"], readonly (keyof Modification)[]>> = {
  set_header: ["name", "value"],
  remove_header: ["name"],
  set_body: ["content"],
  set_body_base64: ["content"],
  set_method: ["method"],
  set_url: ["url"],
  set_path: ["path"],
  set_status_code: ["code"],
  regex_replace: ["pattern", "replacement"],
  url_regex_replace: ["pattern", "replacement"],
  delay: ["ms"],
};

function stepOf(modification: Modification, path: string): EditStep | { readonly kind: "delay"; readonly ms: number } {
  const takes = TAKES[modification.type];
  for (const name of takes) {
    if (modification[name] === undefined) throw validationError([{ path: `${path}/${name}`, message: "is required" }]);
  }
  for (const name of Object.keys(modification)) {
    if (name !== "type" && !takes.includes(name as keyof Modification)) {
      throw validationError([{ path: `${path}/${name}`, message: `is not allowed with ${modification.type}` }]);
    }
  }
  const { name = "", value = "", content = "", pattern = "", replacement = "", ms = 0 } = modification;
  switch (modification.type) {
    case "set_header":
      return { path, kind: "set-field", name: changeable(name, path), value };
    case "remove_header":
      return { path, kind: "remove-field", name: changeable(name, path) };
    case "set_body":
      return { path, kind: "set-body", body: { form: "text", text: content } };
    case "set_body_base64":
      return { path, kind: "set-body", body: { form: "bytes", bytes: fromBase64(content, `${path}/content`) } };
    case "set_method":
      return { path, kind: "set-method", method: modification.method ?? "" };
    case "set_url":
      return { path, kind: "set-url", url: modification.url ?? "" };
    case "set_path":
      return { path, kind: "set-path", target: modification.path ?? "" };
    case "set_status_code":
      return { path, kind: "set-status", status: modification.code ?? 0 };
    case "regex_replace":
      return { path, kind: "replace-in-body", pattern, replacement };
    case "url_regex_replace":
      return { path, kind: "replace-in-url", pattern, replacement };
    case "delay":
      return { kind: "delay", ms };
  }
}

/** Whole messages may repeat fields that cannot be changed; an explicit change of one is refused. */
function changeable(name: string, path: string): string {
  const problem = fieldProblem(name);
  if (problem !== undefined) throw validationError([{ path: `${path}/name`, message: problem }]);
  return name;
}

function replacementSteps(wanted: Replacement, at: string): EditStep[] {
  const steps: EditStep[] = [];
  const { method, url, path, status_code: status, status_message: reason, headers, headers_list: list, body } = wanted;
  if (method !== undefined) steps.push({ path: `${at}/method`, kind: "set-method", method });
  if (path !== undefined) steps.push({ path: `${at}/path`, kind: "set-path", target: path });
  if (url !== undefined) steps.push({ path: `${at}/url`, kind: "set-url", url });
  if (status !== undefined) steps.push({ path: `${at}/status_code`, kind: "set-status", status });
  if (reason !== undefined) steps.push({ path: `${at}/status_message`, kind: "set-reason", reason });
  if (headers !== undefined) steps.push({ path: `${at}/headers`, kind: "set-shown-fields", shown: headers });
  if (list !== undefined) steps.push({ path: `${at}/headers_list`, kind: "set-all-fields", pairs: list });
  if (body !== undefined && body !== null) {
    steps.push({ path: `${at}/body`, kind: "set-body", body: givenBody(body, wanted.body_encoding, `${at}/body`) });
  }
  return steps;
}

function respond(parts: Flat, at: string): Decision {
  const refused = (["modifications", "request", "response", "method", "url", "path"] as const).find(
    (name) => parts[name] !== undefined && parts[name] !== null,
  );
  if (refused !== undefined) {
    throw validationError([{ path: `${at}/${refused}`, message: "is not allowed with respond" }]);
  }
  const { headers, headers_list: list, body, body_encoding: encoding } = parts;
  if (headers !== undefined && list !== undefined) {
    throw validationError([{ path: `${at}/headers_list`, message: "cannot be combined with headers" }]);
  }
  return {
    action: "respond",
    status: parts.status_code ?? 200,
    reason: parts.status_message ?? undefined,
    fields: list ?? Object.entries(headers ?? {}).flatMap(([name, value]) => separated(name, value)),
    body: givenBody(body ?? "", encoding, `${at}/body`),
  };
}

/** Cookies cannot be joined by commas and are shown joined by line ends; other values are one field. */
export function separated(name: string, value: string): [string, string][] {
  const values = name.toLowerCase() === "set-cookie" ? value.split("\n") : [value];
  return values.map((part) => [name, part]);
}

const MARK = "base64:";

function givenBody(body: string, encoding: "utf8" | "base64" | null | undefined, path: string): GivenBody {
  if (encoding === "base64") {
    return { form: "bytes", bytes: fromBase64(body.startsWith(MARK) ? body.slice(MARK.length) : body, path) };
  }
  if (encoding !== "utf8" && body.startsWith(MARK) && isBase64(body.slice(MARK.length))) {
    return { form: "bytes", bytes: Buffer.from(body.slice(MARK.length), "base64") };
  }
  return { form: "text", text: body };
}

function isBase64(text: string): boolean {
  const plain = text.replace(/=+$/, "");
  return text.length % 4 === 0 && Buffer.from(text, "base64").toString("base64").replace(/=+$/, "") === plain;
}

function fromBase64(text: string, path: string): Buffer {
  if (!isBase64(text)) throw validationError([{ path, message: "is not standard base64" }]);
  return Buffer.from(text, "base64");
}
