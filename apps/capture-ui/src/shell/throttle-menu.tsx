import { useQuery } from "@tanstack/react-query";
import { Gauge } from "lucide-react";
import { api } from "../api.ts";
import { queryClient, throttleQuery } from "../queries.ts";
import { attempt } from "../ui/attempt.ts";
import { Button, IconButton } from "../ui/button.tsx";
import { isolatedName } from "../ui/isolated-name.ts";
import { Menu, type MenuEntry } from "../ui/menu.tsx";
import { navigate } from "./router.ts";
import styles from "./rule-switches.module.css";

/** Presets offered in the menu; the Throttle screen has all. */
const OFFERED = ["Slow 3G", "3G", "Fast 3G", "4G LTE", "Offline"];

async function change(action: () => Promise<unknown>): Promise<void> {
  await attempt("Could not change throttling", action);
  await queryClient.invalidateQueries({ queryKey: ["throttle"] });
}

/** Throttling state, with a quick menu. */
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
