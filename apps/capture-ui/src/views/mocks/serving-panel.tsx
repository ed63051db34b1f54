import type { StartServing } from "@headworks/capture-contract";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api } from "../../api.ts";
import { mockServingQuery, queryClient, sessionsQuery } from "../../queries.ts";
import { ScrollBody, SidePanel } from "../../rules/rule-editor.tsx";
import shared from "../../rules/rule-parts.module.css";
import { setParams } from "../../shell/router.ts";
import { attempt } from "../../ui/toast.tsx";
import { Button } from "../../ui/button.tsx";
import { Field, Select, Switch, TextInput } from "../../ui/field.tsx";
import { formatCount, formatTimeOfDay } from "../../ui/format.ts";
import styles from "./mocks.module.css";

async function stop(): Promise<void> {
  await attempt("Could not stop serving", () => api.mocks.stopMockServing({}));
  await queryClient.invalidateQueries({ queryKey: ["mocks"] });
}

/** Notice that a session is served in place of all servers. */
export function ServingNotice() {
  const state = useQuery({ ...mockServingQuery, refetchInterval: 2000 }).data;
  if (state === undefined || !state.serving) return null;
  return (
    <div className={styles["notice"]} role="status">
      <span>
        <b>{state.session_name ?? "A session"} is served in place of all servers</b>: {formatCount(state.answered)}{" "}
        served, {formatCount(state.missed)} missed.
      </span>
      <Button onClick={() => setParams({ panel: "serving", id: null })}>Misses</Button>
      <Button onClick={() => void stop()}>Stop serving</Button>
    </div>
  );
}

const PARTS = [
  ["method", "Method"],
  ["scheme", "Scheme"],
  ["host", "Host and port"],
  ["path", "Path"],
  ["query", "Query"],
  ["body", "Body"],
] as const;

type Part = (typeof PARTS)[number][0];

const REPEATS = [
  { value: "last", label: "Repeat the last response" },
  { value: "cycle", label: "Start again from the first response" },
  { value: "none", label: "Report a miss" },
] as const;

/** Serves a recorded session in place of all servers, and lists the misses. */
export function ServingPanel({ onClose }: { readonly onClose: () => void }) {
  const state = useQuery({ ...mockServingQuery, refetchInterval: 2000 }).data;
  const sessions = useQuery(sessionsQuery);
  const [session, setSession] = useState<string | null>(null);
  const [match, setMatch] = useState<Readonly<Record<Part, boolean>>>({
    method: true,
    scheme: false,
    host: true,
    path: true,
    query: true,
    body: false,
  });
  const [ignored, setIgnored] = useState("");
  const [repeat, setRepeat] = useState<NonNullable<StartServing["repeat"]>>("last");
  const [strict, setStrict] = useState(true);
  const chosen = session ?? sessions.data?.[0]?.id ?? "";
  const start = async (): Promise<void> => {
    const ignore = ignored
      .split(",")
      .map((name) => name.trim())
      .filter((name) => name !== "");
    await attempt("Could not serve the session", () =>
      api.mocks.startMockServing({
        body: { session_id: chosen, match: { ...match, ignore_query: ignore }, repeat, strict },
      }),
    );
    await queryClient.invalidateQueries({ queryKey: ["mocks"] });
  };
  return (
    <SidePanel
      title="Serve a session"
      onClose={onClose}
      actions={
        state?.serving === true ? (
          <Button variant="primary" onClick={() => void stop()}>
            Stop serving
          </Button>
        ) : (
          <Button variant="primary" disabled={chosen === ""} onClick={() => void start()}>
            Start serving
          </Button>
        )
      }
    >
      <ScrollBody label="Serving options">
        <div className={styles["panel"]}>
          {state?.serving === true ? (
            <p role="status">
              {state.session_name ?? "The session"} has {formatCount(state.recorded)} responses;{" "}
              {formatCount(state.answered)} served, {formatCount(state.missed)} missed.
            </p>
          ) : (
            <>
              <p>Serves the recorded responses of a session instead of contacting servers.</p>
              <Field label="Session">
                <Select
                  value={chosen}
                  options={(sessions.data ?? []).map(({ id, name, request_count: count }) => ({
                    value: id,
                    label: `${name ?? "Unnamed"} (${formatCount(count)})`,
                  }))}
                  onChange={setSession}
                />
              </Field>
              <span className={styles["label"]}>Match on</span>
              <div className={styles["checks"]}>
                {PARTS.map(([part, label]) => (
                  <Switch
                    key={part}
                    label={label}
                    checked={match[part]}
                    onChange={(checked) => setMatch({ ...match, [part]: checked })}
                  />
                ))}
              </div>
              <Field label="Ignore query parameters" hint="Separate with commas">
                <TextInput
                  mono
                  placeholder="ts, nonce"
                  value={ignored}
                  onChange={(event) => setIgnored(event.target.value)}
                />
              </Field>
              <Field label="After the last recorded response">
                <Select value={repeat} options={REPEATS} onChange={setRepeat} />
              </Field>
              <Switch
                label="Strict: return 502 for unrecorded requests without contacting servers"
                checked={strict}
                onChange={setStrict}
              />
            </>
          )}
          {state?.serving === true && <Misses />}
        </div>
      </ScrollBody>
    </SidePanel>
  );
}

function Misses() {
  const misses = useQuery({
    queryKey: ["mocks", "misses"],
    queryFn: ({ signal }) => api.mocks.listMockMisses({ query: { limit: 100 }, signal }),
    refetchInterval: 2000,
  });
  if (misses.data === undefined || misses.data.length === 0) return <p>No misses so far.</p>;
  return (
    <ul aria-label="Missed requests">
      {misses.data.map((miss, index) => (
        <li key={`${index}`} className={styles["miss"]}>
          <b>
            {miss.method} {miss.url}
          </b>{" "}
          <span className={shared["quiet"]}>
            {formatTimeOfDay(Date.parse(miss.timestamp))} · {miss.reason}
          </span>
          {miss.near.length > 0 && (
            <ul>
              {miss.near.map((near) => (
                <li key={near.entry_id}>
                  Closest: {near.method} {near.url} — {near.differences.join("; ")}
                </li>
              ))}
            </ul>
          )}
        </li>
      ))}
    </ul>
  );
}
