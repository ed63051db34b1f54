import { Argument, type Command, Option } from "commander";
import {
  type FrameEvent,
  type ServerMessage,
  type WsConnection,
  wsTrafficOperations,
} from "@headworks/capture-contract";
import { apiAddress, type ApiAddress, callJson, noServiceText } from "./api-connection.ts";
import { CommandFailure, EXIT, type Invocation, type MessageSocket, type Outcome } from "./invocation.ts";
import { feedMessages, followUntilInterrupted, NOT_THE_FEED } from "./following.ts";
import { type GlobalFlags, globalOptions } from "./global-options.ts";
import { sizeText } from "./table.ts";
import { fitted, padded, type Terminal, textWidth, visibleJson, visibleText } from "./terminal.ts";

interface TailOptions extends GlobalFlags {
  readonly direction?: FrameEvent["direction"];
  readonly search?: string;
}

/** Which live messages are printed. */
interface Wanted {
  readonly connection: string | undefined;
  readonly direction: FrameEvent["direction"] | undefined;
  /** In lower case. */
  readonly search: string | undefined;
}

/** Adds `weir ws tail`. */
export function addWsTailCommand(group: Command, invocation: Invocation, outcome: Outcome): void {
  const summary = "Follow WebSocket messages: one line for each message";
  const command = group
    .command("tail")
    .summary(summary)
    .description(`${summary}. Shows new messages until Ctrl+C or until the service stops.`)
    .addArgument(new Argument("[connection]", "Only messages of the connection with this id"))
    .addOption(
      new Option("-d, --direction <direction>", "Only messages from the client, or from the server").choices([
        "send",
        "receive",
      ]),
    )
    .option("-s, --search <text>", "Only messages with this text in their first 1,000 characters, case-insensitive");
  for (const option of globalOptions("Print one JSON object for each message")) command.addOption(option);
  command.action(async (connection: string | undefined) => {
    outcome.exitCode = await tail(invocation, connection, command.optsWithGlobals());
  });
}

/** Follows until interrupted, the output is closed, or the service stops; resolves to the exit code. */
async function tail(invocation: Invocation, connection: string | undefined, options: TailOptions): Promise<number> {
  const address = apiAddress(options, invocation.environment);
  if (connection !== undefined) await refuseClosed(address, connection);
  const wanted = { connection, direction: options.direction, search: options.search?.toLowerCase() };
  const print = (frame: FrameEvent): void => {
    if (isWanted(frame, wanted)) printFrame(frame, invocation.stdout, options.json === true, connection);
  };
  return await followUntilInterrupted(invocation, async (signal) => {
    const socket = await invocation.parts.openSocket(socketUrl(address));
    await follow(socket, { print, stderr: invocation.stderr, address, signal });
  });
}

/** Nothing would ever come of a connection that is not there or over. */
async function refuseClosed(address: ApiAddress, id: string): Promise<void> {
  const { value } = await callJson(address, wsTrafficOperations.getWsConnection, { params: { id } });
  if ((value as WsConnection).state !== "closed") return;
  throw new CommandFailure(
    EXIT.failure,
    `The connection is closed; \`weir ws messages --connection-id ${visibleText(id)}\` lists its messages`,
  );
}

/** A query that no entry satisfies: of the traffic itself nothing is to be sent. */
const NO_TRAFFIC = "seq:<0";

function socketUrl({ baseUrl }: ApiAddress): string {
  return `${baseUrl.replace(/^http/, "ws")}/ws?batch=1&q=${encodeURIComponent(NO_TRAFFIC)}`;
}

/** Inputs for following one connection to the service. */
interface Followed {
  readonly print: (frame: FrameEvent) => void;
  readonly stderr: Terminal;
  readonly address: ApiAddress;
  readonly signal: AbortSignal;
}

