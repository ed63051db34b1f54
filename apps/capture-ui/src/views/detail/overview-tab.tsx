import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useEffect, useState } from "react";
import type { TrafficEntry } from "@headworks/capture-contract";
import { api, errorText } from "../../api.ts";
import { keepDraft, keptDraft } from "../../rules/stored-draft.ts";
import { Link } from "../../shell/link.tsx";
import { Button } from "../../ui/button.tsx";
import { classNames } from "../../ui/class-names.ts";
import { TextArea } from "../../ui/field.tsx";
import { formatBytes, formatDateTime, formatDuration } from "../../ui/format.ts";
import { Tag } from "../../ui/tag.tsx";
import { toast } from "../../ui/toast.tsx";
import { ExecutionList } from "../scripts/script-executions.tsx";
import styles from "./detail.module.css";
import { statusText } from "./entry-facts.ts";
import { failureAdvice, tunnelReason } from "./failure-advice.ts";
import { timingBars } from "./timing-bars.ts";

const SCREENS: Readonly<Partial<Record<Step["kind"], (id: string) => string>>> = {
  block: () => "/blocklist",
  breakpoint: () => "/breakpoints?part=rules",
  mock: (id) => `/mocks?id=${encodeURIComponent(id)}`,
  rewrite: (id) => `/rewrites?id=${encodeURIComponent(id)}`,
  script: scriptAddress,
  throttle: () => "/throttle",
};

type Line = readonly [label: string, value: ReactNode];

export function OverviewTab({ entry }: { readonly entry: TrafficEntry }) {
  const tunnel = tunnelReason(entry);
  return (
    <div className={styles["body"]}>
      {entry.failure !== null && <FailureCallout failure={entry.failure} isError={entry.state !== "closed"} />}
      {tunnel !== null && (
        <div className={classNames(styles["callout"], styles["calloutInfo"])} role="note">
          <h2>Tunnel</h2>
          <p>{tunnel}</p>
          <p>
            {formatBytes(entry.request_size)} sent, {formatBytes(entry.response_size)} received.{" "}
            {entry.request.http_version === "SOCKS5" ? (
              <Link href="/settings#socks">SOCKS settings</Link>
            ) : (
              <Link href="/settings#interception">Decryption settings</Link>
            )}
          </p>
        </div>
      )}
      <div className={styles["cards"]}>
        <RuleTrace trace={entry.trace} />
        {!entry.is_passthrough && <ScriptTraces id={entry.id} />}
        <Section title="Summary" entry={entry} lines={summaryLines(entry)} />
        <Section title="Connection" entry={entry} lines={connectionLines(entry)} />
        {entry.tls !== null && <Section title="TLS, client to Weir" entry={entry} lines={clientTlsLines(entry.tls)} />}
        {entry.tls !== null && (
          <Section title="TLS, Weir to server" entry={entry} lines={upstreamTlsLines(entry.tls)} />
        )}
        <TimingSection entry={entry} />
        <section className={styles["section"]}>
          <h2>Note</h2>
          <NoteEditor id={entry.id} notes={entry.notes} />
        </section>
      </div>
    </div>
  );
}

function FailureCallout({
  failure,
  isError,
}: {
  readonly failure: NonNullable<TrafficEntry["failure"]>;
  readonly isError: boolean;
}) {
  const advice = failureAdvice(failure);
  return (
    <div className={classNames(styles["callout"], !isError && styles["calloutInfo"])} role="note">
      <h2>{isError ? advice.title : "Closed by the client"}</h2>
      <p>{advice.explanation}</p>
      {advice.advice !== null && <p>{advice.advice}</p>}
      <code>
        {failure.code}: {failure.message}
      </code>
      {advice.link !== null && (
        <p>
          <Link href={advice.link.to}>{advice.link.label}</Link>
        </p>
      )}
    </div>
  );
}

