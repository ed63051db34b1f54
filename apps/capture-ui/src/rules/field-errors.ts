import { ApiFailure, errorText } from "../api.ts";

/** Validation errors of the service by field. */
export interface FieldErrors {
  /** Messages by dotted field name: `pattern`, `upstream_proxy.port`. */
  readonly fields: Readonly<Record<string, string>>;
  /** Errors that belong to no known field, or null. */
  readonly general: string | null;
}

const NO_ERRORS: FieldErrors = { fields: {}, general: null };

/** Assigns validation errors to form fields; `known` are the names in the form. */
export function fieldErrors(error: unknown, known: readonly string[]): FieldErrors {
  if (error === null || error === undefined) return NO_ERRORS;
  if (!(error instanceof ApiFailure) || error.status === 0) return { fields: {}, general: errorText(error) };
  const fields: Record<string, string> = {};
  const rest: string[] = [];
  const details: readonly unknown[] = Array.isArray(error.details) ? error.details : [];
  for (const detail of details) {
    const { path, message } = (detail ?? {}) as { readonly path?: unknown; readonly message?: unknown };
    if (typeof message !== "string") continue;
    const field = typeof path === "string" ? fieldOf(path, known) : null;
    if (field === null) rest.push(typeof path === "string" && path !== "" ? `${path}: ${message}` : message);
    else fields[field] = fields[field] === undefined ? sentence(message) : `${fields[field]}; ${message}`;
  }
  const general = rest.length > 0 ? rest.join("; ") : Object.keys(fields).length > 0 ? null : error.message;
  return { fields, general };
}

/** Finds the field in `body.pattern`, `/body/upstream_proxy/port` or `ignored_domains.3`. */
function fieldOf(path: string, known: readonly string[]): string | null {
  const steps = path.split(/[/.[\]]+/u).filter((step) => step !== "");
  for (let from = 0; from < steps.length; from++) {
    for (let to = steps.length; to > from; to--) {
      const name = steps.slice(from, to).join(".");
      if (known.includes(name)) return name;
    }
  }
  return null;
}

function sentence(message: string): string {
  return message.charAt(0).toUpperCase() + message.slice(1);
}
