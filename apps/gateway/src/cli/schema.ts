import { editorSchema } from "#config/json-schema.ts";
import { toJson } from "#config/write-document.ts";
import type { Streams } from "./document-file.ts";
import { EXIT } from "./invocation.ts";

/** `sluice schema`: prints the JSON Schema of configurations for editors. */
export async function schema(streams: Streams): Promise<number> {
  streams.stdout.write(`${toJson(editorSchema(), 2)}\n`);
  return await Promise.resolve(EXIT.ok);
}
