import {
  formatBitRate,
  formatRate,
  type NewThrottle,
  type ThrottleProfile,
  type ThrottleStats,
} from "@headworks/capture-contract";
import { useMutation, useQuery } from "@tanstack/react-query";
import { X } from "lucide-react";
import { useState } from "react";
import { api } from "../../api.ts";
import { queryClient, throttleQuery } from "../../queries.ts";
import { fieldErrors } from "../../rules/field-errors.ts";
import { Refused } from "../../rules/rule-editor.tsx";
import { setParams, useLocation } from "../../shell/router.ts";
import { Button, IconButton } from "../../ui/button.tsx";
import { Field, Switch, TextInput } from "../../ui/field.tsx";
import { formatCount, isolatedName } from "../../ui/format.ts";
import { Card, Page } from "../../ui/page.tsx";
import { Segmented } from "../../ui/segmented.tsx";
import { EmptyState, ErrorState, Spinner } from "../../ui/states.tsx";
import { attempt } from "../../ui/toast.tsx";
import { Tooltip } from "../../ui/tooltip.tsx";
import {
  DIAL_KBPS,
  dialStep,
  draftOfProfile,
  formatProfile,
  type ProfileDraft,
  profileOf,
  sameLine,
} from "./profile-draft.ts";
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

function ProfileForm({
  profile,
  host,
  onSaved,
}: {
  readonly profile: ThrottleProfile;
  /** A host from the URL, added to the list. */
  readonly host: string | null;
  readonly onSaved: () => void;
}) {
  const [draft, setDraft] = useState<ProfileDraft>(() => {
    const start = draftOfProfile(profile);
    return host === null || start.hosts.includes(host) ? start : { ...start, hosts: [...start.hosts, host] };
  });
  const built = profileOf(draft);
  const save = useMutation({
    mutationFn: (body: NewThrottle) => api.throttle.setThrottle({ body: { ...body, enabled: true } }),
    onSuccess: () => {
      if (host !== null) setParams({ host: null }, { replace: true });
      onSaved();
    },
  });
  const refused = fieldErrors(save.error, []);
  const set = (change: Partial<ProfileDraft>): void => {
    setDraft({ ...draft, ...change, name: change.name ?? "Custom" });
    save.reset();
  };
  return (
    <form
      aria-label="Profile"
      onSubmit={(event) => {
        event.preventDefault();
        if (built.ok) save.mutate(built.body);
      }}
    >
      <Card
        title={`Profile: ${isolatedName(draft.name)}`}
        aside={
          <Button type="submit" variant="primary" disabled={!built.ok || save.isPending}>
            Apply
          </Button>
        }
      >
        <div className={styles["form"]}>
          <Dial label="Download" kbps={draft.downloadKbps} onChange={(downloadKbps) => set({ downloadKbps })} />
          <Dial label="Upload" kbps={draft.uploadKbps} onChange={(uploadKbps) => set({ uploadKbps })} />
          <div className={styles["fields"]}>
            <Field label="Latency, ms">
              <TextInput
                inputMode="numeric"
                value={draft.latencyMs}
                onChange={(event) => set({ latencyMs: event.target.value })}
              />
            </Field>
            <Field label="Jitter, ± ms">
              <TextInput
                inputMode="numeric"
                value={draft.jitterMs}
                onChange={(event) => set({ jitterMs: event.target.value })}
              />
            </Field>
            <Field label="Dropped requests, %">
              <TextInput
                inputMode="numeric"
                value={draft.lossPercent}
                onChange={(event) => set({ lossPercent: event.target.value })}
              />
            </Field>
          </div>
          <div className={styles["loss"]}>
            <span>Dropped requests</span>
            <Segmented
              label="Behavior of dropped requests"
              value={draft.lossMode}
              options={[
                { value: "reset", label: "reset" },
                { value: "stall", label: "hang" },
              ]}
              onChange={(lossMode) => set({ lossMode })}
            />
          </div>
          <HostList hosts={draft.hosts} onChange={(hosts) => set({ hosts })} />
          <Refused>{built.ok ? refused.general : built.message}</Refused>
        </div>
      </Card>
    </form>
  );
}

function Dial({
  label,
  kbps,
  onChange,
}: {
  readonly label: string;
  readonly kbps: string;
  readonly onChange: (kbps: string) => void;
}) {
  const value = Number(kbps);
  const words = value > 0 ? formatBitRate(value * 1000) : "no limit";
  return (
    <div className={styles["dial"]}>
      <span className={styles["dialLabel"]}>{label}</span>
      <input
        type="range"
        min={0}
        max={DIAL_KBPS.length - 1}
        step={1}
        aria-label={`${label} dial`}
        aria-valuetext={words}
        value={dialStep(value)}
        onChange={(event) => onChange(String(DIAL_KBPS[Number(event.target.value)] ?? 0))}
      />
      <TextInput
        inputMode="decimal"
        aria-label={`${label}, KB per second`}
        value={kbps}
        onChange={(event) => onChange(event.target.value)}
      />
      <span className={styles["quiet"]}>{value > 0 ? `KB/s = ${words}` : `KB/s: ${words}`}</span>
    </div>
  );
}

function HostList({
  hosts,
  onChange,
}: {
  readonly hosts: readonly string[];
  readonly onChange: (hosts: readonly string[]) => void;
}) {
  const [typed, setTyped] = useState("");
  const addHost = (): void => {
    const name = typed.trim();
    if (name !== "" && !hosts.includes(name)) onChange([...hosts, name]);
    setTyped("");
  };
  return (
    <div className={styles["hosts"]} role="group" aria-label="Hosts">
      <Field label="Only for these hosts" hint="Leave empty for all hosts. *.example.com is a pattern">
        <TextInput
          mono
          maxLength={255}
          placeholder="api.example.com"
          value={typed}
          onChange={(event) => setTyped(event.target.value)}
          onKeyDown={(event) => {
            if (event.key !== "Enter") return;
            event.preventDefault();
            addHost();
          }}
        />
      </Field>
      <Button onClick={addHost} disabled={typed.trim() === ""}>
        Add host
      </Button>
      {hosts.length > 0 && (
        <ul className={styles["hostList"]} aria-label="Hosts">
          {hosts.map((name) => (
            <li key={name}>
              <code>{name}</code>
              <IconButton
                label={`Remove ${isolatedName(name)}`}
                icon={<X size={12} />}
                onClick={() => onChange(hosts.filter((other) => other !== name))}
              />
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
