import { useQuery } from "@tanstack/react-query";
import { CircleAlert, CircleCheck, CircleDashed, Copy } from "lucide-react";
import { type ReactNode, useEffect, useState } from "react";
import { api } from "../../api.ts";
import { listenLive, useConnection } from "../../live.ts";
import { Link } from "../../shell/link.tsx";
import { IconButton } from "../../ui/button.tsx";
import { classNames } from "../../ui/class-names.ts";
import { copyText } from "../../ui/copy.ts";
import { Select } from "../../ui/field.tsx";
import { Page } from "../../ui/page.tsx";
import { Pill } from "../../ui/pill.tsx";
import { Segmented } from "../../ui/segmented.tsx";
import { EmptyState, ErrorState, Spinner } from "../../ui/states.tsx";
import { methodColor } from "../detail/entry-facts.ts";
import { CertificateDownload, certificateQuery } from "../settings/certificate-card.tsx";
import { InterceptionTest } from "../settings/test-steps.tsx";
import styles from "./first-run.module.css";
import {
  type StepStatus,
  type Seen,
  NOTHING_SEEN,
  withEntry,
  guessPlatform,
  runLine,
  exportLines,
} from "./setup-status.ts";

const setupQuery = {
  queryKey: ["cert", "setup"] as const,
  queryFn: ({ signal }: { readonly signal: AbortSignal }) => api.cert.getSetup({ signal }),
};

/** Guide to the first captured request in four steps. `compact` fits the empty traffic list. */
export function FirstRunView({ compact = false }: { readonly compact?: boolean }) {
  const setup = useQuery(setupQuery);
  const connection = useConnection();
  const seen = useSeen();
  const listening: StepStatus =
    connection.state === "live" || setup.isSuccess ? "done" : connection.state === "connecting" ? "waiting" : "problem";

  const steps = (
    <ol className={classNames(styles["steps"], compact && styles["compact"])}>
      <Step
        number={1}
        title="Proxy running"
        status={listening}
        summary={listening === "done" ? "Ready" : "Weir is not responding"}
      >
        {setup.data !== undefined && <Command text={setup.data.proxy_address} what="Proxy address" />}
        {!compact && (
          <p className={styles["text"]}>Programs that use this address as their HTTP and HTTPS proxy appear here.</p>
        )}
      </Step>
      <Step
        number={2}
        title="Trust the certificate"
        status={seen.trust}
        summary={
          { done: "Trusted by a client", waiting: "Needed to read HTTPS", problem: "Rejected by a client" }[seen.trust]
        }
      >
        {compact ? (
          <p className={styles["text"]}>
            <Link href="/connect">Instructions for each system</Link>
          </p>
        ) : (
          <>
            {setup.data !== undefined && <TrustGuide platforms={setup.data.platforms} />}
            <InterceptionTest label="Test setup" hint="Sends one HTTPS request through the proxy." />
          </>
        )}
      </Step>
      <Step
        number={3}
        title="Send traffic"
        status={seen.first === null ? "waiting" : "done"}
        summary={seen.first === null ? "Waiting for traffic" : "Receiving traffic"}
      >
        {compact
          ? setup.data !== undefined && (
              <Command text={runLine(setup.data.command, "curl https://example.com")} what="Command" />
            )
          : setup.data !== undefined && <SendTraffic setup={setup.data} />}
      </Step>
      <Step
        number={4}
        title="View the first request"
        status={seen.first === null ? "waiting" : "done"}
        summary={seen.first === null ? "Your first request appears here" : "First request"}
      >
        <FirstRow seen={seen} />
      </Step>
    </ol>
  );

  if (compact) {
    return (
      <div className={styles["empty"]}>
        <h2>No traffic yet</h2>
        <p className={styles["text"]}>Four steps to your first request.</p>
        {steps}
      </div>
    );
  }
  return (
    <Page
      title="Setup"
      description="Four steps to your first request. Return here at any time to set up another device or program."
    >
      {setup.error !== null && (
        <ErrorState title="Could not load the setup data" error={setup.error} onRetry={() => void setup.refetch()} />
      )}
      {setup.isPending && <EmptyState title="Loading" icon={<Spinner />} />}
      {steps}
    </Page>
  );
}

