import type { ExchangeView } from "#exchange/exchange.ts";
import type { Observer } from "#exchange/phases.ts";
import type { SliceHost } from "#slice.ts";
import { streamForm } from "./stream-form.ts";
import { StreamWatch } from "./stream-watch.ts";

/** Watches streamed responses and stores each event on arrival. */
export function createStreamsObserver(host: Pick<SliceHost, "streams" | "settings" | "clock" | "log">): Observer {
  const watches = new Map<ExchangeView, StreamWatch>();
  return {
    name: "streams",
    onResponding: (exchange) => {
      // A rule responds instead of the origin: its body replaces the watched one.
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
        onFault: (error) => host.log.error({ err: error }, "Recording of a stream failed"),
      });
      watches.set(exchange, watch);
      exchange.responseBody.watch(watch);
    },
  };
}
