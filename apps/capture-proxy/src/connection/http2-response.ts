import { appendHttp2Fields } from "@headworks/http-fields";
import { removeField, setFraming, withoutHopByHop } from "@headworks/http1";
import type { Framing, RawFields } from "@headworks/http1";
import type { ResponseMessage } from "#exchange/exchange.ts";

const KEPT: ReadonlySet<string> = new Set(["trailer"]);

/** The field section of a response, `:status` first. */
export function responseSection({ status, fields }: Readonly<ResponseMessage>, framing: Framing): string[] {
  const forwarded = withoutHopByHop(fields, { keep: KEPT });
  setFraming(forwarded, framing);
  // RFC 9110, 8.6 and 15.3.6: neither status has a body.
  if (status === 204 || status === 205) removeField(forwarded, "content-length");
  return withFields([":status", String(status)], forwarded);
}

/** The section that accepts a WebSocket: 200 without Sec-WebSocket-Accept (RFC 8441, 5). */
export function switchSection(fields: Readonly<RawFields>): string[] {
  const forwarded = withoutHopByHop(fields);
  removeField(forwarded, "sec-websocket-accept");
  return withFields([":status", "200"], forwarded);
}

function withFields(section: string[], fields: Readonly<RawFields>): string[] {
  appendHttp2Fields(fields, section);
  return section;
}
