import { cookieCount } from "./cookie-rows.ts";
import type { TrafficEntry } from "@headworks/capture-contract";
import { parseQuery } from "@headworks/http-fields";
import { DETAIL_TABS, type DetailTab } from "./detail-memory.ts";

export type Request = TrafficEntry["request"];

export function hasForm(request: Pick<Request, "content_type" | "body_stored_size">): boolean {
  return /^application\/x-www-form-urlencoded\b/iu.test(request.content_type ?? "") && request.body_stored_size > 0;
}

/** The tabs that have content for an entry. */
export function tabsOf(entry: TrafficEntry, hasStream: boolean): readonly DetailTab[] {
  const isThere: Readonly<Record<DetailTab, boolean>> = {
    overview: true,
    // A tunnel's bytes are not decoded; only a failure response is a message.
    messages: !entry.is_passthrough || (entry.response?.body_stored_size ?? 0) > 0,
    stream: hasStream,
    params: !entry.is_passthrough && (hasForm(entry.request) || parseQuery(entry.request.url).length > 0),
    cookies: cookieCount(entry) > 0,
    timing: true,
  };
  return DETAIL_TABS.filter((tab) => isThere[tab]);
}
