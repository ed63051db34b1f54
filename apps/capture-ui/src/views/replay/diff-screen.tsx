import { useQuery } from "@tanstack/react-query";
import { Copy } from "lucide-react";
import { useState } from "react";
import { api } from "../../api.ts";
import { Link } from "../../shell/link.tsx";
import { setParams, usePlace } from "../../shell/router.ts";
import { Button } from "../../ui/button.tsx";
import { copyText } from "../../ui/copy.ts";
import { Field, Switch, TextInput } from "../../ui/field.tsx";
import { EmptyState, ErrorState, Spinner } from "../../ui/states.tsx";
import { EntryDiffView } from "./entry-diff-view.tsx";
import styles from "./replay.module.css";

const words = (text: string | null): readonly string[] =>
  (text ?? "")
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "");

/** How two entries or replays differ. What may differ is kept in the address, so that the comparison can be linked. */
export function DiffScreen({ left, right }: { readonly left: string | null; readonly right: string }) {
  const { params } = usePlace();
  const paths = params.get("paths");
  const headers = params.get("headers");
  const shape = params.get("shape") === "1";
  const [typedPaths, setTypedPaths] = useState(paths ?? "");
  const [typedHeaders, setTypedHeaders] = useState(headers ?? "");
  const diff = useQuery({
    queryKey: ["diff", left, right, paths, headers, shape],
    queryFn: ({ signal }) =>
      api.replay.diffEntries({
        body: {
          ...(left === null ? {} : { left }),
          right,
          ...(headers === null ? {} : { ignore_headers: [...words(headers)] }),
          ...(paths === null ? {} : { ignore_paths: [...words(paths)] }),
          shape,
        },
        signal,
      }),
    retry: false,
    placeholderData: (before) => before,
  });
  return (
    <>
      <div className={styles["head"]}>
        <h2>Comparison</h2>
        <span className={styles["grow"]} />
        <Button icon={<Copy size={14} />} onClick={() => void copyText(location.href, "Link")}>
          Copy the link
        </Button>
        {left !== null && (
          <Button onClick={() => setParams({ left: right, right: left }, { replace: true })}>Swap sides</Button>
        )}
      </div>
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reachable by keyboard */}
      <div style={{ flex: 1, minHeight: 0, overflow: "auto" }} tabIndex={0} role="group" aria-label="Comparison">
        <div className={styles["panel"]}>
          <form
            className={styles["fields"]}
            onSubmit={(event) => {
              event.preventDefault();
              setParams({ paths: typedPaths, headers: typedHeaders }, { replace: true });
            }}
          >
            <Field label="Places in JSON that may differ" hint="$.user.id, $.items[*].at">
              <TextInput
                mono
                value={typedPaths}
                onChange={(event) => setTypedPaths(event.target.value)}
                onBlur={() => setParams({ paths: typedPaths }, { replace: true })}
              />
            </Field>
            <Field label="Fields that may differ" hint="Empty: Date, Age, request ids and the like">
              <TextInput
                mono
                value={typedHeaders}
                onChange={(event) => setTypedHeaders(event.target.value)}
                onBlur={() => setParams({ headers: typedHeaders }, { replace: true })}
              />
            </Field>
            <Switch
              label="Only the shape of JSON counts"
              checked={shape}
              onChange={(on) => setParams({ shape: on ? "1" : null }, { replace: true })}
            />
            <button type="submit" className="visually-hidden" tabIndex={-1}>
              Compare
            </button>
          </form>
          {diff.error !== null && (
            <ErrorState title="They cannot be compared" error={diff.error} onRetry={() => void diff.refetch()} />
          )}
          {diff.isPending && <EmptyState icon={<Spinner />} title="" />}
          {diff.data !== undefined && (
            <>
              <p>
                Left: <Side id={diff.data.left_id} /> · Right: <Side id={diff.data.right_id} />
              </p>
              <EntryDiffView diff={diff.data} />
            </>
          )}
        </div>
      </div>
    </>
  );
}

function Side({ id }: { readonly id: string | null }) {
  if (id === null) return <span className={styles["quiet"]}>not captured</span>;
  return <Link href={`/traffic?id=${encodeURIComponent(id)}`}>{id.slice(0, 8)}</Link>;
}
