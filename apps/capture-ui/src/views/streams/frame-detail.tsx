import type { StreamFrame } from "@headworks/capture-contract";
import { useQuery } from "@tanstack/react-query";
import { X } from "lucide-react";
import { api, operationUrl, operations } from "../../api.ts";
import { IconButton } from "../../ui/button.tsx";
import { formatBytes, formatTimeOfDay } from "../../ui/format.ts";
import { EmptyState, ErrorState, Spinner } from "../../ui/states.tsx";
import { Tag } from "../../ui/tag.tsx";
import { BytesPanel } from "../detail/body/body-panel.tsx";
import { Arrow } from "./frame-list.tsx";
import { GrpcMessage } from "./grpc-message.tsx";
import { frameKind } from "./frame-text.ts";
import styles from "./streams.module.css";

/** Attributes that the headline tells already. */
const TOLD = new Set(["event"]);

/** One message of a stream: what is known of it, and its payload in the viewers of bodies. */
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
        <IconButton label="Close the message" keys="Esc" icon={<X size={16} />} onClick={onClose} />
      </div>
      {query.error !== null ? (
        <ErrorState title="The message cannot be loaded" error={query.error} onRetry={() => void query.refetch()} />
      ) : frame === undefined ? (
        <EmptyState title="Loading the message" icon={<Spinner />} />
      ) : frame === null ? (
        <EmptyState title="This message is not stored">It was cleared, or shed while storage was behind.</EmptyState>
      ) : (
        <Payload frame={frame} />
      )}
    </section>
  );
}

function Facts({ frame }: { readonly frame: StreamFrame }) {
  const others = Object.entries(frame.attributes).filter(([name]) => !TOLD.has(name));
  return (
    <p className={styles["facts"]}>
      <Arrow direction={frame.direction} />
      <b>{frameKind(frame)}</b>
      <span>#{frame.ordinal}</span>
      <span>{formatTimeOfDay(Date.parse(frame.timestamp))}</span>
      <span title={`${frame.wire_size} bytes as it came`}>{formatBytes(frame.size)}</span>
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
  // Trailers may have no bytes and still say something.
  if (frame.type === "close") {
    return (
      <>
        <p className={styles["none"]}>{frame.text}</p>
        {frame.size > 0 && <Bytes frame={frame} />}
      </>
    );
  }
  if (frame.size === 0 && frame.kind !== "grpc") return <p className={styles["none"]}>It has no payload.</p>;
  const original = frame.original_text ?? frame.original_base64;
  return (
    <>
      {original !== null && (
        <details className={styles["original"]}>
          <summary>Before a rule changed it</summary>
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
