import { grpcFrameLine } from "@headworks/capture-contract";
import type { GrpcConnection, GrpcFrame, GrpcSchema, GrpcStream } from "@headworks/capture-contract";
import { sizeText, timeText } from "./present-values.ts";
import type { WideColumn } from "./table.ts";

const connections: readonly WideColumn<GrpcConnection>[] = [
  { title: "State", text: (row) => row.state },
  { title: "Host", text: (row) => row.host, shrinksTo: 12 },
  { title: "Server", text: (row) => row.server_addr ?? "", shrinksTo: 12, fromColumns: 100 },
  { title: "Client", text: (row) => row.client_addr ?? "", shrinksTo: 12, fromColumns: 120 },
  { title: "Active", text: (row) => String(row.active_streams), align: "right" },
  { title: "Calls", text: (row) => String(row.total_streams), align: "right" },
  { title: "Since", text: (row) => timeText(row.created_at), fromColumns: 90 },
  { title: "Id", text: (row) => row.id },
];

const CALL_TYPES: Readonly<Record<GrpcStream["message_type"], string>> = {
  unary: "unary",
  serverstream: "server",
  clientstream: "client",
  bidistream: "both",
};

const streams: readonly WideColumn<GrpcStream>[] = [
  {
    title: "Status",
    text: callStatus,
    style: (row) => (row.state !== "closed" ? "dim" : row.status_code === 0 ? "green" : "red"),
    shrinksTo: 9,
  },
  { title: "Service", text: (row) => row.service, shrinksTo: 12, cut: "middle" },
  { title: "Method", text: (row) => row.method, shrinksTo: 8 },
  { title: "Streams", text: (row) => CALL_TYPES[row.message_type], fromColumns: 90 },
  { title: "Sent", text: (row) => String(row.frames_sent), align: "right" },
  { title: "Received", text: (row) => String(row.frames_received), align: "right" },
  { title: "Started", text: (row) => timeText(row.created_at), fromColumns: 130 },
  {
    title: "Message",
    text: (row) => row.status_message || (row.failure ?? row.issues[0] ?? ""),
    shrinksTo: 10,
    fromColumns: 150,
  },
  { title: "Id", text: (row) => row.id },
];

/** How a call ended, or how far it is. */
function callStatus({ state, status_code: code, status_name: name, failure }: GrpcStream): string {
  if (state !== "closed") return state;
  if (code !== null) return name ?? String(code);
  return failure === null ? "no status" : "broken off";
}

const frames: readonly WideColumn<GrpcFrame>[] = [
  { title: "Time", text: (row) => timeText(row.timestamp), fromColumns: 110 },
  { title: "", text: (row) => (row.direction === "request" ? "→" : "←") },
  { title: "Method", text: (row) => row.method, shrinksTo: 8 },
  { title: "Size", text: (row) => sizeText(row.size), align: "right" },
  { title: "Type", text: frameType, shrinksTo: 8, fromColumns: 100 },
  { title: "Message", text: (row) => grpcFrameLine(row) ?? row.data, shrinksTo: 20 },
  { title: "Call", text: (row) => row.stream_id, fromColumns: 120 },
];

function frameType({ is_trailer: isTrailer, decoded }: GrpcFrame): string {
  return isTrailer ? "trailers" : (decoded?.message_type ?? "");
}

const schemas: readonly WideColumn<GrpcSchema>[] = [
  { title: "Name", text: (row) => row.name, shrinksTo: 10 },
  { title: "From", text: (row) => row.source },
  { title: "Services", text: (row) => row.services.map(({ name }) => name).join(", "), shrinksTo: 12 },
  { title: "Messages", text: (row) => String(row.messages), align: "right" },
  { title: "Files", text: (row) => String(row.files.length), align: "right", fromColumns: 100 },
  { title: "Added", text: (row) => timeText(row.created_at), fromColumns: 120 },
  { title: "Id", text: (row) => row.id },
];

/** Tables by the name of the schema of their rows. */
export const GRPC_TABLES: Readonly<Record<string, readonly WideColumn<never>[]>> = {
  GrpcConnection: connections,
  GrpcStream: streams,
  GrpcFrame: frames,
  GrpcSchema: schemas,
};
