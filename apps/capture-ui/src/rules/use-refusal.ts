import { fieldErrors, type FieldErrors } from "../views/settings/field-errors.ts";

const NOTHING: FieldErrors = { fields: {}, general: null };

/** Validation errors from the service, by field. */
export function useRefusal(error: unknown, fields: readonly string[]): FieldErrors {
  return error === null || error === undefined ? NOTHING : fieldErrors(error, fields);
}
