import { readJson } from "@headworks/json";

const LABELS: Readonly<Record<string, string>> = { block_list: "Block list", focus: "Focused hosts" };

/** Content of an exported file: rules only, or settings and rules. */
export type BundleKind = "rules" | "config";

export type ReadBundle =
  | { readonly ok: true; readonly kind: BundleKind }
  | { readonly ok: false; readonly message: string };

/** Detects the content of an export by its top-level members; the service validates the rest. */
export function readBundle(text: string): ReadBundle {
  let value: unknown;
  try {
    value = readJson(text);
  } catch (error) {
    return { ok: false, message: `Not valid JSON: ${error instanceof Error ? error.message : String(error)}` };
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return { ok: false, message: "Not a Weir export: expected an object with a version" };
  }
  if (Object.hasOwn(value, "log")) return { ok: false, message: "This is a HAR file; import it in Mocks" };
  if (Object.hasOwn(value, "rules") || Object.hasOwn(value, "settings")) return { ok: true, kind: "config" };
  if (Object.hasOwn(value, "version")) return { ok: true, kind: "rules" };
  return { ok: false, message: "Not a Weir export: the version is missing" };
}

/** Display name of a kind of rules: `block_list` gives `Block list`. */
export function sectionLabel(section: string): string {
  const known = LABELS[section];
  if (known !== undefined) return known;
  const words = section.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Position of an error in the document, without the request's prefix: `body/mocks/1` gives `mocks/1`. */
export function positionInFile(path: string): string {
  return path.replace(/^\/?body\/?/u, "");
}
