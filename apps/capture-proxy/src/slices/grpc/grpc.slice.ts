import type { grpcOperations } from "@headworks/capture-contract";
import type { Slice, SliceHost } from "#slice.ts";
import { createGrpcObserver } from "./grpc.observer.ts";
import { createGrpcOperations } from "./grpc.operations.ts";
import { createSchemaStore } from "./grpc.store.ts";
import { createSchemaHandlers } from "./schema-handlers.ts";

/** gRPC and gRPC-Web: calls, messages and schemas. */
export function createGrpcSlice(host: SliceHost): Slice<typeof grpcOperations> {
  const { handlers, book } = createSchemaHandlers({ host, store: createSchemaStore(host.database) });
  return {
    name: "grpc",
    operations: createGrpcOperations(host, book, handlers),
    observer: createGrpcObserver(host),
  };
}
