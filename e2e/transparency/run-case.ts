import { createHash } from "node:crypto";
import type { RawConnection } from "@headworks/testkit";
import { bytesOf } from "./script.ts";
import type { ClientRequest, Case, Octets, Step } from "./script.ts";
import { endToEnd, readResponse, readHead, readRequestBody, valueOf } from "./wire.ts";
import type { Head, SeenResponse, SeenRequest } from "./wire.ts";

/** Everything that both ends saw of a case, in a form for comparison and printing. */
export interface Outcome {
  readonly requests: readonly object[];
  readonly responses: readonly object[];
}

/** A route to the origin. */
export interface Route {
  /** The text before the path in a request line. */
  readonly targetPrefix: string;
  readonly authority: string;
  readonly open: () => Promise<RawConnection>;
}

/** Acts as the origin on its connections, one case at a time. */
export class ScriptedOrigin {
  #steps: readonly Step[] = [];
  #seen: SeenRequest[] = [];

  /** The next requests, on any connection, use these steps; returns the list that will receive them. */
  expect(steps: readonly Step[]): readonly SeenRequest[] {
    this.#steps = steps;
    this.#seen = [];
    return this.#seen;
  }

  readonly serve = async (connection: RawConnection): Promise<void> => {
    try {
      for (;;) {
        const head = await readHead(connection);
        // A kept connection may be reused by another case.
        const seen = this.#seen;
        const step = this.#steps[Number(valueOf(head.fields, "x-step"))];
        if (!step) throw new Error("a request that no step sends");
        const { response } = step;
        if (response.early !== undefined) await send(connection, response.early, undefined);
        seen.push(await readRequestBody(connection, response.ignoresBody ? withoutFraming(head) : head));
        await send(connection, response.bytes, response.pieceBytes);
        if (response.closes) return;
      }
    } catch (error) {
      // The connection ends normally after its script.
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

/** Sends a case's requests on one route and returns what both ends saw. */
export async function runCase(each: Case, origin: ScriptedOrigin, route: Route): Promise<Outcome> {
  const requests = origin.expect(each.steps);
  await using connection = await route.open();
  const responses: SeenResponse[] = [];
  if (each.pipelined) {
    const all = each.steps.map(({ request }, index) =>
      Buffer.concat([headBytes(request, index, route), bytesOf(request.body ?? "")]),
    );
    await connection.write(Buffer.concat(all));
  }
  for (const [index, { request }] of each.steps.entries()) {
    const body = bytesOf(request.body ?? "");
    if (!each.pipelined) {
      const head = headBytes(request, index, route);
      await send(connection, request.waits ? head : Buffer.concat([head, body]), request.pieceBytes);
    }
    const onContinue = request.waits ? async (): Promise<void> => await connection.write(body) : undefined;
    responses.push(await readResponse(connection, request.method ?? "GET", onContinue));
  }
  if (connection.unreadBytes > 0) throw new Error(`${connection.unreadBytes} surplus bytes after the last response`);
  return { requests: requests.map(comparableRequest), responses: responses.map(comparableResponse) };
}

function headBytes(request: ClientRequest, index: number, route: Route): Buffer {
  const { method = "GET", path = "/", version = "HTTP/1.1", fields = [] } = request;
  const lines = [
    `${method} ${route.targetPrefix}${path} ${version}`,
    `Host: ${route.authority}`,
    `X-Step: ${index}`,
    ...fields,
  ];
  return Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1");
}

/** Proxies send their own version (RFC 9110, 6.2), so the version is not compared. */
function comparableRequest({ line, fields, framing, body, trailers }: SeenRequest): object {
  return { line: line.replace(/ HTTP\/1\.[01]$/, ""), fields: endToEnd(fields), framing, body: digest(body), trailers };
}

function comparableResponse({ interim, status, reason, fields, framing, body, trailers }: SeenResponse): object {
  const early = interim.map(({ start, fields: own }) => ({ start, fields: endToEnd(own) }));
  return { early, status, reason, fields: endToEnd(fields), framing, body: digest(body), trailers };
}

/** Short bodies as they are, long ones by size and hash, to keep differences readable. */
function digest(body: Buffer): string {
  if (body.length <= 200) return body.toString("latin1");
  return `${body.length} bytes ${createHash("sha256").update(body).digest("hex").slice(0, 16)}`;
}
