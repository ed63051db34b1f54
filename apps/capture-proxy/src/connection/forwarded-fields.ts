import { setFraming, withoutHopByHop } from "@headworks/http1";
import type { ResponseStart, RawFields } from "@headworks/http1";

/** Trailers are forwarded, so the field announcing them is too. */
const KEPT_IN_RESPONSES: ReadonlySet<string> = new Set(["trailer"]);
const KEPT_IN_SWITCHES: ReadonlySet<string> = new Set(["connection", "upgrade"]);

export function responseFields(fields: Readonly<RawFields>, start: ResponseStart): RawFields {
  const forwarded = withoutHopByHop(fields, { keep: KEPT_IN_RESPONSES });
  setFraming(forwarded, start.framing);
  if (start.connection !== undefined) forwarded.push("Connection", start.connection);
  return forwarded;
}

export function switchFields(fields: Readonly<RawFields>): RawFields {
  return withoutHopByHop(fields, { keep: KEPT_IN_SWITCHES });
}

export function informationalFields(fields: Readonly<RawFields>): RawFields {
  return withoutHopByHop(fields);
}
