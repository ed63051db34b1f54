import type { WsConnection, WsMessage, WsPaused, WsPayload, WsRule } from "@headworks/capture-contract";
import { closeCodeText } from "@headworks/http-fields";
import { sizeText, timeText } from "./present-values.ts";
import type { WideColumn } from "./table.ts";

const ARROWS = { send: "→", receive: "←" } as const;

const connections: readonly WideColumn<WsConnection>[] = [
  {
    title: "State",
    text: (row) => (row.problem === null ? row.state : `${row.state}, unread`),
    style: (row) => (row.problem === null ? (row.state === "closed" ? "dim" : "green") : "red"),
  },
  { title: "URL", text: (row) => row.url, shrinksTo: 20, cut: "middle" },
  { title: "Sent", text: (row) => String(row.messages_sent), align: "right" },
  { title: "Received", text: (row) => String(row.messages_received), align: "right" },
  { title: "Bytes", text: (row) => sizeText(row.bytes_sent + row.bytes_received), align: "right", fromColumns: 90 },
  {
    title: "Close",
    text: (row) => (row.close_code === null ? "" : closeCodeText(row.close_code, row.close_reason ?? "")),
    shrinksTo: 12,
    fromColumns: 110,
  },
  { title: "Since", text: (row) => timeText(row.created_at), fromColumns: 120 },
  { title: "Id", text: (row) => row.id },
];

const messages: readonly WideColumn<WsMessage>[] = [
  { title: "Time", text: (row) => timeText(row.timestamp), fromColumns: 110 },
  { title: "", text: (row) => ARROWS[row.direction] },
  { title: "Type", text: (row) => row.message_type },
  { title: "Size", text: (row) => sizeText(row.payload.size), align: "right" },
  { title: "Done", text: (row) => row.effect ?? "", fromColumns: 90, style: () => "yellow" },
  { title: "Content", text: (row) => contentText(row.payload), shrinksTo: 20 },
  { title: "Connection", text: (row) => row.connection_id, fromColumns: 130 },
];

const rules: readonly WideColumn<WsRule>[] = [
  { title: "On", text: (row) => (row.enabled ? "yes" : "no") },
  { title: "Name", text: (row) => row.name, shrinksTo: 10 },
  { title: "Action", text: (row) => row.action.type },
  { title: "Messages", text: (row) => messagesText(row.match), shrinksTo: 16, cut: "middle", fromColumns: 80 },
  { title: "Hits", text: (row) => String(row.hit_count), align: "right" },
  { title: "Id", text: (row) => row.id },
];

const paused: readonly WideColumn<WsPaused>[] = [
  { title: "Since", text: (row) => timeText(row.paused_at), fromColumns: 100 },
  { title: "", text: (row) => ARROWS[row.direction] },
  { title: "Rule", text: (row) => row.rule_name, shrinksTo: 8 },
  { title: "Content", text: (row) => contentText(row.payload), shrinksTo: 20 },
  { title: "Id", text: (row) => row.id },
];

/** Which messages a rule is for, in words: `text, from the server, host *.shop.test`. */
function messagesText({ host, url, direction, message_type: type, text }: WsRule["match"]): string {
  const parts = [
    ...(type === undefined ? [] : [type]),
    ...(direction === undefined ? [] : [direction === "send" ? "from the client" : "from the server"]),
    ...(host === undefined ? [] : [`host ${host}`]),
    ...(url === undefined ? [] : [`URL ${url}`]),
    ...(text === undefined ? [] : [`with ${text}`]),
  ];
  return parts.length === 0 ? "all" : parts.join(", ");
}

function contentText({ text, raw_base64: base64 = "" }: WsPayload): string {
  return text ?? base64;
}

/** Tables for connections, messages and message rules, by the names of their schemas. */
export const WS_TABLES: Readonly<Record<string, readonly WideColumn<never>[]>> = {
  WsConnection: connections,
  WsMessage: messages,
  WsRule: rules,
  WsPaused: paused,
};
