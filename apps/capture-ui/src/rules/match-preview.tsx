import { readJson } from "@headworks/json";
import type { Condition, MatchExplanation, MatchPreview as Preview } from "@headworks/capture-contract";
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { api, errorText } from "../api.ts";
import { Link } from "../shell/link.tsx";
import { useLocation } from "../shell/router.ts";
import { formatCount } from "../ui/format.ts";
import { queryOfCondition } from "./condition-query.ts";
import styles from "./match-preview.module.css";

const LOOK_BACK = 1000;
/** Debounce of the count while typing. */
const SETTLE_MS = 250;

/** How much recent traffic a condition matches, counted by the service during editing. */
export function MatchPreview({
  condition,
  direction,
}: {
  readonly condition: Condition | null;
  readonly direction: "request" | "response" | "both";
}) {
  const text = condition === null ? null : JSON.stringify(condition);
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = window.setTimeout(() => setSettled(text), SETTLE_MS);
    return () => window.clearTimeout(timer);
  }, [text]);
  // The source entry may be older than the examined ones.
  const from = useLocation().params.get("from");
  const preview = useQuery({
    queryKey: ["match-preview", settled, direction, from],
    queryFn: ({ signal }) =>
      api.traffic.previewMatches({
        body: {
          condition: readJson(settled ?? "") as unknown as Condition,
          direction,
          limit: LOOK_BACK,
          sample: 3,
          ...(from === null ? {} : { explain: from }),
        },
        signal,
      }),
    enabled: settled !== null,
    retry: false,
    staleTime: 5000,
  });
  return (
    <output className={styles["preview"]} aria-live="polite">
      {text === null || condition === null ? (
        "Complete the condition to preview matches."
      ) : preview.error !== null && settled === text ? (
        <span className={styles["refused"]}>{errorText(preview.error)}</span>
      ) : preview.data === undefined || settled !== text ? (
        "Counting…"
      ) : (
        <Counted preview={preview.data} query={queryOfCondition(condition, direction)} />
      )}
    </output>
  );
}

function sourceSentence({ outcome, text }: MatchExplanation): string {
  if (outcome === "holds") return "It matches the request it was created from.";
  if (outcome === "needs-body") return "Whether it matches the request it was created from depends on the body.";
  return `It does not match the request it was created from: ${text}`;
}

function Counted({ preview, query }: { readonly preview: Preview; readonly query: string | null }) {
  const words = preview.examined === 1 ? "request" : `${formatCount(preview.examined)} requests`;
  return (
    <>
      {preview.examined === 0 ? (
        "No captured requests to test against."
      ) : (
        <>
          Matches <b>{formatCount(preview.matched)}</b> of the last {words}
          {preview.complete ? "." : " checked so far."}
        </>
      )}
      {preview.explanation != null && ` ${sourceSentence(preview.explanation)}`}
      {query !== null && query !== "" && (
        <>
          {" "}
          <Link href={`/traffic?q=${encodeURIComponent(query)}`}>Show in Traffic</Link>
        </>
      )}
      {preview.sample.map((row) => (
        <span key={row.id} className={styles["sample"]}>
          {row.method} {row.url}
        </span>
      ))}
    </>
  );
}
