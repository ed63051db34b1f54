import { parse } from "yaml";
import { harMocks } from "./har-mocks.ts";
import { ImportProblem } from "./imported-mocks.ts";
import type { ImportedMocks } from "./imported-mocks.ts";
import { openApiMocks } from "./openapi-mocks.ts";
import { postmanMocks } from "./postman-mocks.ts";

/** Documents of other programs that rules can be made of. */
export type DocumentFormat = "har" | "openapi" | "postman";

/** One document to be read. */
export interface ImportRequest {
  readonly format: DocumentFormat;
  /** Text or the parsed document. */
  readonly data: unknown;
  readonly baseUrl: string | null;
}

/** Aliases of YAML may multiply a document; this many values is more than any that was written by somebody. */
const MOST_ALIASES = 1000;

/** Makes rules of a document. Throws {@link ImportProblem} for what is no such document. Takes as long as it takes. */
export function readImport({ format, data, baseUrl }: ImportRequest): ImportedMocks {
  const document = typeof data === "string" ? parsedText(data, format === "openapi") : data;
  try {
    switch (format) {
      case "har":
        return harMocks(document);
      case "openapi":
        return openApiMocks(document, baseUrl);
      case "postman":
        return postmanMocks(document);
    }
  } catch (error) {
    if (error instanceof RangeError) throw new ImportProblem("The document is nested too deeply", { cause: error });
    throw error;
  }
}

function parsedText(text: string, mayBeYaml: boolean): unknown {
  const bare = text.replace(/^\uFEFF/, "");
  try {
    return JSON.parse(bare);
  } catch (error) {
    if (!mayBeYaml || /^\s*[[{]/.test(bare.slice(0, 1000))) {
      throw new ImportProblem(`The document is not JSON: ${(error as Error).message.slice(0, 200)}`, { cause: error });
    }
  }
  try {
    return parse(bare, { maxAliasCount: MOST_ALIASES, prettyErrors: false, logLevel: "error" });
  } catch (error) {
    throw new ImportProblem(`The document is not YAML: ${(error as Error).message.slice(0, 200)}`, { cause: error });
  }
}