/** Prints messages until the signal aborts. Throws {@link CommandFailure} if the service ends the connection. */
async function follow(socket: MessageSocket, { print, stderr, address, signal }: Followed): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const fail = (sentence: string): void => {
    reject(new CommandFailure(EXIT.failure, sentence));
    socket.close();
  };
  const take = (message: ServerMessage): void => {
    if (message.type === "Frame") print(message.data);
    else if (message.type === "Error") fail(visibleText(message.data.message));
    else if (message.type === "Resync" && message.data.channel === "frames") {
      stderr.write(
        `weir: ${message.data.missed} messages were missed because they arrived faster than they were read\n`,
      );
    }
  };
  let isOpen = false;
  const onAbort = (): void => {
    resolve();
    socket.close();
  };
  signal.addEventListener("abort", onAbort, { once: true });
  socket.onOpen(() => {
    isOpen = true;
    const data = { filter: { q: NO_TRAFFIC }, channels: ["frames"] };
    socket.send(JSON.stringify({ type: "Subscribe", data }));
  });
  socket.onMessage((text) => {
    try {
      for (const message of feedMessages(text)) take(message);
    } catch {
      fail(NOT_THE_FEED);
    }
  });
  socket.onClose((reason) => {
    const sentence = isOpen ? `Connection to Weir lost (${visibleText(reason)})` : noServiceText(address);
    reject(new CommandFailure(EXIT.failure, sentence));
  });
  if (signal.aborted) onAbort();
  try {
    await promise;
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

function isWanted(frame: FrameEvent, { connection, direction, search }: Wanted): boolean {
  if (frame.kind !== "websocket") return false;
  if (connection !== undefined && frame.stream_id !== connection) return false;
  if (direction !== undefined && frame.direction !== direction) return false;
  return search === undefined || (frame.text?.toLowerCase().includes(search) ?? false);
}

function printFrame(frame: FrameEvent, terminal: Terminal, isJson: boolean, connection: string | undefined): void {
  if (!isJson) return terminal.write(`${frameLine(frame, terminal, connection === undefined)}\n`);
  const text = JSON.stringify(frame);
  return terminal.write(`${terminal.isTty ? visibleJson(text) : text}\n`);
}

const ARROWS = { send: "→", receive: "←" } as const;
const ID_COLUMNS = 36;
/** The last part of an id is its random one. */
const SHORT_ID_COLUMNS = 8;
const WIDE_COLUMNS = 130;
const TYPE_COLUMNS = 6;
const MIN_TEXT_COLUMNS = 4;

/** `12:00:01.250 → text       1.2 KiB  …9f2a61c4  {"op":"ping"}`, cut to the window. */
export function frameLine(frame: FrameEvent, terminal: Terminal, showsConnection: boolean): string {
  const date = new Date(frame.timestamp);
  const time = `${date.toTimeString().slice(0, 8)}.${String(date.getMilliseconds()).padStart(3, "0")}`;
  const isWide = terminal.columns >= WIDE_COLUMNS;
  const id = visibleText(frame.stream_id);
  const type = padded(visibleText(frame.type), TYPE_COLUMNS);
  const shownId = isWide ? padded(id, ID_COLUMNS) : `…${id.slice(-SHORT_ID_COLUMNS)}`;
  const parts = [
    terminal.style("dim", time),
    terminal.style(frame.direction === "send" ? "cyan" : "green", ARROWS[frame.direction]),
    type,
    padded(sizeText(frame.size), 9, "right"),
    ...(showsConnection ? [` ${terminal.style("dim", shownId)}`] : []),
    ...(frame.effect === undefined ? [] : [terminal.style("yellow", frame.effect)]),
  ];
  const connectionColumns = showsConnection ? 2 + (isWide ? ID_COLUMNS : SHORT_ID_COLUMNS + 1) : 0;
  const effectColumns = frame.effect === undefined ? 0 : frame.effect.length + 1;
  const used = 12 + 2 + 1 + textWidth(type) + 10 + connectionColumns + effectColumns + 2;
  return `${parts.join(" ")}  ${fitted(contentOf(frame), Math.max(MIN_TEXT_COLUMNS, terminal.columns - used))}`.trimEnd();
}

/** On one line; what a closing frame holds begins with a number that is no text. */
function contentOf({ type, text }: FrameEvent): string {
  return text === null || type === "close" ? "" : visibleText(text.replaceAll(/\s+/gu, " ").trim());
}
