// Tested by traffic.slice.test.ts
import type { TrafficFilter } from "@headworks/capture-contract";
import { fromParameters, parseQuery } from "@headworks/query-language";
import { ApiError, validationError } from "#api/api-error.ts";

/** Refuses a filter that does not parse, with the parameter and, for `q`, the place in it. */
export function checkFilter(filter: TrafficFilter): void {
  const { q, session_id: _session, min_size, max_size, min_time, max_time, ...texts } = filter;
  if (q !== undefined) {
    const parsed = parseQuery(q);
    if (!parsed.ok) {
      const { message, start, end } = parsed.error;
      throw validationError([{ path: "query/q", message: `${message} (characters ${start} to ${end})` }]);
    }
  }
  const numbers = { min_size, max_size, min_time, max_time };
  const written = Object.fromEntries(
    Object.entries(numbers).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]])),
  );
  const parameters = fromParameters({ ...texts, ...written });
  if (!parameters.ok) {
    const { parameter, message } = parameters.error;
    throw validationError([{ path: `query/${parameter}`, message }]);
  }
}

const CODES = {
  CursorError: "VALIDATION_ERROR",
  ImportRefusedError: "BAD_REQUEST",
  FilterError: "VALIDATION_ERROR",
  ReaderBusyError: "SERVICE_UNAVAILABLE",
  CancelledError: "CANCELLED",
  AbortError: "CANCELLED",
} as const;

/** Runs a question to the store; what the store refuses by name becomes the API's error. */
export async function asked<T>(question: Promise<T>): Promise<T> {
  try {
    return await question;
  } catch (error) {
    if (!(error instanceof Error) || !Object.hasOwn(CODES, error.name)) throw error;
    throw new ApiError(CODES[error.name as keyof typeof CODES], error.message, { cause: error });
  }
}
