import type { UpstreamTestResult } from "@headworks/capture-contract";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, errorText } from "../../api.ts";
import { Link } from "../../shell/link.tsx";
import { Button } from "../../ui/button.tsx";
import { Field, TextInput } from "../../ui/field.tsx";
import { formatDateTime, formatDuration } from "../../ui/format.ts";
import { Card } from "../../ui/page.tsx";
import { Spinner } from "../../ui/states.tsx";
import { proxyProblem, upstreamAddress, upstreamStatus } from "./section-status.ts";
import { Problem, StatusLine } from "./section.tsx";
import { ConfigForm } from "./setting-group.tsx";
import type { SettingGroup } from "./setting-model.ts";
import styles from "./settings.module.css";
import { TestSteps } from "./test-steps.tsx";

/** The upstream proxy: status, recent failure, test, and settings. */
export function UpstreamSection({ group }: { readonly group: SettingGroup }) {
  const status = upstreamStatus(group.fields);
  const isUsed = group.fields.some((field) => field.name === "upstream_proxy.enabled" && field.running === true);
  return (
    <Card id={group.id} title={group.title}>
      <div className={styles["section"]}>
        <StatusLine tone={status.tone}>{status.text}</StatusLine>
        {isUsed && <ProxyProblem />}
        <ConfigForm group={group} />
        <UpstreamTest address={upstreamAddress(group.fields, "configured")} />
      </div>
    </Card>
  );
}

const LOOK_BACK = 50;

/** The last exchange that failed at the upstream proxy. */
function ProxyProblem() {
  const newest = useQuery({
    queryKey: ["upstream", "newest"],
    queryFn: async ({ signal }) => {
      const listed = await api.traffic.listTraffic({ query: { limit: LOOK_BACK }, signal });
      return Array.isArray(listed) ? listed : listed.entries;
    },
    refetchInterval: 5000,
  });
  const problem = proxyProblem(newest.data ?? []);
  if (problem === null) return null;
  const { entry, isLatest } = problem;
  const sentence = (
    <>
      {entry.failure?.message ?? "A request failed"} ({formatDateTime(Date.parse(entry.timestamp))},{" "}
      <Link href={`/traffic?id=${encodeURIComponent(entry.id)}`}>show request</Link>)
    </>
  );
  return isLatest ? (
    <Problem>The upstream proxy is failing: {sentence}</Problem>
  ) : (
    <p className={styles["quiet"]}>It failed earlier but works again: {sentence}</p>
  );
}

const ROUTES: Readonly<Record<UpstreamTestResult["via"], string>> = {
  direct: "The host is set to connect directly, so the proxy was not used.",
  forward: "The proxy forwards the request.",
  tunnel: "The proxy tunnels the connection without seeing its content.",
  refused: "A proxy with this protocol cannot reach this target.",
};

function UpstreamTest({ address }: { readonly address: string | null }) {
  const [target, setTarget] = useState("https://example.com/");
  const test = useMutation({ mutationFn: () => api.upstream.testUpstream({ body: { target: target.trim() } }) });
  const result = test.data;
  return (
    <form
      className={styles["part"]}
      aria-label="Upstream proxy test"
      onSubmit={(event) => {
        event.preventDefault();
        test.mutate();
      }}
    >
      <div className={styles["testLine"]}>
        <Field
          label="Test connection to"
          hint={
            address === null
              ? "Set and save a host and port first."
              : `Through ${address}, as saved, even if it is not enabled.`
          }
        >
          <TextInput mono maxLength={2048} value={target} onChange={(event) => setTarget(event.target.value)} />
        </Field>
        <Button
          type="submit"
          disabled={address === null || test.isPending || target.trim() === ""}
          icon={test.isPending ? <Spinner label="Testing" /> : undefined}
        >
          Test
        </Button>
      </div>
      {test.error !== null && <Problem>{errorText(test.error)}</Problem>}
      {result !== undefined && (
        <div className={styles["test"]} role="group" aria-label="Test result">
          <p role="status" className={result.ok ? styles["good"] : styles["bad"]}>
            {result.ok ? `Reached in ${formatDuration(result.duration_ms)}` : "Not reached"}{" "}
            <span className={styles["quiet"]}>{ROUTES[result.via]}</span>
          </p>
          <TestSteps
            steps={result.steps.map((step) => ({
              ...step,
              detail: `${step.detail} (${formatDuration(step.duration_ms)})`,
            }))}
          />
          {result.error !== null && (
            <Problem>
              <code>{result.error.code}</code> {result.error.message}
            </Problem>
          )}
        </div>
      )}
    </form>
  );
}
