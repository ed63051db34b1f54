import { useQuery } from "@tanstack/react-query";
import { CircleAlert, CircleCheck, CircleDashed } from "lucide-react";
import { useEffect, useState } from "react";
import type { ReactNode } from "react";
import { api } from "../../api.ts";
import { listenLive, useConnection } from "../../live.ts";
import { Link } from "../../shell/link.tsx";
import { EmptyState, ErrorState, Spinner } from "../../ui/states.tsx";
import { classNames } from "../../ui/class-names.ts";
import { methodColor } from "../detail/entry-facts.ts";
import { InterceptionTest } from "../settings/interception-test.tsx";
import { Page } from "../../ui/page.tsx";
import { Command } from "./command.tsx";
import styles from "./first-run.module.css";
import { SendTraffic } from "./send-traffic.tsx";
import { NOTHING_SEEN, runLine, withEntry } from "./setup-status.ts";
import type { Seen, StepStatus } from "./setup-status.ts";
import { TrustGuide } from "./trust-guide.tsx";

const setupQuery = {
  queryKey: ["cert", "setup"] as const,
  queryFn: ({ signal }: { readonly signal: AbortSignal }) => api.cert.getSetup({ signal }),
};

/** The way to the first captured request in four steps. `compact` fits the empty traffic list. */
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
        title="The proxy listens"
        status={listening}
        summary={listening === "done" ? "Ready" : "Weir does not answer"}
      >
        {setup.data !== undefined && <Command text={setup.data.proxy_address} what="Proxy address" />}
        {!compact && (
          <p className={styles["text"]}>Programs that use this address as their HTTP and HTTPS proxy show up here.</p>
        )}
      </Step>
      <Step
        number={2}
        title="Trust the certificate"
        status={seen.trust}
        summary={
          { done: "Trusted by a client", waiting: "Needed to read HTTPS", problem: "A client refused it" }[seen.trust]
        }
      >
        {compact ? (
          <p className={styles["text"]}>
            <Link href="/connect">Instructions for each system</Link>
          </p>
        ) : (
          <>
            {setup.data !== undefined && <TrustGuide platforms={setup.data.platforms} />}
            <InterceptionTest label="Test now" hint="Sends one HTTPS request through the proxy." />
          </>
        )}
      </Step>
      <Step
        number={3}
        title="Send traffic"
        status={seen.first === null ? "waiting" : "done"}
        summary={seen.first === null ? "Nothing has come yet" : "It flows"}
      >
        {compact
          ? setup.data !== undefined && (
              <Command text={runLine(setup.data.command, "curl https://example.com")} what="Command" />
            )
          : setup.data !== undefined && <SendTraffic setup={setup.data} />}
      </Step>
      <Step
        number={4}
        title="See it"
        status={seen.first === null ? "waiting" : "done"}
        summary={seen.first === null ? "The first request appears here" : "The first request"}
      >
        <FirstRow seen={seen} />
      </Step>
    </ol>
  );

  if (compact) {
    return (
      <div className={styles["empty"]}>
        <h2>No traffic yet</h2>
        <p className={styles["text"]}>Four steps to the first request.</p>
        {steps}
      </div>
    );
  }
  return (
    <Page
      title="Set-up"
      description="Four steps to the first request. Come back any time, for another device or program."
    >
      {setup.error !== null && (
        <ErrorState title="The set-up data cannot be loaded" error={setup.error} onRetry={() => void setup.refetch()} />
      )}
      {setup.isPending && <EmptyState title="Loading" icon={<Spinner />} />}
      {steps}
    </Page>
  );
}

/** What the traffic says about the set-up: what is there already, and what comes. */
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
  // The one that is stored may have been in flight then.
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
        <Link href={`/traffic?id=${encodeURIComponent(first.id)}`}>Open it in the traffic list</Link>
      </p>
    </>
  );
}
