import type { ExchangeView } from "#exchange/exchange.ts";
import type { Observer } from "#exchange/phases.ts";
import type { SliceHost } from "#slice.ts";
import { streamForm } from "./stream-form.ts";
import { StreamWatch } from "./stream-watch.ts";

/** Watches the answers that are streams: each event of them is stored when it comes. */
export function createStreamsObserver(host: Pick<SliceHost, "streams" | "settings" | "clock" | "log">): Observer {
  const watches = new Map<ExchangeView, StreamWatch>();
  return {
    name: "streams",
    onResponding: (exchange) => {
      // A rule answers instead of the origin: another body takes the place of the one that is watched.
      if (watches.size > 0 && watches.has(exchange)) return watches.get(exchange)?.replaced();
      if (!exchange.isRecorded) return;
      const form = streamForm(exchange);
      const { running } = host.settings;
      if (form === undefined || !running.capture_response_bodies) return;
      const watch = new StreamWatch({
        recorder: host.streams.open(exchange, form.kind),
        exchange,
        maxFrameBytes: running.max_body_size,
        now: () => host.clock.now(),
        onEnd: () => watches.delete(exchange),
        onFault: (error) => host.log.error({ err: error }, "A stream could not be read on"),
      });
      watches.set(exchange, watch);
      exchange.responseBody.watch(watch);
    },
  };
}
