import { AdminCallError } from "./admin-client.ts";
import { EXIT } from "./invocation.ts";
import type { Online } from "./online-commands.ts";
import { painter } from "./table.ts";
import { visibleText } from "./visible-text.ts";

interface Event {
  readonly id: string;
  readonly kind: string;
  readonly timestamp: string;
  readonly payload: Readonly<Record<string, unknown>>;
}

/** `sluice events [--follow]`: prints past events of a gateway, and new ones. */
export async function events(options: { follow?: boolean; limit: string }, online: Online): Promise<number> {
  const { client, invocation } = online;
  if (!/^(?:[1-9][0-9]{0,2}|1000)$/.test(options.limit)) {
    invocation.stderr.write(`sluice: --limit takes 1 to 1000, not ${JSON.stringify(options.limit)}\n`);
    return EXIT.warnings;
  }
  const { text } = await client.call({ path: `/events?limit=${options.limit}` });
  const past = (JSON.parse(text) as { events: readonly Event[] }).events.toReversed();
  for (const event of past) write(event, online);
  if (options.follow !== true) return EXIT.ok;
  const since = past.at(-1)?.id;
  const query = since === undefined ? "" : `?since=${encodeURIComponent(since)}`;
  const stream = await client.stream({ path: `/events/stream${query}` });
  try {
    for await (const event of eventsOf(stream.setEncoding("utf8"))) write(event, online);
  } catch (error) {
    throw new AdminCallError("The connection to the gateway broke", { cause: error });
  }
  throw new AdminCallError("The gateway ended the stream");
}

/** Parses server-sent events in the form this server sends them: one data line each. */
async function* eventsOf(stream: AsyncIterable<string>): AsyncGenerator<Event> {
  let waiting = "";
  for await (const piece of stream) {
    const lines = (waiting + piece).split("\n");
    waiting = lines.pop() ?? "";
    for (const line of lines) if (line.startsWith("data: ")) yield JSON.parse(line.slice(6)) as Event;
  }
}

function write(event: Event, { invocation, isJson }: Online): void {
  const { stdout, environment } = invocation;
  if (isJson) return void stdout.write(`${JSON.stringify(event)}\n`);
  const paint = painter(stdout, environment);
  const facts = Object.entries(event.payload).map(([name, value]) => `${name}=${String(value)}`);
  const style = BAD.has(event.kind) ? "red" : "green";
  const kind = paint(style, visibleText(event.kind).padEnd(18));
  stdout.write(`${paint("dim", event.timestamp)}  ${kind}  ${visibleText(facts.join(" "))}\n`);
}

const BAD = new Set(["breaker_opened", "endpoint_ejected", "config_rejected"]);
