import type { DocumentInput } from "@headworks/gateway-contract";
import { mapAnnotated } from "./annotated-fields.ts";
import { patchedTextSteps } from "./patched-text.ts";
import { documentSchema, readingSteps } from "./read-document.ts";
import { isReference, redactedText } from "./secrets.ts";
import type { Steps } from "./steps.ts";
import { normalDocument, redactedDocument, toJson } from "./write-document.ts";

/** Longer ones are archived as JSON where they have inline secrets: it is written in a tenth of the time while requests wait. */
const MAX_LAID_OUT = 256 * 1024;

/** What is shorter is in most texts by chance, and nobody's secret: fields that routes set may have any value. */
const MIN_TELLING = 4;

/** A document as it may lie outside of its own file. */
export interface ArchivedText {
  readonly text: string;
  /** False where placeholders stand for inline secrets. */
  readonly isWhole: boolean;
}

/**
 * A text as it was written, with its comments and its secret references; placeholders stand for inline secrets. `input` is
 * what the text says, in the normal form.
 */
export function* archivedTextSteps(text: string, input: DocumentInput): Steps<ArchivedText> {
  const secrets = inlineSecrets(input);
  if (secrets.size === 0) return { text, isWhole: true };
  const redacted = redactedDocument(input);
  const archived = text.length > MAX_LAID_OUT ? undefined : yield* patchedTextSteps(text, input, redacted);
  // A comment may repeat a secret, and an anchor that nobody uses may keep one.
  const telling = [...secrets.values()].filter(({ length }) => length >= MIN_TELLING);
  const isClean = archived !== undefined && !telling.some((secret) => archived.includes(secret));
  return { text: isClean ? archived : toJson(redacted), isWhole: false };
}

/**
 * An archived text with the inline secrets that `running` has, too. A placeholder tells by its hash which secret it stands
 * for; those of secrets that are gone stay.
 */
export function* restoredTextSteps(archived: string, running: DocumentInput): Steps<string> {
  const secrets = inlineSecrets(running);
  if (secrets.size === 0 || !archived.includes("${redacted:")) return archived;
  const { input } = yield* readingSteps(archived, ".");
  if (input === undefined) return archived;
  yield;
  const normal = normalDocument(input);
  const restored = mapAnnotated(documentSchema, normal, "x-secret", (text) => secrets.get(text) ?? text);
  return yield* patchedTextSteps(archived, normal, restored);
}

/** The inline secrets of a document by their placeholders. */
function inlineSecrets(document: DocumentInput): Map<string, string> {
  const secrets = new Map<string, string>();
  mapAnnotated(documentSchema, document, "x-secret", (text) => {
    if (!isReference(text)) secrets.set(redactedText(text), text);
    return text;
  });
  return secrets;
}
