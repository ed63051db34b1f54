import type { GrpcDecoded, StreamFrame } from "@headworks/capture-contract";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { ReactNode } from "react";
import { api } from "../../api.ts";
import { Link } from "../../shell/link.tsx";
import { Segmented } from "../../ui/segmented.tsx";
import { EmptyState, ErrorState, Spinner } from "../../ui/states.tsx";
import styles from "./streams.module.css";

type Field = GrpcDecoded["fields"][number];

/** A message of gRPC, decoded by the schemas of now, or its bytes. */
export function GrpcMessage({ frame, bytes }: { readonly frame: StreamFrame; readonly bytes: ReactNode }) {
  const [view, setView] = useState<"decoded" | "bytes">("decoded");
  const query = useQuery({
    queryKey: ["grpc", "frame", frame.stream_id, frame.ordinal],
    queryFn: async ({ signal }) => {
      const query = { stream_id: frame.stream_id, order: "asc", limit: 1, offset: frame.ordinal - 1 } as const;
      const [found] = await api.grpc.listGrpcFrames({ query, signal });
      return found?.ordinal === frame.ordinal ? found : null;
    },
  });
  const message = query.data;
  return (
    <>
      <div className={styles["tools"]}>
        <Segmented
          label="View of the message"
          value={view}
          options={[
            { value: "decoded", label: "Decoded" },
            { value: "bytes", label: "Bytes" },
          ]}
          onChange={setView}
        />
        {message?.decoded?.message_type != null && <b>{message.decoded.message_type}</b>}
      </div>
      {view === "bytes" ? (
        bytes
      ) : query.error !== null ? (
        <ErrorState title="The message cannot be decoded" error={query.error} onRetry={() => void query.refetch()} />
      ) : message === undefined ? (
        <EmptyState title="Decoding the message" icon={<Spinner />} />
      ) : message === null ? (
        <EmptyState title="This message cannot be decoded">Its bytes are there.</EmptyState>
      ) : (
        // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reachable by keyboard
        <div className={styles["decoded"]} tabIndex={0} role="region" aria-label="Decoded message">
          {message.issues.map((issue) => (
            <p key={issue} className={styles["notice"]}>
              {issue}
            </p>
          ))}
          {message.trailers !== null ? (
            <pre>{JSON.stringify(message.trailers, null, 2)}</pre>
          ) : message.decoded === null ? (
            <p className={styles["none"]}>There is nothing to decode.</p>
          ) : (
            <Decoded decoded={message.decoded} />
          )}
        </div>
      )}
    </>
  );
}

function Decoded({ decoded }: { readonly decoded: GrpcDecoded }) {
  return (
    <>
      {decoded.json === null ? (
        <>
          <p className={styles["quiet"]}>
            No schema knows this message, so fields are guessed. <Link href="/settings">Add a schema</Link>
          </p>
          <pre>{fieldLines(decoded.fields, 0).join("\n")}</pre>
        </>
      ) : (
        <pre>{JSON.stringify(decoded.json, null, 2)}</pre>
      )}
      {decoded.unknown_fields.length > 0 && (
        <p className={styles["quiet"]}>
          Also on the wire: {decoded.unknown_fields.map(({ path, number }) => `${path}${number}`).join(", ")}
        </p>
      )}
      {decoded.issues.map((issue) => (
        <p key={issue} className={styles["notice"]}>
          {issue}
        </p>
      ))}
    </>
  );
}

/** More depth than this is a mistake of the guess. */
const MAX_DEPTH = 12;

function fieldLines(fields: readonly Field[], depth: number): string[] {
  const indent = "  ".repeat(depth);
  return fields.flatMap(({ number, name, value }) => {
    const label = `${indent}${number}${name === null ? "" : ` ${name}`}`;
    if (Array.isArray(value.value) && depth < MAX_DEPTH) {
      return [`${label} {`, ...fieldLines(value.value as readonly Field[], depth + 1), `${indent}}`];
    }
    const text = value.packed === undefined ? JSON.stringify(value.value) : `[${value.packed.join(", ")}]`;
    return [`${label}: ${text}  (${value.type})`];
  });
}
