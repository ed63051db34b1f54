import { formatBitRate } from "@headworks/capture-contract";
import type { NewThrottle, ThrottleProfile } from "@headworks/capture-contract";
import { useMutation } from "@tanstack/react-query";
import { X } from "lucide-react";
import { useState } from "react";
import { api } from "../../api.ts";
import { Refused } from "../../rules/rule-editor.tsx";
import { fieldErrors } from "../../rules/field-errors.ts";
import { setParams } from "../../shell/router.ts";
import { Button, IconButton } from "../../ui/button.tsx";
import { Field, TextInput } from "../../ui/field.tsx";
import { isolatedName } from "../../ui/format.ts";
import { Card } from "../../ui/page.tsx";
import { Segmented } from "../../ui/segmented.tsx";
import { DIAL_KBPS, dialStep, draftOfProfile, profileOf, type ProfileDraft } from "./profile-draft.ts";
import styles from "./throttle.module.css";

export function ProfileForm({
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
