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
 * The text of a document after a change: `text` says `before`, in the normal form, and what is answered says `after`.
 * YAML stays YAML, with its comments and its order where nothing changed; JSON stays JSON. Where a text is too intricate
 * to be changed in place (aliases of what changes), all of it is written anew.
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
  // JSON is YAML, too, and is written in a tenth of the time while requests wait.
  return text.length <= MAX_LAID_OUT ? toYaml(after) : `${toJson(after, 2)}\n`;
}

/** Whether a text says the same as a document in its normal form, however it is written. */
export function* saysSteps(text: string, document: DocumentInput): Steps<boolean> {
  const { input, issues } = yield* readingSteps(text, ".");
  yield;
  return issues.length === 0 && sameDocument(input, document);
}

/** The text with as little changed as possible; undefined where that cannot be told. */
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

/** The normal form with the settings that a text has at its root there. */
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
  // A section whose every line is commented out has no value, and means the same as one that is not there.
  const valued = Object.fromEntries(Object.entries(found).filter(([, value]) => value !== null));
  return toJson(normalDocument(valued)) === toJson(normalDocument(wanted));
}

/** What nodes stand for, without a schema. */
function plainValue(source: YamlSource, node: unknown): unknown {
  if (isAlias(node)) return plainValue(source, source.resolve(node));
  if (isSeq(node)) return node.items.map((item) => plainValue(source, item));
  if (isMap(node)) {
    return Object.fromEntries(node.items.map(({ key, value }) => [keyText(key), plainValue(source, value)]));
  }
  return isScalar(node) ? node.value : node;
}
