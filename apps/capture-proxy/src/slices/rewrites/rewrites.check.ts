import type { NewRewriteRule, RewriteAction, RewriteRuleUpdate } from "@headworks/capture-contract";
import { checkPattern, compilePattern, readReplacement } from "@headworks/linear-pattern";
import { fieldProblem } from "#rules/field-problem.ts";
import { valueProblem } from "#rules/header-edit.ts";
import type { MappedFiles } from "./mapped-files.ts";
import { readFlags } from "./text-edits.ts";
import { parseUrlTarget } from "#rules/url-edit.ts";

/** `path` is a JSON pointer into the rule. */
export interface RuleIssue {
  readonly path: string;
  readonly message: string;
}

/** Actions of one phase only. */
const ON_REQUESTS = new Set(["url_rewrite", "map_to_url", "query_param", "remove_query_param", "set_method"]);
const ON_RESPONSES = new Set(["set_status"]);

/** Checks of actions beyond the schema. */
export function actionIssues(
  { rewrites, direction }: Pick<NewRewriteRule | RewriteRuleUpdate, "rewrites" | "direction">,
  files: MappedFiles,
): RuleIssue[] {
  return rewrites.flatMap((action, index) => {
    const issues: RuleIssue[] = directionIssues(action, direction);
    issues.push(...issuesOf(action, files));
    return issues.map(({ path, message }) => ({ path: `/rewrites/${index}${path}`, message }));
  });
}

function directionIssues({ type }: RewriteAction, direction: string): RuleIssue[] {
  if (direction === "response" && ON_REQUESTS.has(type)) {
    return [{ path: "/type", message: "changes requests, but the direction of the rule is response" }];
  }
  if (direction === "request" && ON_RESPONSES.has(type)) {
    return [{ path: "/type", message: "changes responses, but the direction of the rule is request" }];
  }
  if (direction !== "both" && type === "allow_cors") {
    const message = `answers preflights and changes responses, but the direction of the rule is ${direction}; it must be both`;
    return [{ path: "/type", message }];
  }
  return [];
}

function issuesOf(action: RewriteAction, files: MappedFiles): RuleIssue[] {
  switch (action.type) {
    case "url_rewrite":
    case "body_rewrite":
      return textIssues(action);
    case "header_rewrite":
      return [...about("/name", fieldProblem(action.name)), ...textIssues(action)];
    case "set_header":
      return [...about("/name", fieldProblem(action.name)), ...about("/value", valueProblem(action.value))];
    case "remove_header":
      return about("/name", fieldProblem(action.name));
    case "map_to_url": {
      const target = parseUrlTarget(action.url);
      return typeof target === "string" ? about("/url", target) : [];
    }
    case "map_to_file":
      return about("/path", files.problem(action.path));
    case "set_method":
      return about("/method", action.method === "CONNECT" ? "cannot be CONNECT, which opens tunnels" : undefined);
    case "set_body":
      return about("/content", action.base64 === true ? base64Problem(action.content) : undefined);
    case "json_patch":
      return action.patch.flatMap((operation, index) => {
        const needsFrom = operation.op === "move" || operation.op === "copy";
        const needsValue = operation.op === "add" || operation.op === "replace" || operation.op === "test";
        return [
          ...about(`/patch/${index}/from`, needsFrom && operation.from === undefined ? "is required" : undefined),
          ...about(`/patch/${index}/value`, needsValue && operation.value === undefined ? "is required" : undefined),
        ];
      });
    case "json_merge":
      return about("/patch", action.patch === undefined ? "is required" : undefined);
    default:
      return [];
  }
}

function about(path: string, message: string | undefined): RuleIssue[] {
  return message === undefined ? [] : [{ path, message }];
}

function textIssues(action: { pattern: string; replacement: string; flags?: string }): RuleIssue[] {
  const { source, flags, skipped } = readFlags(action.pattern, action.flags ?? "");
  const check = checkPattern(source, flags);
  if (!check.ok) {
    const { message, start } = check.error;
    return about("/pattern", `${message} (at character ${start + skipped + 1})`);
  }
  const read = readReplacement(action.replacement, compilePattern(source, flags));
  if (read.ok) return [];
  const { message, start } = read.error;
  return about("/replacement", `${message} (at character ${start + 1})`);
}

function base64Problem(text: string): string | undefined {
  const isBase64 = /^[A-Za-z0-9+/]*={0,2}$/.test(text) && text.length % 4 === 0;
  return isBase64 ? undefined : "is not standard base64";
}