function Section({
  title,
  lines,
  entry,
}: {
  readonly title: string;
  readonly lines: readonly Line[];
  readonly entry: TrafficEntry;
}) {
  const shown = lines.filter(([, value]) => value !== null && value !== "");
  return (
    <section className={styles["section"]}>
      <h2>{title}</h2>
      {shown.length === 0 ? (
        <p className={styles["none"]}>
          {entry.source === "slice" ? "Not available: Weir answered." : "Not available."}
        </p>
      ) : (
        <dl className={styles["summary"]}>
          {shown.map(([label, value]) => (
            <div key={label} style={{ display: "contents" }}>
              <dt>{label}</dt>
              <dd>{value}</dd>
            </div>
          ))}
        </dl>
      )}
    </section>
  );
}

const SOURCES: Readonly<Record<TrafficEntry["source"], string>> = {
  upstream: "Server",
  slice: "Weir (rule)",
  import: "Imported",
};

function summaryLines(entry: TrafficEntry): Line[] {
  const { request, response } = entry;
  return [
    ["Number", `#${entry.seq}`],
    ["Started", `${formatDateTime(Date.parse(entry.timestamp))}`],
    ["Method", request.method],
    ["Outcome", statusText(entry)],
    [
      "Answered by",
      response === null
        ? null
        : entry.source === "slice" && entry.state === "failed"
          ? "Weir (failure report)"
          : SOURCES[entry.source],
    ],
    ["Type", response?.content_type ?? request.content_type],
    ...(entry.is_passthrough
      ? ([
          ["Sent", formatBytes(entry.request_size)],
          ["Received", formatBytes(entry.response_size)],
        ] satisfies Line[])
      : ([
          ["Request", sizeText(entry.request_size, request.body_size)],
          ["Response", response === null ? null : sizeText(entry.response_size ?? 0, response.body_size)],
        ] satisfies Line[])),
    ["Duration", response === null ? null : formatDuration(response.duration_ms)],
    ["Modified", entry.modified ? "Yes, by a rule" : null],
  ];
}

function sizeText(whole: number, body: number): string {
  return `${formatBytes(whole)} (body ${formatBytes(body)})`;
}

function connectionLines(entry: TrafficEntry): Line[] {
  return [
    ["Client", entry.client_addr],
    ["Server", entry.server_addr],
    ["Connection", entry.connection_id === null ? null : `client connection ${entry.connection_id}`],
    [
      "Protocol",
      [...new Set([entry.request.http_version, entry.response?.http_version])]
        .filter((version) => version != null)
        .join(" → "),
    ],
    ["Device", entry.device_id],
  ];
}

function clientTlsLines(tls: NonNullable<TrafficEntry["tls"]>): Line[] {
  return [
    ["Version", tls.client_version],
    ["Cipher", tls.client_cipher],
    ["Server name", tls.sni],
  ];
}

function upstreamTlsLines(tls: NonNullable<TrafficEntry["tls"]>): Line[] {
  const verified = tls.upstream_verified;
  return [
    ["Version", tls.upstream_version],
    ["Cipher", tls.upstream_cipher],
    [
      "Certificate",
      verified === null ? null : verified ? (
        "Verified"
      ) : (
        <b key="certificate" style={{ color: "var(--client)" }}>
          Not verified: verification is disabled for this host
        </b>
      ),
    ],
    ["Subject", tls.upstream_subject],
    ["Issuer", tls.upstream_issuer],
    ["Valid to", tls.upstream_valid_to],
    ["Client certificate", clientCertificateText(tls.upstream_client_certificate)],
  ];
}

function clientCertificateText(
  response: NonNullable<TrafficEntry["tls"]>["upstream_client_certificate"],
): string | null {
  if (response === null) return null;
  return response === "sent" ? "Requested and sent" : "Requested; none is configured for this host";
}

