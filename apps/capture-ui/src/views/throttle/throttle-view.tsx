import { useQuery } from "@tanstack/react-query";
import { api } from "../../api.ts";
import { queryClient, throttleQuery } from "../../queries.ts";
import { usePlace } from "../../shell/router.ts";
import { attempt } from "../../ui/attempt.ts";
import { Button } from "../../ui/button.tsx";
import { Switch } from "../../ui/field.tsx";
import { Card, Page } from "../../ui/page.tsx";
import { EmptyState, ErrorState, Spinner } from "../../ui/states.tsx";
import { Tooltip } from "../../ui/tooltip.tsx";
import { formatProfile, sameLine } from "./profile-draft.ts";
import { ProfileForm } from "./profile-form.tsx";
import { RateGraph } from "./rate-graph.tsx";
import styles from "./throttle.module.css";

const refresh = () => queryClient.invalidateQueries({ queryKey: ["throttle"] });

async function applyPreset(name: string): Promise<void> {
  await attempt("The line was not changed", () => api.throttle.setThrottle({ body: { preset: name, enabled: true } }));
  await refresh();
}

/** Makes lines as slow and lossy as those of users. */
export function ThrottleView() {
  const state = useQuery(throttleQuery);
  const presets = useQuery({
    queryKey: ["throttle", "presets"],
    queryFn: ({ signal }) => api.throttle.listThrottlePresets({ signal }),
    staleTime: Infinity,
  });
  const { params } = usePlace();
  const host = params.get("host");
  const set = async (enabled: boolean): Promise<void> => {
    await attempt("The throttle was not switched", () => api.throttle.setThrottleEnabled({ body: { enabled } }));
    await refresh();
  };
  if (state.error !== null) {
    return (
      <ErrorState
        title="The throttle cannot be loaded"
        error={state.error}
        onRetry={() => {
          void state.refetch();
        }}
      />
    );
  }
  if (state.data === undefined) return <EmptyState icon={<Spinner />} title="" />;
  const { profile, enabled } = state.data;
  return (
    <Page
      title="Throttle"
      description="Bandwidth, latency and loss for everything that passes, or for some hosts. Transfers that run feel a change at once."
      actions={<Switch label={enabled ? "On" : "Off"} checked={enabled} onChange={(on) => void set(on)} />}
    >
      <div className={styles["presets"]} role="group" aria-label="Presets">
        {presets.data?.map((preset) => (
          <Tooltip key={preset.name} text={formatProfile(preset)}>
            <Button pressed={enabled && sameLine(profile, preset)} onClick={() => void applyPreset(preset.name)}>
              {preset.name}
            </Button>
          </Tooltip>
        ))}
      </div>
      <Card title="Now">
        <RateGraph profile={enabled ? profile : null} />
      </Card>
      <ProfileForm key={JSON.stringify([profile, host])} profile={profile} host={host} onSaved={() => void refresh()} />
    </Page>
  );
}
