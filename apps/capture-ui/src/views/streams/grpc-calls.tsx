import type { GrpcStream } from "@headworks/capture-contract";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { api } from "../../api.ts";
import { listenLive } from "../../live.ts";
import { formatCount, formatDuration, formatTimeOfDay } from "../../ui/format.ts";
import { ListTable } from "../../ui/list-table.tsx";
import type { ListColumn } from "../../ui/list-table.tsx";
import { EmptyState } from "../../ui/states.tsx";
import { Tag } from "../../ui/tag.tsx";
import styles from "./streams.module.css";
import { throttled } from "./paged-rows.ts";

const REFRESH_MS = 500;
const MAX_CALLS = 200;

/** Result of a call, or that it is running. */
export function CallStatus({ call }: { readonly call: GrpcStream }) {
  if (call.failure !== null) return <Tag tone="error">{call.failure}</Tag>;
  const hint = call.status_message || call.issues.join("; ");
  if (call.status_code === null) {
    if (call.state !== "closed") return <Tag tone="ok">running</Tag>;
    return (
      <Tag tone="warning" title={hint}>
        no status
      </Tag>
    );
  }
  return (
    <Tag tone={call.status_code === 0 ? "neutral" : "error"} title={hint}>
      {call.status_name ?? String(call.status_code)}
    </Tag>
  );
}

/** gRPC calls with method and result. */
export function GrpcCalls({ onShow }: { readonly onShow: (id: string) => void }) {
  const client = useQueryClient();
  const calls = useQuery({
    queryKey: ["grpc", "calls"],
    queryFn: ({ signal }) => api.grpc.listGrpcStreams({ query: { limit: MAX_CALLS }, signal }),
  });
  useEffect(() => {
    const refresh = throttled(() => void client.invalidateQueries({ queryKey: ["grpc", "calls"] }), REFRESH_MS);
    const stop = listenLive({ traffic: refresh.trigger, frames: refresh.trigger, framesMissed: refresh.trigger });
    return () => {
      stop();
      refresh.stop();
    };
  }, [client]);
  const columns: readonly ListColumn<GrpcStream>[] = [
    {
      title: "Method",
      cell: (call) => (
        <button type="button" className={styles["method"]} onClick={() => onShow(call.id)}>
          <b>{call.method === "" ? (call.path ?? "") : call.method}</b>
          <span className={styles["quiet"]}>{call.service}</span>
        </button>
      ),
    },
    { title: "Status", cell: (call) => <CallStatus call={call} /> },
    { title: "Kind", kind: "quiet", from: "medium", cell: (call) => call.message_type },
    { title: "Sent", kind: "number", cell: (call) => formatCount(call.frames_sent) },
    { title: "Received", kind: "number", cell: (call) => formatCount(call.frames_received) },
    {
      title: "Duration",
      kind: "number",
      from: "medium",
      cell: (call) =>
        call.closed_at === null ? "…" : formatDuration(Date.parse(call.closed_at) - Date.parse(call.created_at)),
    },
    {
      title: "Started",
      kind: "quiet",
      from: "wide",
      cell: (call) => formatTimeOfDay(Date.parse(call.created_at)),
    },
  ];
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reachable by keyboard
    <div className={styles["calls"]} tabIndex={0} role="region" aria-label="Calls">
      <ListTable
        label="gRPC calls"
        list={calls}
        columns={columns}
        empty={<EmptyState title="No gRPC calls yet">gRPC and gRPC-Web calls appear here as they are made.</EmptyState>}
      />
      {calls.data?.length === MAX_CALLS && (
        <p className={styles["none"]}>Showing the newest {MAX_CALLS}; see the list for all.</p>
      )}
    </div>
  );
}

/** The call of a gRPC stream; undefined for other streams. */
export function useCall(id: string, isGrpc: boolean, revision: string): GrpcStream | undefined {
  const { data } = useQuery({
    queryKey: ["grpc", "call", id, revision],
    queryFn: ({ signal }) => api.grpc.getGrpcStream({ params: { id }, signal }),
    enabled: isGrpc,
    retry: false,
    placeholderData: (previous) => previous,
  });
  return data;
}
