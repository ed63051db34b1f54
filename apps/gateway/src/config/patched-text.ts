import type { DocumentInput } from "@headworks/gateway-contract";
import { GatewaySettings } from "@headworks/gateway-contract";
import { isAlias, isMap, isScalar, isSeq } from "yaml";
import { readingSteps } from "./read-document.ts";
import { isMembers, TextEdits, type Members } from "./text-edits.ts";
import { normalDocument, toJson, toYaml } from "./write-document.ts";
import type { Steps } from "./steps.ts";
import { keyText, yamlSteps, type YamlSource } from "./yaml-source.ts";

const MAX_LAID_OUT = 256 * 1024;

/**
 * Changes a text that parses to `before` into one that parses to `after`, both in normal form. YAML keeps its comments
 * and order where nothing changed; JSON stays JSON. A text that cannot be edited in place, such as one with aliases of
 * changed values, is rewritten completely.
 */
export function* patchedTextSteps(text: string, before: DocumentInput, after: unknown): Steps<string> {
  if (text.trimStart().startsWith("{") || !isMembers(after)) return `${toJson(after, 2)}\n`;
  const source = yield* yamlSteps(text);
  const edited = editedText(text, source, before, after);
  if (edited !== undefined) {
    const outcome = yield* yamlSteps(edited);
    yield;
    if (outcome.issues.length === 0 && sameDocument(plainValue(outcome, outcome.root), after)) return edited;
  }
  // JSON is valid YAML and is written ten times as fast; requests are blocked meanwhile.
  return text.length <= MAX_LAID_OUT ? toYaml(after) : `${toJson(after, 2)}\n`;
}

/** True if the text parses to this document in normal form. */
export function* saysSteps(text: string, document: DocumentInput): Steps<boolean> {
  const { input, issues } = yield* readingSteps(text, ".");
  yield;
  return issues.length === 0 && sameDocument(input, document);
}

/** The minimal edit of the text; undefined if it cannot be determined. */
function editedText(text: string, { root }: YamlSource, before: Members, after: Members): string | undefined {
  if (!isMap(root) || root.flow === true) return undefined;
  const edits = new TextEdits(text);
  const atRoot = new Set(root.items.map(({ key }) => keyText(key)).filter((name) => isSetting(name)));
  try {
    edits.members(root, asWritten(before, atRoot), asWritten(after, atRoot));
  } catch {
    return undefined;
  }
  return edits.applied();
}

function isSetting(name: string | undefined): boolean {
  return name !== undefined && Object.hasOwn(GatewaySettings.properties, name);
}

/** The normal form with gateway settings moved to the root if the text has them there. */
function asWritten(document: Members, atRoot: ReadonlySet<string | undefined>): Members {
  const { gateway, ...sections } = document;
  if (!isMembers(gateway)) return document;
  const settings = Object.entries(gateway);
  const nested = settings.filter(([name]) => !atRoot.has(name));
  return {
    ...sections,
    ...(nested.length === 0 ? {} : { gateway: Object.fromEntries(nested) }),
    ...Object.fromEntries(settings.filter(([name]) => atRoot.has(name))),
  };
}

function sameDocument(found: unknown, wanted: DocumentInput): boolean {
  if (!isMembers(found)) return false;
  // A section with all lines commented out has no value and counts as absent.
  const valued = Object.fromEntries(Object.entries(found).filter(([, value]) => value !== null));
  return toJson(normalDocument(valued)) === toJson(normalDocument(wanted));
}

/** Values of nodes, without a schema. */
function plainValue(source: YamlSource, node: unknown): unknown {
  if (isAlias(node)) return plainValue(source, source.resolve(node));
  if (isSeq(node)) return node.items.map((item) => plainValue(source, item));
  if (isMap(node)) {
    return Object.fromEntries(node.items.map(({ key, value }) => [keyText(key), plainValue(source, value)]));
  }
  return isScalar(node) ? node.value : node;
}
