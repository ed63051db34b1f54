import { randomUUID } from "node:crypto";
import { basename } from "node:path/posix";
import type { GrpcSchema, NewGrpcSchema, grpcOperations } from "@headworks/capture-contract";
import type { Handlers } from "@headworks/contract-kit";
import type { SchemaFile } from "@headworks/protobuf";
import { WorkerFault, WorkerHost } from "@headworks/worker-host";
import { ApiError, notFound, validationError } from "#api/api-error.ts";
import type { Clock, SliceHost } from "#slice.ts";
import { reflect, ReflectionProblem } from "./reflection.ts";
import {
  type OpenSchema,
  openSchemaBook,
  type SchemaBook,
  type SchemaStore,
  type StoredSchema,
} from "./schema-book.ts";
import type { ReadSchema, SchemaText } from "./schema-thread.ts";
import { callType } from "./shown-call.ts";

/** The input is not a valid schema. */
export class SchemaProblem extends Error {
  override readonly name = "SchemaProblem";
}

const MAX_MS = 15_000;
const MAX_HEAP_MB = 512;
const MAX_SCHEMAS = 200;

type Operations = typeof grpcOperations;
export type SchemaHandlers = Pick<
  Handlers<Operations>,
  "listGrpcSchemas" | "addGrpcSchema" | "reflectGrpcSchema" | "deleteGrpcSchema"
>;

export interface SchemaParts {
  readonly host: Pick<SliceHost, "clock" | "events" | "send">;
  readonly store: SchemaStore;
}

export function createSchemaHandlers({ host, store }: SchemaParts): {
  readonly handlers: SchemaHandlers;
  readonly book: () => SchemaBook;
} {
  let book = openSchemaBook(store.list());
  const reopen = (): void => {
    book = openSchemaBook(store.list(), book);
    host.events.changed("grpc");
  };
  const checkRoom = (): void => {
    if (book.schemas.length < MAX_SCHEMAS) return;
    throw new ApiError("CONFLICT", `There are ${MAX_SCHEMAS} schemas; remove one first`);
  };
  const add = async (text: SchemaText, facts: Pick<StoredSchema, "name" | "source">, signal: AbortSignal) => {
    checkRoom();
    const files = await readSchemaApart(text, host.clock, signal);
    checkRoom();
    const id = randomUUID();
    store.insert({ id, ...facts, files, createdAtMs: host.clock.now() });
    reopen();
    const added = book.schemas.find(({ stored }) => stored.id === id);
    if (added === undefined) throw new Error("A schema that was stored is not there");
    return { status: 201, body: showSchema(added) } as const;
  };
  return {
    book: () => book,
    handlers: {
      listGrpcSchemas: () => ({ status: 200, body: book.schemas.map(showSchema) }),
      addGrpcSchema: async ({ body, signal }) => {
        const text = schemaText(body);
        const name = body.name ?? basename(body.files?.[0]?.name ?? "descriptor set");
        try {
          return await add(text, { name, source: text.kind === "proto" ? "proto" : "descriptor_set" }, signal);
        } catch (error) {
          if (!(error instanceof SchemaProblem)) throw error;
          const path = text.kind === "proto" ? "body/files" : "body/descriptor_set";
          throw validationError([{ path, message: error.message }]);
        }
      },
      reflectGrpcSchema: async ({ body, signal }) => {
        checkRoom();
        try {
          const { files, host: server } = await reflect(body, host.send, signal);
          return await add({ kind: "descriptors", files }, { name: body.name ?? server, source: "reflection" }, signal);
        } catch (error) {
          if (error instanceof ReflectionProblem && error.isAboutUrl) {
            throw validationError([{ path: "body/url", message: error.message }]);
          }
          if (error instanceof ReflectionProblem || error instanceof SchemaProblem) {
            throw new ApiError("SERVICE_UNAVAILABLE", error.message);
          }
          throw error;
        }
      },
      deleteGrpcSchema: ({ params }) => {
        if (!store.remove(params.id)) return notFound("schema", params.id);
        reopen();
        return { status: 204 };
      },
    },
  };
}

function schemaText(body: NewGrpcSchema): SchemaText {
  const { files, descriptor_set: set } = body;
  if (files !== undefined && set !== undefined) {
    throw validationError([{ path: "body/descriptor_set", message: "cannot be combined with files" }]);
  }
  if (files === undefined && set === undefined) {
    throw validationError([{ path: "body", message: "needs either files or descriptor_set" }]);
  }
  if (set !== undefined) return { kind: "descriptor_set", bytes: readBase64(set, "body/descriptor_set") };
  const texts = (files ?? []).map(({ name, text, base64 }, at) => {
    if ((text === undefined) === (base64 === undefined)) {
      throw validationError([{ path: `body/files/${at}`, message: "needs either text or base64" }]);
    }
    return { name, text: text ?? readBase64(base64 ?? "", `body/files/${at}/base64`).toString("utf8") };
  });
  return { kind: "proto", files: texts };
}

function readBase64(text: string, path: string): Buffer {
  if (!/^[A-Za-z0-9+/_\-\s]*={0,2}\s*$/u.test(text)) throw validationError([{ path, message: "is no base64" }]);
  return Buffer.from(text, "base64");
}

function showSchema({ stored, schema, issues }: OpenSchema): GrpcSchema {
  const own = stored.files.flatMap(({ services }) => services.map(({ name }) => name));
  return {
    id: stored.id,
    name: stored.name,
    source: stored.source,
    files: stored.files.map(({ name }) => name),
    services: own.flatMap((name) => {
      const service = schema.services.get(name);
      if (service === undefined) return [];
      const methods = Array.from(service.methods.values(), (method) => ({
        name: method.name,
        path: `/${name}/${method.name}`,
        request_type: method.input.name,
        response_type: method.output.name,
        message_type: callType(method),
      }));
      return [{ name, methods }];
    }),
    messages: stored.files.reduce(
      (count, { messages }) => count + messages.filter(({ isMapEntry }) => !isMapEntry).length,
      0,
    ),
    issues: [...issues],
    created_at: new Date(stored.createdAtMs).toISOString(),
  };
}

/**
 * Parses a schema on its own thread, so that a hostile one cannot exhaust the time or memory of the proxy. Rejects with
 * {@link SchemaProblem} for an invalid schema.
 */
export async function readSchemaApart(
  text: SchemaText,
  clock: Clock,
  signal: AbortSignal,
): Promise<readonly SchemaFile[]> {
  const host = new WorkerHost<SchemaText, ReadSchema>({
    module: new URL("./schema-thread.ts", import.meta.url),
    name: "weir-grpc-schema",
    maxHeapMb: MAX_HEAP_MB,
    clock,
  });
  const stop = (): void => void host.close();
  signal.addEventListener("abort", stop);
  try {
    const read = await host.request(text, { timeoutMs: MAX_MS });
    if ("problem" in read) throw new SchemaProblem(read.problem);
    return read.files;
  } catch (error) {
    if (!(error instanceof WorkerFault)) throw error;
    if (error.kind === "memory") throw new SchemaProblem("The schema takes too much memory to read");
    throw error.cause ?? new SchemaProblem("The schema takes too long to read");
  } finally {
    signal.removeEventListener("abort", stop);
    await host.close();
  }
}