function TimingSection({ entry }: { readonly entry: TrafficEntry }) {
  const { bars, totalMs } = timingBars(entry.timings);
  if (bars.length === 0) return null;
  return (
    <section className={styles["section"]}>
      <h2>Timing</h2>
      <div className={styles["times"]}>
        {bars.map((bar) => (
          <div key={bar.stage} style={{ display: "contents" }}>
            <span title={bar.explanation}>{bar.label}</span>
            <span className={styles["track"]}>
              <i style={{ left: `${bar.left}%`, width: `${bar.width}%`, background: `var(--${bar.stage})` }} />
            </span>
            <span style={{ textAlign: "end" }}>{formatDuration(bar.durationMs)}</span>
          </div>
        ))}
        <span className={styles["total"]}>Total</span>
        <span className={styles["total"]}>&nbsp;</span>
        <span className={styles["total"]} style={{ textAlign: "end" }}>
          {formatDuration(totalMs)}
        </span>
      </div>
    </section>
  );
}

type Step = TrafficEntry["trace"][number];

function RuleTrace({ trace }: { readonly trace: readonly Step[] }) {
  if (trace.length === 0) return null;
  return (
    <section className={styles["section"]}>
      <h2>Applied rules</h2>
      <ol className={styles["trace"]} aria-label="Applied rules">
        {trace.map((step, index) => (
          <li key={`${index}`}>
            <span className={styles["traceHead"]}>
              <Tag tone={step.phase === "request" ? "neutral" : "accent"}>
                {step.phase === "request" ? "request" : "response"}
              </Tag>
              <span className={styles["quiet"]}>{step.kind}</span>
              <RuleName step={step} />
            </span>
            {step.changes.map((change, position) => (
              <span key={`${position}`} className={styles["traceChange"]}>
                {change}
              </span>
            ))}
          </li>
        ))}
      </ol>
    </section>
  );
}

function RuleName({ step }: { readonly step: Step }) {
  const screen = SCREENS[step.kind];
  return screen === undefined ? <b>{step.rule_name}</b> : <Link href={screen(step.rule_id)}>{step.rule_name}</Link>;
}

function scriptAddress(id: string): string {
  return `/scripts?id=${encodeURIComponent(id)}`;
}

/** Runs of scripts for the entry. */
function ScriptTraces({ id }: { readonly id: string }) {
  const { data: runs = [] } = useQuery({
    // Fetched again with the entry.
    queryKey: ["entry", id, "script-traces"],
    queryFn: ({ signal }) => api.scripts.getScriptTraces({ params: { id }, signal }),
  });
  if (runs.length === 0) return null;
  return (
    <section className={styles["section"]}>
      <h2>Scripts</h2>
      <ExecutionList
        label="Scripts"
        executions={runs}
        about={(run) => <Link href={scriptAddress(run.script_id)}>{run.script_name}</Link>}
      />
    </section>
  );
}

/** Note editor; saves on demand and with Ctrl+Enter. */
function NoteEditor({ id, notes }: { readonly id: string; readonly notes: string | null }) {
  const client = useQueryClient();
  const name = `note ${id}`;
  const [draft, setDraft] = useState<string | null>(() => keptDraft<string>(name)?.draft ?? null);
  const save = useMutation({
    mutationFn: (text: string) =>
      api.traffic.noteTraffic({ params: { id }, body: { notes: text.trim() === "" ? null : text } }),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: ["entry", id] });
      setDraft(null);
    },
    onError: (error) => toast({ tone: "error", title: "Could not save the note", text: errorText(error) }),
  });
  const text = draft ?? notes ?? "";
  const isChanged = draft !== null && draft !== (notes ?? "");
  useEffect(() => keepDraft(name, isChanged ? { base: notes ?? "", draft } : null), [name, isChanged, notes, draft]);
  return (
    <div className={styles["noteForm"]}>
      <TextArea
        aria-label="Note"
        rows={3}
        maxLength={65_536}
        placeholder="Add a note"
        value={text}
        onChange={(event) => setDraft(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && isChanged) save.mutate(text);
        }}
      />
      <div>
        <Button disabled={!isChanged || save.isPending} onClick={() => save.mutate(text)}>
          Save note
        </Button>
        {isChanged && (
          <Button variant="ghost" onClick={() => setDraft(null)}>
            Discard
          </Button>
        )}
      </div>
    </div>
  );
}
