import type { PausedItem } from "@headworks/capture-contract";
import type { RawFields } from "@headworks/http1";
import type { BodyCapture } from "#exchange/body.ts";
import { editableBody } from "./editable-body.ts";
import { bodyLeftOut, showBody, showRequest, showResponse } from "./message-shapes.ts";
import type { ShownBody } from "./message-shapes.ts";
import type { Paused } from "./paused-exchanges.ts";

export interface ShowOptions {
  readonly position: number;
  readonly withBodies: boolean;
  readonly bodyLimitBytes: number;
}

/** The wire form of an exchange that waits; bodies are decoded only here, and only when they are asked for. */
export async function showPaused(paused: Paused, options: ShowOptions): Promise<PausedItem> {
  const { exchange, side, rule, deadlineMs } = paused;
  const { request, response } = exchange;
  const held = await heldBody(paused, options);
  const requestBody = side === "request" ? held : await sentBody(exchange.requestBody, request.fields, options);
  return {
    id: paused.id,
    entry_id: exchange.id,
    direction: side,
    request: showRequest(request, requestBody),
    response: side === "response" && response !== undefined ? showResponse(response, held) : null,
    paused_at: new Date(paused.pausedAtMs).toISOString(),
    deadline: deadlineMs === undefined ? null : new Date(deadlineMs).toISOString(),
    position: options.position,
    rule_id: rule.id,
    breakpoint_id: rule.id,
    rule_name: rule.name,
    client_addr: exchange.client.address ?? null,
    modifications: [],
  };
}

/** The body of the message that waits. */
async function heldBody({ exchange, side, content }: Paused, options: ShowOptions): Promise<ShownBody> {
  const { sizeBytes } = side === "request" ? exchange.requestBody : exchange.responseBody;
  switch (content?.kind) {
    case undefined:
      return bodyLeftOut(sizeBytes, "receiving");
    case "complete": {
      const { bytes } = content;
      if (bytes.length === 0) return bodyLeftOut(0, "none");
      if (!options.withBodies) return bodyLeftOut(bytes.length, "left_out");
      const message = side === "request" ? exchange.request : exchange.response;
      return showBody(await editableBody(bytes, message?.fields ?? [], options.bodyLimitBytes), bytes.length);
    }
    case "too-large":
      return bodyLeftOut(sizeBytes, "too_large");
    case "stream":
      return bodyLeftOut(sizeBytes, "stream");
    case "gone":
      return bodyLeftOut(sizeBytes, "gone");
  }
}

/** The body of a request that was sent already, as far as it was kept in memory for the record. */
async function sentBody(body: BodyCapture, fields: Readonly<RawFields>, options: ShowOptions): Promise<ShownBody> {
  if (body.sizeBytes === 0) return bodyLeftOut(0, "none");
  if (!options.withBodies || body.state !== "complete" || body.spooled !== undefined) {
    return bodyLeftOut(body.sizeBytes, "left_out");
  }
  const bytes = Buffer.concat(body.pieces);
  return showBody(await editableBody(bytes, fields, options.bodyLimitBytes), bytes.length);
}
