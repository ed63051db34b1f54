import type { BodyDiff, EntryDiff } from "@headworks/capture-contract";
import { valueText } from "../../rules/message-text.ts";
import { DataTable } from "../../ui/data-table.tsx";
import { formatBytes, formatDuration } from "../../ui/format.ts";
import { Tag } from "../../ui/tag.tsx";
import styles from "./replay.module.css";

/** All differences of two exchanges; timings are informational. */
export function EntryDiffView({ diff }: { readonly diff: EntryDiff }) {
  const facts: readonly (readonly [string, EntryDiff["method"]])[] = [
    ["Method", diff.method],
    ["URL", diff.url],
    ["Status", diff.status],
    ["Failure", diff.failure],
  ];
  const changed = facts.filter(([, change]) => change !== null);
  return (
    <>
      <p role="status">
        {diff.same ? <Tag tone="ok">identical</Tag> : <Tag tone="warning">different</Tag>} Requests are{" "}
        {diff.request_same ? "identical" : "different"}, responses are {diff.response_same ? "identical" : "different"}.
      </p>
      {changed.length > 0 && (
        <section className={styles["section"]}>
          <h3>Request line</h3>
          <SidesTable
            label="Request line"
            rows={changed.map(([label, change]) => [label, change?.left ?? "—", change?.right ?? "—"])}
          />
        </section>
      )}
      <Headers title="Request headers" headers={diff.request_headers} />
      <Body title="Request body" body={diff.request_body} />
      <Headers title="Response headers" headers={diff.response_headers} />
      <Body title="Response body" body={diff.response_body} />
      <Timings timings={diff.timings} />
    </>
  );
}

/** A difference, with its left and right value. */
function SidesTable({ label, rows }: { readonly label: string; readonly rows: readonly (readonly string[])[] }) {
  return (
    <DataTable
      label={label}
      className={styles["table"]}
      hasRowTitles
      cellClasses={[undefined, styles["removed"], styles["added"]]}
      rows={rows}
    />
  );
}

function Headers({ title, headers }: { readonly title: string; readonly headers: EntryDiff["request_headers"] }) {
  if (headers.changed.length === 0 && headers.ignored.length === 0) return null;
  return (
    <section className={styles["section"]}>
      <h3>{title}</h3>
      {headers.changed.length > 0 && (
        <SidesTable
          label={title}
          rows={headers.changed.map(({ name, left, right }) => [
            name,
            left?.map(valueText).join(" · ") ?? "absent",
            right?.map(valueText).join(" · ") ?? "absent",
          ])}
        />
      )}
      {headers.ignored.length > 0 && (
        <p className={styles["quiet"]}>Ignored: {headers.ignored.map((header) => header.name).join(", ")}</p>
      )}
    </section>
  );
}

const KINDS: Readonly<Partial<Record<BodyDiff["kind"], string>>> = {
  same: "Identical.",
  binary: "The bytes differ.",
};

const shownValue = (value: unknown): string => (value === undefined ? "" : JSON.stringify(value));

function Body({ title, body }: { readonly title: string; readonly body: BodyDiff }) {
  if (body.kind === "none") return null;
  const words = body.kind === "incomparable" ? (body.reason ?? "Cannot be compared.") : KINDS[body.kind];
  return (
    <section className={styles["section"]}>
      <h3>
        {title}{" "}
        <span className={styles["quiet"]}>
          {formatBytes(body.left_size)} → {formatBytes(body.right_size)}
        </span>
      </h3>
      {words !== undefined && <p className={styles["quiet"]}>{words}</p>}
      {body.changes !== undefined && body.changes.length > 0 && (
        <table className={styles["table"]} aria-label={title}>
          <tbody>
            {body.changes.map((change, index) => (
              <tr key={`${index}`}>
                <th scope="row">
                  <code>{change.path === "" ? "(root)" : change.path}</code>{" "}
                  {change.is_type_change === true && <Tag tone="warning">type changed</Tag>}
                </th>
                <td className={change.op === "add" ? undefined : styles["removed"]}>
                  <code>{shownValue(change.left)}</code>
                </td>
                <td className={change.op === "remove" ? undefined : styles["added"]}>
                  <code>{shownValue(change.right)}</code>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {body.parts?.map((part, index) => (
        <pre
          key={`${index}`}
          className={part.kind === "removed" ? styles["removed"] : part.kind === "added" ? styles["added"] : undefined}
        >
          {part.lines
            .map((line) => `${part.kind === "removed" ? "− " : part.kind === "added" ? "+ " : "  "}${line}`)
            .join("\n")}
        </pre>
      ))}
      {(body.ignored_changes ?? 0) > 0 && <p className={styles["quiet"]}>{body.ignored_changes} ignored differences</p>}
      {body.truncated === true && <p className={styles["quiet"]}>More differences exist than are listed.</p>}
    </section>
  );
}

function Timings({ timings }: { readonly timings: EntryDiff["timings"] }) {
  const known = Object.entries(timings).filter(([, change]) => change.left !== null || change.right !== null);
  if (known.length === 0) return null;
  return (
    <section className={styles["section"]}>
      <h3>Timing</h3>
      <DataTable
        label="Timing"
        className={styles["table"]}
        hasRowTitles
        cellClasses={[undefined, undefined, undefined, styles["quiet"]]}
        rows={known.map(([stage, { left, right, delta }]) => [
          stage,
          formatDuration(left),
          formatDuration(right),
          delta === null ? "" : `${delta < 0 ? "−" : "+"}${formatDuration(Math.abs(delta))}`,
        ])}
      />
    </section>
  );
}
