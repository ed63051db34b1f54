import { api, errorText } from "../api.ts";
import { captureQuery, queryClient } from "../queries.ts";
import { toast } from "../ui/toast.tsx";

export async function toggleCapture(): Promise<void> {
  const before = queryClient.getQueryData(captureQuery.queryKey);
  try {
    // Set rather than flipped, so that two windows toggling at once agree.
    const status = await api.capture.toggleCapture(
      before === undefined ? {} : { body: { enabled: !before.capture_enabled } },
    );
    queryClient.setQueryData(captureQuery.queryKey, status);
    toast({
      key: "capture",
      title: status.capture_enabled ? "Recording" : "Passthrough",
      text: status.capture_enabled ? "Traffic is recorded." : "Traffic passes through without being recorded.",
      durationMs: 2500,
    });
  } catch (error) {
    toast({ tone: "error", title: "Could not change the mode", text: errorText(error) });
  }
}
