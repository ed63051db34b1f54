import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { formatRate, type ThrottleProfile, type ThrottleStats } from "@headworks/capture-contract";
import { api } from "../../api.ts";
import { queryClient, throttleQuery } from "../../queries.ts";
import { useLocation } from "../../shell/router.ts";
import { attempt } from "../../ui/toast.tsx";
import { Button } from "../../ui/button.tsx";
import { Switch } from "../../ui/field.tsx";
import { formatCount } from "../../ui/format.ts";
import { Card, Page } from "../../ui/page.tsx";
import { EmptyState, ErrorState, Spinner } from "../../ui/states.tsx";
import { Tooltip } from "../../ui/tooltip.tsx";
import { formatProfile, sameLine } from "./profile-draft.ts";
import { ProfileForm } from "./profile-form.tsx";
import { addSample, type RateSample } from "./rate-samples.ts";
import styles from "./throttle.module.css";

const WIDTH = 600;

const HEIGHT = 90;

const SAMPLES = 60;

const refresh = () => queryClient.invalidateQueries({ queryKey: ["throttle"] });

async function applyPreset(name: string): Promise<void> {
  await attempt("Could not change throttling", () =>
    api.throttle.setThrottle({ body: { preset: name, enabled: true } }),
  );
  await refresh();
}

export function ThrottleView() {
  const state = useQuery(throttleQuery);
  const presets = useQuery({
    queryKey: ["throttle", "presets"],
    queryFn: ({ signal }) => api.throttle.listThrottlePresets({ signal }),
    staleTime: Infinity,
  });
  const { params } = useLocation();
  const host = params.get("host");
  const set = async (enabled: boolean): Promise<void> => {
    await attempt("Could not toggle throttling", () => api.throttle.setThrottleEnabled({ body: { enabled } }));
    await refresh();
  };
  if (state.error !== null) {
    return (
      <ErrorState
        title="Could not load throttling"
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
      description="Simulates bandwidth, latency and loss for all traffic or for some hosts. Applies at once, also to transfers in progress."
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

/** Current throughput per second, and delayed and dropped requests. */
function RateGraph({ profile }: { readonly profile: ThrottleProfile | null }) {
  const stats = useQuery({
    queryKey: ["throttle", "stats"],
    queryFn: async ({ signal }) => ({ ...(await api.throttle.getThrottleStats({ signal })), atMs: performance.now() }),
    refetchInterval: 1000,
    staleTime: 0,
  });
  const samples = useSamples(stats.data);
  const last = samples.at(-1);
  const limit = Math.max(profile?.download_bps ?? 0, profile?.upload_bps ?? 0);
  const most = Math.max(1000, limit, ...samples.flatMap(({ down, up }) => [down, up]));
  return (
    <div className={styles["graph"]}>
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`Download ${formatRate(last?.down ?? 0)}, upload ${formatRate(last?.up ?? 0)}`}
      >
        {profile !== null && profile.download_bps > 0 && (
          <line
            className={styles["limit"]}
            x1={0}
            x2={WIDTH}
            y1={HEIGHT - (profile.download_bps / most) * HEIGHT}
            y2={HEIGHT - (profile.download_bps / most) * HEIGHT}
          />
        )}
        <polyline className={styles["down"]} points={line(samples, most, "down")} />
        <polyline className={styles["up"]} points={line(samples, most, "up")} />
      </svg>
      <p className={styles["legend"]}>
        <span className={styles["downText"]}>↓ {formatRate(last?.down ?? 0)}</span>
        <span className={styles["upText"]}>↑ {formatRate(last?.up ?? 0)}</span>
        <span>peak {formatRate(most)}</span>
        {stats.data !== undefined && (
          <>
            <span>{formatCount(stats.data.waiting_downloads + stats.data.waiting_uploads)} transfers queued</span>
            <span>{formatCount(stats.data.delayed_count)} delayed</span>
            <span>{formatCount(stats.data.lost_count)} dropped</span>
          </>
        )}
      </p>
    </div>
  );
}

type Reading = ThrottleStats & { readonly atMs: number };

/** Rates between successive readings. */
function useSamples(reading: Reading | undefined): readonly RateSample[] {
  const [state, setState] = useState<{
    readonly seen: Reading | undefined;
    readonly samples: readonly RateSample[];
  }>({ seen: undefined, samples: [] });
  if (reading === undefined || reading === state.seen) return state.samples;
  const samples = state.seen === undefined ? state.samples : addSample(state.samples, state.seen, reading, SAMPLES);
  // Derived during render, so that React draws once with both.
  setState({ seen: reading, samples });
  return samples;
}

function line(samples: readonly RateSample[], most: number, side: "down" | "up"): string {
  const step = WIDTH / (SAMPLES - 1);
  const start = WIDTH - (samples.length - 1) * step;
  return samples
    .map(
      (sample, index) =>
        `${(start + index * step).toFixed(1)},${(HEIGHT - 1 - (sample[side] / most) * (HEIGHT - 2)).toFixed(1)}`,
    )
    .join(" ");
}