/** Progress of the setup, derived from stored and live traffic. */
function useSeen(): Seen {
  const oldest = useQuery({
    queryKey: ["traffic", "first-run", "oldest"],
    queryFn: ({ signal }) => api.traffic.listTrafficRows({ query: { limit: 1, sort: "seq", order: "asc" }, signal }),
    staleTime: Infinity,
  });
  const latest = useQuery({
    queryKey: ["traffic", "first-run", "latest"],
    queryFn: ({ signal }) => api.traffic.listTrafficRows({ query: { limit: 50, sort: "seq", order: "desc" }, signal }),
    staleTime: Infinity,
  });
  const [live, setLive] = useState(NOTHING_SEEN);
  useEffect(
    () =>
      listenLive({
        traffic: (events) =>
          setLive((seen) =>
            events.reduce(
              (sum, event) => (event.type === "Added" || event.type === "Updated" ? withEntry(sum, event.data) : sum),
              seen,
            ),
          ),
      }),
    [],
  );
  const stored = (latest.data?.rows ?? []).reduce(withEntry, NOTHING_SEEN);
  const first = oldest.data?.rows[0];
  // The stored one may have been in flight then.
  const isLiveFirst = first === undefined || live.first?.id === first.id;
  return { first: isLiveFirst ? live.first : first, trust: live.trust === "waiting" ? stored.trust : live.trust };
}

const ICONS: Readonly<Record<StepStatus, ReactNode>> = {
  done: <CircleCheck size={16} aria-hidden />,
  waiting: <CircleDashed size={16} aria-hidden />,
  problem: <CircleAlert size={16} aria-hidden />,
};

function Step({
  number,
  title,
  status,
  summary,
  children,
}: {
  readonly number: number;
  readonly title: string;
  readonly status: StepStatus;
  readonly summary: string;
  readonly children: ReactNode;
}) {
  return (
    <li className={styles["step"]} data-status={status}>
      <span className={styles["number"]} aria-hidden>
        {number}
      </span>
      <div className={styles["content"]}>
        <div className={styles["stepHead"]}>
          <h2>{title}</h2>
          <span className={styles["status"]} role="status">
            {ICONS[status]}
            {summary}
          </span>
        </div>
        {children}
      </div>
    </li>
  );
}

function FirstRow({ seen }: { readonly seen: Seen }) {
  const { first } = seen;
  if (first === null) {
    return (
      <div className={styles["row"]} data-empty>
        <span className={styles["ghost"]} />
        <span className={styles["ghost"]} />
        <span className={styles["ghost"]} />
      </div>
    );
  }
  return (
    <>
      <div className={styles["row"]}>
        <b style={{ color: methodColor(first.method) }}>{first.method}</b>
        <span className={styles["code"]}>{first.status_code ?? (first.state === "failed" ? "failed" : "…")}</span>
        <span className={styles["address"]}>
          {first.host}
          <span className={styles["path"]}>{first.path}</span>
        </span>
      </div>
      <p className={styles["text"]}>
        <Link href={`/traffic?id=${encodeURIComponent(first.id)}`}>Open in Traffic</Link>
      </p>
    </>
  );
}

interface Setup {
  readonly proxy_address: string;
  readonly magic_host: string;
  readonly command: string;
  readonly local_only: boolean;
  readonly qr_svg: string;
  readonly environment: readonly { readonly name: string; readonly value: string }[];
}

type Method = "run" | "terminal" | "device";

