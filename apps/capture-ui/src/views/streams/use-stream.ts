import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { api } from "../../api.ts";
import { listenLive } from "../../live.ts";
import { throttled } from "./paged-rows.ts";

const REFRESH_MS = 400;

/** A stream, refetched while it is open. Disabled unless `isWanted`. */
export function useStream(id: string, isWanted = true) {
  const client = useQueryClient();
  useEffect(() => {
    if (!isWanted) return undefined;
    const refresh = throttled(() => void client.invalidateQueries({ queryKey: ["stream", id] }), REFRESH_MS);
    const stop = listenLive({
      frames: (frames) => {
        if (frames.some((frame) => frame.stream_id === id)) refresh.trigger();
      },
      traffic: (events) => {
        if (events.some((event) => event.type === "Cleared" || touches(event, id))) refresh.trigger();
      },
      framesMissed: refresh.trigger,
    });
    return () => {
      stop();
      refresh.stop();
    };
  }, [client, id, isWanted]);
  return useQuery({
    queryKey: ["stream", id],
    queryFn: ({ signal }) => api.streams.getStream({ params: { id }, signal }),
    enabled: isWanted,
    retry: false,
  });
}

/** Whether a traffic event concerns an entry. */
function touches(event: object, id: string): boolean {
  const data: unknown = Reflect.get(event, "data");
  if (Array.isArray(data)) return data.includes(id);
  return typeof data === "object" && data !== null && "id" in data && data.id === id;
}
