import { useQuery } from "@tanstack/react-query";
import { Pause } from "lucide-react";
import { api } from "../api.ts";
import { pauseAllQuery, queryClient } from "../queries.ts";
import { attempt } from "../ui/attempt.ts";
import { Button, IconButton } from "../ui/button.tsx";
import { navigate } from "./router.ts";
import styles from "./rule-switches.module.css";

function useWaitingCount(): number {
  return useQuery(pauseAllQuery).data?.paused_count ?? 0;
}

/** Number of paused messages, on the rail. */
export function WaitingBadge() {
  const count = useWaitingCount();
  if (count === 0) return null;
  return (
    <span className={styles["badge"]} aria-hidden>
      {count}
    </span>
  );
}

/** Toggles pausing of all requests, and links to the paused ones. Nothing opens by itself. */
export function PauseSwitch() {
  const state = useQuery(pauseAllQuery);
  const count = state.data?.paused_count ?? 0;
  const on = state.data?.enabled === true;
  const toggle = (): void => {
    void attempt("Could not toggle pausing", async () => {
      queryClient.setQueryData(pauseAllQuery.queryKey, await api.breakpoints.pauseAll({ body: { enabled: !on } }));
    });
  };
  return (
    <>
      {count > 0 && (
        <Button className={styles["waiting"]} data-waiting onClick={() => navigate("/breakpoints?part=waiting")}>
          {count} <span className={styles["what"]}>{count === 1 ? "request paused" : "requests paused"}</span>
        </Button>
      )}
      <IconButton
        className={styles["roomy"]}
        label={on ? "Pause only requests that rules match" : "Pause every request"}
        icon={<Pause size={15} />}
        pressed={on}
        onClick={toggle}
      />
    </>
  );
}
