import { createHash } from "node:crypto";
import type { RawConnection } from "@headworks/testkit";
import { bytesOf } from "./script.ts";
import type { Ask, Case, Octets, Step } from "./script.ts";
import { endToEnd, readResponse, readHead, readRequestBody, valueOf } from "./wire.ts";
import type { Head, SeenResponse, SeenRequest } from "./wire.ts";

/** Everything both ends saw of a case, in a form that can be compared and printed. */
export interface Outcome {
  readonly requests: readonly object[];
  readonly responses: readonly object[];
}

/** A way to the origin. */
export interface Way {
  /** What stands before the path in a request line. */
  readonly targetPrefix: string;
  readonly authority: string;
  readonly open: () => Promise<RawConnection>;
}

/** Plays the origin's part on its connections, one case at a time. */
export class ScriptedOrigin {
  #steps: readonly Step[] = [];
  #seen: SeenRequest[] = [];

  /** The following requests, on whatever connection, are for these steps; gives the list of those that will be seen. */
  expect(steps: readonly Step[]): readonly SeenRequest[] {
    this.#steps = steps;
    this.#seen = [];
    return this.#seen;
  }

  readonly serve = async (connection: RawConnection): Promise<void> => {
    try {
      for (;;) {
        const head = await readHead(connection);
        // A connection may wait for its client to come back, with another case.
        const seen = this.#seen;
        const step = this.#steps[Number(valueOf(head.fields, "x-step"))];
        if (!step) throw new Error("a request that no step sends");
        const { tell } = step;
        if (tell.early !== undefined) await send(connection, tell.early, undefined);
        seen.push(await readRequestBody(connection, tell.ignoresBody ? withoutFraming(head) : head));
        await send(connection, tell.bytes, tell.pieceBytes);
        if (tell.closes) return;
      }
    } catch (error) {
      // The end of the connection is the regular end of its script.
      if (!connection.ended) throw error;
    }
  };
}

/** A head whose body is left unread. */
function withoutFraming(head: Head): Head {
  return { ...head, fields: head.fields.filter(([name]) => !/^(?:content-length|transfer-encoding)$/i.test(name)) };
}

async function send(connection: RawConnection, octets: Octets, pieceBytes: number | undefined): Promise<void> {
  const bytes = bytesOf(octets);
  if (pieceBytes === undefined) return await connection.write(bytes);
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    await connection.write(bytes.subarray(at, at + pieceBytes));
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Sends a case's requests one way and tells what both ends saw. */
export async function runCase(each: Case, origin: ScriptedOrigin, way: Way): Promise<Outcome> {
  const requests = origin.expect(each.steps);
  await using connection = await way.open();
  const responses: SeenResponse[] = [];
  if (each.pipelined) {
    const all = each.steps.map(({ ask }, index) =>
      Buffer.concat([headBytes(ask, index, way), bytesOf(ask.body ?? "")]),
    );
    await connection.write(Buffer.concat(all));
  }
  for (const [index, { ask }] of each.steps.entries()) {
    const body = bytesOf(ask.body ?? "");
    if (!each.pipelined) {
      const head = headBytes(ask, index, way);
      await send(connection, ask.waits ? head : Buffer.concat([head, body]), ask.pieceBytes);
    }
    const onContinue = ask.waits ? async (): Promise<void> => await connection.write(body) : undefined;
    responses.push(await readResponse(connection, ask.method ?? "GET", onContinue));
  }
  if (connection.unreadBytes > 0) throw new Error(`${connection.unreadBytes} bytes too many behind the last answer`);
  return { requests: requests.map(comparableRequest), responses: responses.map(comparableResponse) };
}

function headBytes(ask: Ask, index: number, way: Way): Buffer {
  const { method = "GET", path = "/", version = "HTTP/1.1", fields = [] } = ask;
  const lines = [
    `${method} ${way.targetPrefix}${path} ${version}`,
    `Host: ${way.authority}`,
    `X-Step: ${index}`,
    ...fields,
  ];
  return Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1");
}

/** Proxies speak their own version (RFC 9110, 6.2), so the version is no part of what must be equal. */
function comparableRequest({ line, fields, framing, body, trailers }: SeenRequest): object {
  return { line: line.replace(/ HTTP\/1\.[01]$/, ""), fields: endToEnd(fields), framing, body: digest(body), trailers };
}

function comparableResponse({ interim, status, reason, fields, framing, body, trailers }: SeenResponse): object {
  const early = interim.map(({ start, fields: own }) => ({ start, fields: endToEnd(own) }));
  return { early, status, reason, fields: endToEnd(fields), framing, body: digest(body), trailers };
}

/** Short bodies as they are, long ones by size and hash: a difference must stay readable. */
function digest(body: Buffer): string {
  if (body.length <= 200) return body.toString("latin1");
  return `${body.length} bytes ${createHash("sha256").update(body).digest("hex").slice(0, 16)}`;
}
