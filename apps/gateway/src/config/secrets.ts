import { createHash } from "node:crypto";
import { isAbsolute } from "node:path";
import { Secret } from "@headworks/contract-kit";
import type { IssueCode } from "@headworks/gateway-contract";
import type { FileReader } from "./file-reader.ts";

export type SecretForm =
  | { readonly kind: "literal" }
  | { readonly kind: "environment"; readonly name: string }
  | { readonly kind: "file"; readonly path: string }
  /** The redacted form of a literal. */
  | { readonly kind: "placeholder" }
  | { readonly kind: "malformed"; readonly why: string };

/** Maximum size of a secret file. */
export const MAX_SECRET_BYTES = 1024 * 1024;
const PLACEHOLDER = /\$\{redacted:/;

/** Classifies a secret field. A text with `${` that is no complete reference is malformed, never a literal. */
export function secretForm(text: string): SecretForm {
  if (!text.includes("${")) return { kind: "literal" };
  if (PLACEHOLDER.test(text)) return { kind: "placeholder" };
  if (!text.startsWith("${")) return malformed("a reference has to be the whole value");
  const end = text.indexOf("}");
  if (end === -1) return malformed("its closing brace is missing");
  if (end !== text.length - 1) return malformed("a reference has to be the whole value");
  const inner = text.slice(2, -1);
  if (inner.startsWith("file:")) {
    const path = inner.slice("file:".length);
    return isAbsolute(path) ? { kind: "file", path } : malformed("the path of a file has to be absolute");
  }
  if (/^[A-Za-z_][A-Za-z0-9_]*$/.test(inner)) return { kind: "environment", name: inner };
  return malformed("a variable's name has letters, digits and _, and does not begin with a digit");
}

/** True for references and placeholders, which may be shown. */
export function isReference(text: string): boolean {
  const { kind } = secretForm(text);
  return kind === "environment" || kind === "file" || kind === "placeholder";
}

function malformed(why: string): SecretForm {
  return { kind: "malformed", why: `${why}; write \${NAME} or \${file:/path}` };
}

/** `${redacted:sha256:<8 hex>}`: distinguishes literals without revealing them. */
export function redactedText(literal: string): string {
  return `\${redacted:sha256:${createHash("sha256").update(literal).digest("hex").slice(0, 8)}}`;
}

/** The result of resolving a secret; `message` completes a sentence that begins with the field. */
export type SecretOutcome =
  | { readonly ok: true; readonly secret: Secret }
  | {
      readonly ok: false;
      readonly code: IssueCode;
      readonly message: string;
      /** The referenced variable or file does not exist on this machine. */
      readonly isAbsent?: boolean;
    };

/** Resolves secrets for one build of a generation, each reference once, so that all users see the same value. */
export class SecretResolver {
  readonly #environment: Readonly<Record<string, string | undefined>>;
  readonly #files: FileReader;
  readonly #outcomes = new Map<string, SecretOutcome>();

  constructor(environment: Readonly<Record<string, string | undefined>>, files: FileReader) {
    this.#environment = environment;
    this.#files = files;
  }

  resolve(text: string): SecretOutcome {
    let outcome = this.#outcomes.get(text);
    if (outcome === undefined) this.#outcomes.set(text, (outcome = this.#find(text)));
    return outcome;
  }

  /** Adds all resolved values to a hash. */
  digestInto(hash: { update(text: string): unknown }): void {
    for (const [text, outcome] of [...this.#outcomes].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
      if (outcome.ok) hash.update(JSON.stringify([text, outcome.secret.reveal()]));
    }
  }

  #find(text: string): SecretOutcome {
    const form = secretForm(text);
    switch (form.kind) {
      case "literal":
        return { ok: true, secret: new Secret(text) };
      case "environment":
        return this.#fromEnvironment(form.name);
      case "file":
        return this.#fromFile(form.path);
      case "placeholder":
        return {
          ok: false,
          code: "redacted_placeholder",
          message: "holds the placeholder that replaces a secret in output; write the secret or a reference",
        };
      case "malformed":
        return { ok: false, code: "secret_malformed", message: `is not a correct secret reference: ${form.why}` };
    }
  }

  #fromEnvironment(name: string): SecretOutcome {
    const value = Object.hasOwn(this.#environment, name) ? this.#environment[name] : undefined;
    if (value !== undefined && value !== "") return { ok: true, secret: new Secret(value) };
    return unresolved(`the environment variable ${name} is ${value === undefined ? "not set" : "empty"}`, true);
  }

  #fromFile(path: string): SecretOutcome {
    const read = this.#files.read(path, MAX_SECRET_BYTES);
    if (!read.ok) return unresolved(`the file ${path} ${read.why}`, read.isAbsent);
    let text: string;
    try {
      text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(read.bytes);
    } catch {
      return unresolved(`the file ${path} is not UTF-8`);
    }
    const value = text.replace(/\r?\n$/, "");
    return value === "" ? unresolved(`the file ${path} is empty`) : { ok: true, secret: new Secret(value) };
  }
}

function unresolved(why: string, isAbsent = false): SecretOutcome {
  return { ok: false, code: "secret_unresolved", message: `cannot be resolved: ${why}`, isAbsent };
}
