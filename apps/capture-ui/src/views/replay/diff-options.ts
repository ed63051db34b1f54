import type { DiffOptions } from "@headworks/capture-contract";

/** Items of a comma-separated list. */
export function words(text: string | null): string[] {
  return (text ?? "")
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "");
}

/** Comparison options from URL parameters, so that a comparison can be linked. */
export function diffOptions(params: URLSearchParams): DiffOptions {
  const paths = params.get("paths");
  const headers = params.get("headers");
  return {
    ...(headers === null ? {} : { ignore_headers: words(headers) }),
    ...(paths === null ? {} : { ignore_paths: words(paths) }),
    shape: params.get("shape") === "1",
  };
}
