import { readJson } from "@headworks/json";

const LABELS: Readonly<Record<string, string>> = { block_list: "Block list", focus: "Focused hosts" };

/** What a file holds that Weir wrote: rules alone, or settings and rules. */
export type BundleKind = "rules" | "config";

export type ReadBundle =
  | { readonly ok: true; readonly kind: BundleKind }
  | { readonly ok: false; readonly message: string };

/** Sees by its outermost names what a file holds; the service checks everything inside. */
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

/** A kind of rules for people: `block_list` gives `Block list`. */
export function sectionLabel(section: string): string {
  const known = LABELS[section];
  if (known !== undefined) return known;
  const words = section.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Where in a document something is wrong, without the name that the request had for it: `body/mocks/1` gives `mocks/1`. */
export function placeInFile(path: string): string {
  return path.replace(/^\/?body\/?/u, "");
}
