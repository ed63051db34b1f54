import { useQuery } from "@tanstack/react-query";
import { api } from "../../api.ts";
import { pauseAllQuery, queryClient } from "../../queries.ts";
import { attempt } from "../../ui/attempt.ts";
import { Switch } from "../../ui/field.tsx";

/** Whether everything waits that no rule names. */
export function PauseAllSwitch() {
  const state = useQuery(pauseAllQuery);
  const set = async (enabled: boolean): Promise<void> => {
    await attempt("Pausing could not be switched", async () => {
      queryClient.setQueryData(pauseAllQuery.queryKey, await api.breakpoints.pauseAll({ body: { enabled } }));
    });
  };
  if (state.data === undefined) return null;
  return <Switch checked={state.data.enabled} onChange={(on) => void set(on)} label="Pause everything" />;
}
