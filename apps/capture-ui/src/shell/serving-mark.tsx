import { useQuery } from "@tanstack/react-query";
import { Drama } from "lucide-react";
import { mockServingQuery } from "../queries.ts";
import { Button } from "../ui/button.tsx";
import { Tooltip } from "../ui/tooltip.tsx";
import { navigate } from "./router.ts";
import styles from "./rule-switches.module.css";

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
