import { createSocket, type RemoteInfo } from "node:dgram";
import { once } from "node:events";
import { Resolver } from "node:dns/promises";
import { isIPv4 } from "node:net";
import { parseAddress } from "@headworks/host-patterns";
import type { NameLookup } from "#egress/egress-dialer.ts";

/** What the server knows of a name: addresses, or a way to go wrong. */
export type DnsResponse = readonly string[] | "nxdomain" | "servfail" | "silence" | "garbage";

const TYPE_A = 1;
const TYPE_AAAA = 28;

/** A name server of our own, over UDP on this machine. */
export interface DnsServer {
  /** Looks names up at this server, IPv4 addresses first. */
  readonly lookup: NameLookup;
  /** Questions so far: `A name` or `AAAA name`. */
  readonly questions: readonly string[];
  /** What a name answers from now on; a list of answers gives one after the other, the last one for good. */
  set(name: string, ...responses: readonly DnsResponse[]): void;
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export async function startDnsServer(): Promise<DnsServer> {
  const socket = createSocket("udp4");
  const names = new Map<string, { responses: readonly DnsResponse[]; asked: Record<number, number> }>();
  const questions: string[] = [];
  const response = (message: Buffer, from: RemoteInfo): void => {
    const question = readQuestion(message);
    questions.push(`${question.type === TYPE_A ? "A" : "AAAA"} ${question.name}`);
    const known = names.get(question.name);
    const asked = known === undefined ? 0 : (known.asked[question.type] ?? 0);
    if (known !== undefined) known.asked[question.type] = asked + 1;
    const reply = known?.responses[Math.min(asked, known.responses.length - 1)] ?? "nxdomain";
    if (reply === "silence") return;
    socket.send(replyTo(message, question, reply), from.port, from.address);
  };
  socket.on("message", response);
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  const resolver = new Resolver({ timeout: 20_000, tries: 1 });
  resolver.setServers([`127.0.0.1:${socket.address().port}`]);
  const close = async (): Promise<void> => {
    resolver.cancel();
    socket.close();
    await once(socket, "close");
  };
  return {
    lookup: async (host) => await resolveBoth(resolver, host),
    questions,
    set: (name, ...responses) => void names.set(name, { responses, asked: {} }),
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** Both families; one that has nothing is no failure while the other has something. */
async function resolveBoth(resolver: Resolver, host: string): Promise<readonly string[]> {
  const [v4, v6] = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)]);
  for (const result of [v4, v6]) {
    if (result.status === "fulfilled") continue;
    const reason: unknown = result.reason;
    const isEmpty = reason instanceof Error && "code" in reason && reason.code === "ENODATA";
    if (!isEmpty) throw reason;
  }
  return [v4, v6].flatMap((result) => (result.status === "fulfilled" ? result.value : []));
}

interface Question {
  readonly name: string;
  readonly type: number;
  readonly endsAt: number;
}

function readQuestion(message: Buffer): Question {
  const labels: string[] = [];
  let at = 12;
  for (let length = message[at] ?? 0; length > 0; length = message[at] ?? 0) {
    labels.push(message.toString("latin1", at + 1, at + 1 + length));
    at += length + 1;
  }
  return { name: labels.join(".").toLowerCase(), type: message.readUInt16BE(at + 1), endsAt: at + 5 };
}

/** RFC 1035 section 4: the question again, and the records that fit its type. */
function replyTo(message: Buffer, question: Question, reply: Exclude<DnsResponse, "silence">): Buffer {
  if (reply === "garbage") return Buffer.concat([message.subarray(0, 2), Buffer.from("this is not DNS")]);
  const wanted = Array.isArray(reply) ? recordsOf(reply, question.type) : [];
  const code = reply === "nxdomain" ? 3 : reply === "servfail" ? 2 : 0;
  const head = Buffer.alloc(12);
  message.copy(head, 0, 0, 2);
  head.writeUInt16BE(0x8180 | code, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(wanted.length, 6);
  return Buffer.concat([head, message.subarray(12, question.endsAt), ...wanted]);
}

function recordsOf(addresses: readonly string[], type: number): Buffer[] {
  return addresses
    .filter((address) => isIPv4(address) === (type === TYPE_A) && (type === TYPE_A || type === TYPE_AAAA))
    .map((address) => {
      const value = parseAddress(address)?.value ?? 0n;
      const data = Buffer.from(value.toString(16).padStart(32, "0"), "hex").subarray(type === TYPE_A ? 12 : 0);
      const record = Buffer.alloc(12);
      record.writeUInt16BE(0xc00c, 0);
      record.writeUInt16BE(type, 2);
      record.writeUInt16BE(1, 4);
      record.writeUInt32BE(0, 6);
      record.writeUInt16BE(data.length, 10);
      return Buffer.concat([record, data]);
    });
}
