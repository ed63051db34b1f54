import type { FrameWriter } from "./frame-writer.ts";
import { FIRST_WINDOW_BYTES, SETTING } from "./peer-settings.ts";
import { CONNECTION_WINDOW_BYTES } from "./receive-window.ts";
import type { SessionOptions } from "./session-events.ts";

/** What either side says first (RFC 9113, 3.4). */
export function connectionPreface(out: FrameWriter, options: SessionOptions): void {
  const { role, maxConcurrentStreams, section, takesWebSockets = false } = options;
  const said: [number, number][] = [[SETTING.headerListBytes, section.listBytes]];
  if (role === "client") {
    out.preface();
    said.push([SETTING.enablePush, 0]);
  }
  if (maxConcurrentStreams !== undefined) said.push([SETTING.maxConcurrentStreams, maxConcurrentStreams]);
  if (takesWebSockets) said.push([SETTING.enableConnectProtocol, 1]);
  out.settings(said);
  out.widen(0, CONNECTION_WINDOW_BYTES - FIRST_WINDOW_BYTES);
}