/** Instructions for sending traffic: a command, a terminal, a phone. */
function SendTraffic({ setup }: { readonly setup: Setup }) {
  const [method, setMethod] = useState<Method>("run");
  const [shell, setShell] = useState<"sh" | "powershell" | "cmd">("sh");
  return (
    <>
      <div className={styles["methods"]}>
        <Segmented
          label="Traffic source"
          value={method}
          options={[
            { value: "run", label: "One command" },
            { value: "terminal", label: "Terminal" },
            { value: "device", label: "Phone" },
          ]}
          onChange={setMethod}
        />
        {method === "terminal" && (
          <Segmented
            label="Shell"
            value={shell}
            options={[
              { value: "sh", label: "sh" },
              { value: "powershell", label: "PowerShell" },
              { value: "cmd", label: "cmd" },
            ]}
            onChange={setShell}
          />
        )}
      </div>
      {method === "run" && (
        <>
          <p className={styles["text"]}>
            Runs any program with proxy and certificate configured for that program only.
          </p>
          <Command text={runLine(setup.command, "curl https://example.com")} what="Command" />
          <Command text={runLine(setup.command, "npm test")} what="Test command" />
        </>
      )}
      {method === "terminal" && (
        <>
          <p className={styles["text"]}>Programs started from this terminal afterwards use Weir.</p>
          <Command text={exportLines(setup.environment, shell)} what="Variables" />
        </>
      )}
      {method === "device" && <Device setup={setup} />}
    </>
  );
}

/** Instructions for a phone; the QR code is shown only if the setup page is reachable from it. */
function Device({ setup }: { readonly setup: Setup }) {
  if (setup.local_only) {
    return (
      <p className={styles["text"]}>
        The proxy only accepts connections from this machine. To connect a phone, set Proxy address in Settings to
        0.0.0.0, add the phone to Allowed clients, and restart Weir.
      </p>
    );
  }
  return (
    <div className={styles["device"]}>
      {/** Used as an image, so scripts inside cannot run. */}
      <img
        className={styles["qr"]}
        alt="QR code of the setup page"
        src={`data:image/svg+xml;charset=utf-8,${encodeURIComponent(setup.qr_svg)}`}
      />
      <div className={styles["text"]}>
        <p>
          Scan the code with a phone on the same network; the page guides you through the proxy settings and the
          certificate.
        </p>
        <p>
          If the proxy is already configured, open <code>{setup.magic_host}</code> on the device.
        </p>
      </div>
    </div>
  );
}

interface Platform {
  readonly id: string;
  readonly name: string;
  readonly steps: readonly string[];
  readonly command?: string;
}

/** Trust instructions per system, browser and runtime. */
function TrustGuide({ platforms }: { readonly platforms: readonly Platform[] }) {
  const certificate = useQuery(certificateQuery);
  const [chosen, setChosen] = useState(() =>
    guessPlatform(
      navigator.userAgent,
      platforms.map((platform) => platform.id),
    ),
  );
  const platform = platforms.find(({ id }) => id === chosen) ?? platforms[0];
  return (
    <>
      <div className={styles["platforms"]} role="group" aria-label="System">
        {platforms.map(({ id, name }) => (
          <Pill key={id} pressed={id === platform?.id} onClick={() => setChosen(id)}>
            {name}
          </Pill>
        ))}
      </div>
      <div className={styles["platformSelect"]}>
        <Select
          aria-label="System"
          value={platform?.id ?? ""}
          options={platforms.map(({ id, name }) => ({ value: id, label: name }))}
          onChange={setChosen}
        />
      </div>
      {platform !== undefined && (
        <div className={styles["guide"]}>
          <ol className={styles["instructions"]}>
            {platform.steps.map((step) => (
              <li key={step}>{step}</li>
            ))}
          </ol>
          {platform.command !== undefined && <Command text={platform.command} what={`Command for ${platform.name}`} />}
        </div>
      )}
      <div className={styles["certificate"]}>
        <CertificateDownload />
        {certificate.data !== undefined && (
          <div className={styles["fingerprint"]}>
            <span className={styles["quiet"]}>Fingerprint (SHA-256)</span>
            <code>{certificate.data.fingerprint_sha256}</code>
          </div>
        )}
      </div>
    </>
  );
}

function Command({ text, what }: { readonly text: string; readonly what: string }) {
  return (
    <div className={styles["command"]}>
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reachable by keyboard */}
      <pre tabIndex={0} aria-label={what}>
        {text}
      </pre>
      <IconButton label={`Copy: ${what}`} icon={<Copy size={14} />} onClick={() => void copyText(text, what)} />
    </div>
  );
}
