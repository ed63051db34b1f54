import type { CaptureSession, SessionDiff, SessionDiffRow } from "@headworks/capture-contract";
import { useQuery } from "@tanstack/react-query";
import { Copy } from "lucide-react";
import { api } from "../../api.ts";
import { sessionsQuery } from "../../queries.ts";
import { Link } from "../../shell/link.tsx";
import { setParams, useLocation } from "../../shell/router.ts";
import { Button } from "../../ui/button.tsx";
import { copyText } from "../../ui/copy.ts";
import { DataTable } from "../../ui/data-table.tsx";
import { Field, Select } from "../../ui/field.tsx";
import { formatCount, formatDuration } from "../../ui/format.ts";
import { EmptyState, ErrorState, Spinner } from "../../ui/states.tsx";
import { Tag } from "../../ui/tag.tsx";
import { AddressField, DiffFields } from "./diff-fields.tsx";
import { diffOptions, words } from "./diff-options.ts";
import styles from "./replay.module.css";

/** Comparison of two sessions by request; each changed pair links to its own comparison. */
export function SessionDiffScreen({ left, right }: { readonly left: string; readonly right: string }) {
  const { params } = useLocation();
  const options = diffOptions(params);
  const q = params.get("q");
  const ignored = words(params.get("query"));
  const sessions = useQuery(sessionsQuery);
  const diff = useQuery({
    queryKey: ["diff", "sessions", left, right, options, q, ignored],
    queryFn: ({ signal }) =>
      api.replay.diffSessions({
        body: { left, right, ...options, ...(q === null ? {} : { q }), ignore_query: ignored },
        signal,
      }),
    retry: false,
    placeholderData: (before) => before,
  });
  const choose = (nextLeft: string, nextRight: string): void =>
    setParams({ sessions: `${nextLeft},${nextRight}` }, { replace: true });
  return (
    <>
      <div className={styles["head"]}>
        <h2>Compare sessions</h2>
        <span className={styles["grow"]} />
        <Button icon={<Copy size={14} />} onClick={() => void copyText(location.href, "Link")}>
          Copy link
        </Button>
        <Button onClick={() => choose(right, left)}>Swap sides</Button>
      </div>
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reachable by keyboard */}
      <div style={{ flex: 1, minHeight: 0, overflow: "auto" }} tabIndex={0} role="group" aria-label="Compare sessions">
        <div className={styles["panel"]}>
          <div className={styles["fields"]}>
            <SessionSelect label="Left" value={left} list={sessions.data ?? []} onChange={(id) => choose(id, right)} />
            <SessionSelect label="Right" value={right} list={sessions.data ?? []} onChange={(id) => choose(left, id)} />
          </div>
          <DiffFields>
            <AddressField name="q" label="Filter" hint="host:api.example.com -type:image" />
            <AddressField name="query" label="Query parameters to ignore" hint="ts, utm_*" />
          </DiffFields>
          {diff.error !== null && (
            <ErrorState title="Could not compare the sessions" error={diff.error} onRetry={() => void diff.refetch()} />
          )}
          {diff.isPending && <EmptyState icon={<Spinner />} title="Comparing" />}
          {diff.data !== undefined && diff.error === null && <Outcome diff={diff.data} />}
        </div>
      </div>
    </>
  );
}

function SessionSelect({
  label,
  value,
  list,
  onChange,
}: {
  readonly label: string;
  readonly value: string;
  readonly list: readonly CaptureSession[];
  readonly onChange: (id: string) => void;
}) {
  const known = list.map(({ id, name, request_count }) => ({
    value: id,
    label: `${name ?? `…${id.slice(-8)}`} (${formatCount(request_count)})`,
  }));
  const options = known.some((option) => option.value === value)
    ? known
    : [...known, { value, label: `…${value.slice(-8)}` }];
  return (
    <Field label={label}>
      <Select value={value} options={options} onChange={onChange} />
    </Field>
  );
}

function Outcome({ diff }: { readonly diff: SessionDiff }) {
  return (
    <>
      <p role="status">
        {diff.same ? <Tag tone="ok">identical</Tag> : <Tag tone="warning">different</Tag>}{" "}
        {formatCount(diff.pair_count)} requests in both: {formatCount(diff.same_count)} identical,{" "}
        {formatCount(diff.changed_count)} changed
        {diff.not_compared_count > 0 && `, ${formatCount(diff.not_compared_count)} not compared`}.{" "}
        {formatCount(diff.only_left_count)} only left, {formatCount(diff.only_right_count)} only right.
      </p>
      {diff.changed.length > 0 && (
        <section className={styles["section"]}>
          <h3>Changed</h3>
          <DataTable
            label="Changed"
            className={styles["table"]}
            rows={diff.changed.map(({ left, right, differs }) => [
              <Link key="link" href={`/replay?left=${left.id}&right=${right.id}`}>{`${left.method} ${left.url}`}</Link>,
              `${responseOf(left)} → ${responseOf(right)}`,
              `${formatDuration(left.duration_ms)} → ${formatDuration(right.duration_ms)}`,
              differs.join(", "),
            ])}
          />
          <More shown={diff.changed.length} total={diff.changed_count} />
        </section>
      )}
      <Alone title="Only left" rows={diff.only_left} total={diff.only_left_count} tone="removed" />
      <Alone title="Only right" rows={diff.only_right} total={diff.only_right_count} tone="added" />
    </>
  );
}

function Alone({
  title,
  rows,
  total,
  tone,
}: {
  readonly title: string;
  readonly rows: readonly SessionDiffRow[];
  readonly total: number;
  readonly tone: "removed" | "added";
}) {
  if (rows.length === 0) return null;
  return (
    <section className={styles["section"]}>
      <h3>{title}</h3>
      <DataTable
        label={title}
        className={styles["table"]}
        cellClasses={[undefined, styles[tone]]}
        rows={rows.map((row) => [
          <Link key="link" href={`/traffic?id=${row.id}`}>{`${row.method} ${row.url}`}</Link>,
          responseOf(row),
        ])}
      />
      <More shown={rows.length} total={total} />
    </section>
  );
}

function More({ shown, total }: { readonly shown: number; readonly total: number }) {
  if (total <= shown) return null;
  return <p className={styles["quiet"]}>{formatCount(total - shown)} more not listed</p>;
}

function responseOf({ status_code, failure_code }: SessionDiffRow): string {
  return failure_code ?? String(status_code ?? "no response");
}
