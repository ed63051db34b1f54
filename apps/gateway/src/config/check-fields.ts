import { isUnspecified, parseNetwork } from "@headworks/host-patterns";
import type { ConfigDocument } from "@headworks/gateway-contract";
import { wireText } from "@headworks/http1";
import type { IssueReport } from "#slice.ts";
import { annotatedFields } from "./annotated-fields.ts";
import { networkForm } from "./other-gateways.ts";
import type { Place } from "./pointer.ts";
import { documentSchema } from "./read-document.ts";
import type { SecretResolver } from "./secrets.ts";
import { named } from "./structure.ts";

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** Field values of RFC 9110 section 5.5, without space at their ends, as they stand on the wire. */
const FIELD_VALUE = /^(?:[!-~\x80-\xff](?:[\t -~\x80-\xff]*[!-~\x80-\xff])?)?$/;

/** A whole or embedded secret reference, as {@link secretForm} reads it. */
const REFERENCE = /\$\{(?:[A-Za-z_][A-Za-z0-9_]*|file:[^}]*)\}/;
/** Texts that a route gives to its clients as they are. */
const FREE_TEXTS = new Set(["body", "message"]);

/** Names secret references where none is resolved: what stands there would be taken as it is. */
export function checkMisplacedReferences(document: ConfigDocument, report: IssueReport): void {
  const texts: Place[] = [];
  for (const [section, value] of Object.entries(document)) collectReferences(value, [section], texts);
  if (texts.length === 0) return;
  const secrets = new Set(annotatedFields(documentSchema, document, "x-secret").map(({ place }) => place.join("\n")));
  for (const place of texts) {
    const field = String(place.at(-1));
    // There `${name}` is what a pattern took.
    if (field === "substitution" || secrets.has(place.join("\n"))) continue;
    const message = `${named(place)} has a secret reference, which is resolved in fields for secrets alone`;
    if (FREE_TEXTS.has(field)) report.warning("secret_malformed", place, `${message}; clients get it as it stands`);
    else report.error("secret_malformed", place, `${message}; write the value`);
  }
}

/** `place` is where the walk is; one for all, since thousands of values are passed for each that is found. */
function collectReferences(value: unknown, place: (string | number)[], found: Place[]): void {
  if (typeof value === "string") {
    if (value.includes("${") && REFERENCE.test(value)) found.push([...place]);
    return;
  }
  if (typeof value !== "object" || value === null) return;
  for (const [step, member] of Array.isArray(value) ? value.entries() : Object.entries(value)) {
    place.push(step);
    collectReferences(member, place, found);
    place.pop();
  }
}

/** Checks what the schema marks wherever it stands: secret references, header names and values, networks. */
export function checkMarkedFields(document: ConfigDocument, report: IssueReport, secrets: SecretResolver): void {
  for (const { place, value } of annotatedFields(documentSchema, document, "x-secret")) {
    const outcome = secrets.resolve(String(value));
    if (!outcome.ok) report.error(outcome.code, place, `${named(place)} ${outcome.message}`);
  }
  for (const { place, value } of annotatedFields(documentSchema, document, "x-cidr")) {
    const text = String(value);
    const network = parseNetwork(text);
    if (network === undefined) {
      const message = `${named(place)} must be an IP address or a network such as 10.0.0.0/8${networkForm(text)}`;
      report.error("bad_cidr", place, message);
    } else if (!text.includes("/") && /(?:\.0|::)$/.test(text) && !isUnspecified(text)) {
      report.warning(
        "bad_cidr",
        place,
        `${named(place)} is one address; write a length behind it for a network, such as ${text}/${text.includes(":") ? 64 : 24}`,
      );
    }
  }
  for (const { place, value, schema } of annotatedFields(documentSchema, document, "x-header-map")) {
    const isSecret = Object.values(schema.patternProperties ?? {}).some((inner) => inner["x-secret"] === true);
    for (const [name, text] of Object.entries(value as Record<string, string>)) {
      checkHeader(name, text, [...place, name], report, isSecret ? secrets : undefined);
    }
  }
  for (const { place, value } of annotatedFields(documentSchema, document, "x-header-renames")) {
    for (const [name, to] of Object.entries(value as Record<string, string>)) {
      if (!TOKEN.test(name)) badName(name, [...place, name], report);
      else if (!TOKEN.test(to)) badName(to, [...place, name], report);
    }
  }
}

function checkHeader(
  name: string,
  text: string,
  place: Place,
  report: IssueReport,
  secrets: SecretResolver | undefined,
): void {
  if (!TOKEN.test(name)) return badName(name, place, report);
  const outcome = secrets?.resolve(text);
  // Reported with all other secrets.
  if (outcome !== undefined && !outcome.ok) return;
  if (FIELD_VALUE.test(wireText(outcome?.secret.reveal() ?? text))) return;
  report.error(
    "bad_header",
    place,
    `${named(place)} has characters that a header's value cannot have, or space at its ends`,
  );
}

function badName(name: string, place: Place, report: IssueReport): void {
  report.error("bad_header", place, `"${name}" is not a legal header name`);
}
