import { useQuery } from "@tanstack/react-query";
import { X } from "lucide-react";
import { type ReactNode, useState } from "react";
import type { GrpcDecoded, StreamFrame } from "@headworks/capture-contract";
import { api, operations, operationUrl } from "../../api.ts";
import { Link } from "../../shell/link.tsx";
import { IconButton } from "../../ui/button.tsx";
import { formatBytes, formatTimeOfDay } from "../../ui/format.ts";
import { Segmented } from "../../ui/segmented.tsx";
import { EmptyState, ErrorState, Spinner } from "../../ui/states.tsx";
import { Tag } from "../../ui/tag.tsx";
import { BytesPanel } from "../detail/body/body-panel.tsx";
import { Arrow } from "./frame-list.tsx";
import { frameKind } from "./frame-text.ts";
import styles from "./streams.module.css";

/** Greater depth indicates a wrong inference. */
const MAX_DEPTH = 12;

/** Attributes already shown in the heading. */
const SHOWN_ELSEWHERE = new Set(["event"]);

/** One message of a stream: metadata, and its payload in the body viewers. */
export function FrameDetail({
  streamId,
  ordinal,
  onClose,
}: {
  readonly streamId: string;
  readonly ordinal: number;
  readonly onClose: () => void;
}) {
  const query = useQuery({
    queryKey: ["frame", streamId, ordinal],
    queryFn: async ({ signal }) => {
      const input = { params: { id: streamId }, query: { after: ordinal - 1, limit: 1 }, signal };
      const [frame] = await api.streams.listStreamFrames(input);
      return frame?.ordinal === ordinal ? frame : null;
    },
    placeholderData: (previous) => previous,
  });
  const frame = query.data;
  return (
    <section className={styles["detail"]} aria-label="Message">
      <div className={styles["detailHead"]}>
        {frame !== null && frame !== undefined && <Facts frame={frame} />}
        <IconButton label="Close message" keys="Esc" icon={<X size={16} />} onClick={onClose} />
      </div>
      {query.error !== null ? (
        <ErrorState title="Could not load the message" error={query.error} onRetry={() => void query.refetch()} />
      ) : frame === undefined ? (
        <EmptyState title="Loading message" icon={<Spinner />} />
      ) : frame === null ? (
        <EmptyState title="Message not stored">
          It was cleared, or dropped because storage could not keep up.
        </EmptyState>
      ) : (
        <Payload frame={frame} />
      )}
    </section>
  );
}

function Facts({ frame }: { readonly frame: StreamFrame }) {
  const others = Object.entries(frame.attributes).filter(([name]) => !SHOWN_ELSEWHERE.has(name));
  return (
    <p className={styles["facts"]}>
      <Arrow direction={frame.direction} />
      <b>{frameKind(frame)}</b>
      <span>#{frame.ordinal}</span>
      <span>{formatTimeOfDay(Date.parse(frame.timestamp))}</span>
      <span title={`${frame.wire_size} bytes on the wire`}>{formatBytes(frame.size)}</span>
      {frame.compressed && <Tag tone="neutral">compressed</Tag>}
      {!frame.is_final && <Tag tone="neutral">fragment</Tag>}
      {frame.effect !== null && <Tag tone={frame.effect === "dropped" ? "error" : "warning"}>{frame.effect}</Tag>}
      {others.map(([name, value]) => (
        <span key={name} className={styles["fact"]} title={value}>
          {name}: {value}
        </span>
      ))}
    </p>
  );
}

function Payload({ frame }: { readonly frame: StreamFrame }) {
  // Trailers may carry information without bytes.
  if (frame.type === "close") {
    return (
      <>
        <p className={styles["none"]}>{frame.text}</p>
        {frame.size > 0 && <Bytes frame={frame} />}
      </>
    );
  }
  if (frame.size === 0 && frame.kind !== "grpc") return <p className={styles["none"]}>No payload.</p>;
  const original = frame.original_text ?? frame.original_base64;
  return (
    <>
      {original !== null && (
        <details className={styles["original"]}>
          <summary>Before modification by a rule</summary>
          <pre>{original}</pre>
        </details>
      )}
      {frame.kind === "grpc" ? (
        <GrpcMessage key={frame.ordinal} frame={frame} bytes={<Bytes frame={frame} />} />
      ) : (
        <Bytes frame={frame} />
      )}
    </>
  );
}

function Bytes({ frame }: { readonly frame: StreamFrame }) {
  return (
    <BytesPanel
      key={`${frame.stream_id} ${frame.ordinal}`}
      url={operationUrl(operations.streams.getStreamFrameBody, {
        params: { id: frame.stream_id, ordinal: frame.ordinal },
      })}
      message={{
        headers_list: [],
        content_type: null,
        body_state: frame.stored_size < frame.size ? "truncated" : "complete",
        body_size: frame.size,
        body_stored_size: frame.stored_size,
      }}
    />
  );
}

type Field = GrpcDecoded["fields"][number];

/** A gRPC message decoded with the current schemas, or its bytes. */
function GrpcMessage({ frame, bytes }: { readonly frame: StreamFrame; readonly bytes: ReactNode }) {
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
          label="Message view"
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
        <ErrorState title="Could not decode the message" error={query.error} onRetry={() => void query.refetch()} />
      ) : message === undefined ? (
        <EmptyState title="Decoding message" icon={<Spinner />} />
      ) : message === null ? (
        <EmptyState title="Message cannot be decoded">View it as bytes.</EmptyState>
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
            <p className={styles["none"]}>Empty message.</p>
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
            No schema defines this message; fields are inferred. <Link href="/settings">Add schema</Link>
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
