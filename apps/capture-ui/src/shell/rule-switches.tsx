import { useQuery } from "@tanstack/react-query";
import { Drama, Gauge, Pause } from "lucide-react";
import { api } from "../api.ts";
import { mockServingQuery, pauseAllQuery, queryClient, throttleQuery } from "../queries.ts";
import { attempt } from "../ui/toast.tsx";
import { Button, IconButton } from "../ui/button.tsx";
import { isolatedName } from "../ui/format.ts";
import { Menu, type MenuEntry } from "../ui/menu.tsx";
import { Tooltip } from "../ui/tooltip.tsx";
import { navigate } from "./router.ts";
import styles from "./rule-switches.module.css";

function usePausedCount(): number {
  return useQuery(pauseAllQuery).data?.paused_count ?? 0;
}

/** Number of paused messages, on the rail. */
export function PausedBadge() {
  const count = usePausedCount();
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

/** Presets offered in the menu; the Throttle screen has all. */
const OFFERED = ["Slow 3G", "3G", "Fast 3G", "4G LTE", "Offline"];

async function change(action: () => Promise<unknown>): Promise<void> {
  await attempt("Could not change throttling", action);
  await queryClient.invalidateQueries({ queryKey: ["throttle"] });
}

export function ThrottleMenu() {
  const state = useQuery(throttleQuery).data;
  const on = state?.enabled === true;
  const items = (): readonly MenuEntry[] => [
    { kind: "heading", label: on ? `Throttled: ${isolatedName(state.profile.name)}` : "Not throttled" },
    ...OFFERED.map((name): MenuEntry => ({
      kind: "item",
      label: name,
      onSelect: () => void change(() => api.throttle.setThrottle({ body: { preset: name, enabled: true } })),
    })),
    { kind: "separator" },
    {
      kind: "item",
      label: "No throttling",
      disabled: !on,
      onSelect: () => void change(() => api.throttle.setThrottleEnabled({ body: { enabled: false } })),
    },
    { kind: "item", label: "More…", onSelect: () => navigate("/throttle") },
  ];
  const icon = <Gauge size={15} />;
  return (
    <Menu
      align="end"
      items={items}
      trigger={
        on ? (
          <Button icon={icon} pressed aria-label={`Throttle: ${isolatedName(state.profile.name)}`}>
            <span className={styles["what"]}>{state.profile.name}</span>
          </Button>
        ) : (
          <IconButton className={styles["roomy"]} label="Throttle" icon={icon} />
        )
      }
    />
  );
}

/** Reminds on every screen that a recorded session is served in place of all servers. */
export function ServingMark() {
  const state = useQuery(mockServingQuery).data;
  if (state === undefined || !state.serving) return null;
  return (
    <Tooltip text={`${state.session_name ?? "A session"} is served in place of all servers`}>
      <Button pressed icon={<Drama size={14} />} onClick={() => navigate("/mocks?panel=serving")}>
        <span className={styles["what"]}>Serving a session</span>
      </Button>
    </Tooltip>
  );
}
