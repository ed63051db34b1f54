import { fieldErrors, type FieldErrors } from "../views/settings/field-errors.ts";

const NOTHING: FieldErrors = { fields: {}, general: null };

/** What the service refused about a form, by field; nothing while there is no error. */
export function useRefusal(error: unknown, fields: readonly string[]): FieldErrors {
  return error === null || error === undefined ? NOTHING : fieldErrors(error, fields);
}
