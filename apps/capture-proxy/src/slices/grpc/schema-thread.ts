import { Worker, parentPort, workerData } from "node:worker_threads";
import {
  buildSchema,
  DescriptorError,
  missingImports,
  parseProtoText,
  ProtoTextError,
  readDescriptorSet,
  readFileDescriptor,
} from "@headworks/protobuf";
import type { SchemaFile } from "@headworks/protobuf";
import type { Clock } from "#slice.ts";

/** What a schema is read from. */
export type SchemaText =
  | { readonly kind: "proto"; readonly files: readonly { readonly name: string; readonly text: string }[] }
  | { readonly kind: "descriptor_set"; readonly bytes: Uint8Array }
  /** Each of them one file descriptor. */
  | { readonly kind: "descriptors"; readonly files: readonly Uint8Array[] };

/** What was given cannot be read as a schema; the message is for whoever gave it. */
export class SchemaProblem extends Error {
  override readonly name = "SchemaProblem";
}

type Outcome =
  | { readonly ok: true; readonly files: readonly SchemaFile[] }
  | { readonly ok: false; readonly problem: string };

/** Tells the thread that was started below from any other that loads this file. */
const MARK = "readsGrpcSchema";
const MAX_MS = 15_000;
const MAX_HEAP_MB = 512;
const MAX_NAME_LENGTH = 1024;

/**
 * Reads a schema on a thread of its own: a hostile one costs that thread its time or memory, not the traffic. Throws
 * {@link SchemaProblem} for everything that is no schema.
 */
export function readSchemaApart(text: SchemaText, clock: Clock, signal: AbortSignal): Promise<readonly SchemaFile[]> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL(import.meta.url), {
      workerData: { [MARK]: true, text },
      resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
    });
    const stop = (): void => void worker.terminate();
    const cancelStop = clock.after(MAX_MS, stop);
    signal.addEventListener("abort", stop);
    worker.once("message", (outcome: Outcome) => {
      if (outcome.ok) resolve(outcome.files);
      else reject(new SchemaProblem(outcome.problem));
    });
    worker.once("error", (error: NodeJS.ErrnoException) => {
      const isMemory = error.code === "ERR_WORKER_OUT_OF_MEMORY";
      reject(isMemory ? new SchemaProblem("The schema takes too much memory to read") : error);
    });
    worker.once("exit", () => {
      cancelStop();
      signal.removeEventListener("abort", stop);
      // After a message this changes nothing.
      reject(new SchemaProblem("The schema takes too long to read"));
    });
  });
}

const given = workerData as { readonly [MARK]?: true; readonly text: SchemaText } | null;
if (given?.[MARK] === true) parentPort?.postMessage(outcomeOf(given.text));

function outcomeOf(text: SchemaText): Outcome {
  try {
    const files = readFiles(text);
    const problem = problemOf(files);
    return problem === undefined ? { ok: true, files } : { ok: false, problem };
  } catch (error) {
    if (error instanceof ProtoTextError || error instanceof DescriptorError) {
      return { ok: false, problem: error.message };
    }
    throw error;
  }
}

function readFiles(text: SchemaText): SchemaFile[] {
  switch (text.kind) {
    case "proto":
      return text.files.map((file) => parseProtoText(file.name, file.text));
    case "descriptor_set":
      return readDescriptorSet(Buffer.from(text.bytes));
    case "descriptors":
      return text.files.map((file) => readFileDescriptor(Buffer.from(file)));
  }
}

function problemOf(files: readonly SchemaFile[]): string | undefined {
  const [missing] = missingImports(files);
  if (missing !== undefined) return `${missing.file} imports ${missing.missing}, which was not given`;
  for (const { messages, enums, services } of files) {
    const long = [...messages, ...enums, ...services].find(({ name }) => name.length > MAX_NAME_LENGTH);
    if (long !== undefined) return `A name is longer than ${MAX_NAME_LENGTH} characters: ${long.name.slice(0, 80)}…`;
  }
  // Whether it can be linked in time shows here, not on the thread of the traffic.
  const { schema } = buildSchema(files);
  if (files.every((file) => file.messages.length + file.enums.length + file.services.length === 0)) {
    return "Nothing is declared in it";
  }
  return schema.messages.size > 200_000 ? "It declares more messages than can be kept" : undefined;
}
