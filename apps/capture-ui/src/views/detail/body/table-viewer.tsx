import { useCallback, useEffect, useState } from "react";
import { errorText } from "../../../api.ts";
import { Select } from "../../../ui/field.tsx";
import { formatCount } from "../../../ui/format.ts";
import { EmptyState, Spinner } from "../../../ui/states.tsx";
import styles from "./body.module.css";
import type { BodyClient } from "./body-client.ts";
import { useBlocks, WindowList } from "./window-list.tsx";

const ROW_PX = 26;

interface Candidate {
  readonly node: number;
  readonly path: string;
  readonly count: number;
}

export function TableViewer({ client, label }: { readonly client: BodyClient; readonly label: string }) {
  const [candidates, setCandidates] = useState<readonly Candidate[] | null>(null);
  const [chosen, setChosen] = useState<number | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  useEffect(() => {
    let current = true;
    client.call("tables", []).then(
      (found) => {
        if (!current) return;
        setCandidates(found);
        setChosen(found[0]?.node ?? null);
      },
      (error: unknown) => current && setProblem(errorText(error)),
    );
    return () => {
      current = false;
    };
  }, [client]);

  if (problem !== null) return <EmptyState title="No table">{problem}</EmptyState>;
  if (candidates === null) return <EmptyState title="Looking for arrays" icon={<Spinner />} />;
  if (chosen === null) {
    return (
      <EmptyState title="No array of objects">
        The table view needs an array of objects; this body has none in its top levels.
      </EmptyState>
    );
  }
  return (
    <div className={styles["stack"]}>
      {candidates.length > 1 && (
        <div className={styles["subbar"]}>
          <div className={styles["arrayChoice"]}>
            <Select
              aria-label="Array"
              value={String(chosen)}
              options={candidates.map(({ node, path, count }) => ({
                value: String(node),
                label: `${path} (${formatCount(count)})`,
              }))}
              onChange={(value) => setChosen(Number(value))}
            />
          </div>
        </div>
      )}
      <ArrayTable key={chosen} client={client} node={chosen} label={label} />
    </div>
  );
}

function ArrayTable({
  client,
  node,
  label,
}: {
  readonly client: BodyClient;
  readonly node: number;
  readonly label: string;
}) {
  const [table, setTable] = useState<{ readonly columns: readonly string[]; readonly rows: number } | null>(null);
  useEffect(() => {
    let current = true;
    client.call("openTable", [node]).then(
      (opened) => current && setTable(opened),
      () => undefined,
    );
    return () => {
      current = false;
    };
  }, [client, node]);
  const load = useCallback((from: number, to: number) => client.call("tableRows", [from, to]), [client]);
  const blocks = useBlocks(load, String(node));
  if (table === null) return <EmptyState title="Reading array" icon={<Spinner />} />;
  const numberPx = Math.max(56, String(table.rows).length * 8 + 28);
  const template = `${numberPx}px ${table.columns.map((name) => `minmax(${Math.min(260, Math.max(90, name.length * 8 + 40))}px, 1fr)`).join(" ")}`;
  const minWidth =
    numberPx + table.columns.reduce((sum, name) => sum + Math.min(260, Math.max(90, name.length * 8 + 40)), 0);
  return (
    <WindowList
      rows={table.rows}
      rowPx={ROW_PX}
      label={label}
      role="table"
      className={styles["grid"]}
      onVisible={blocks.want}
      header={
        <div role="row" className={styles["gridHead"]} style={{ gridTemplateColumns: template, minWidth }}>
          <span role="columnheader">#</span>
          {table.columns.map((name) => (
            <span role="columnheader" key={name} title={name}>
              {name}
            </span>
          ))}
        </div>
      }
      renderRow={(index) => {
        const row = blocks.row(index);
        return (
          <div
            key={index}
            role="row"
            aria-rowindex={index + 2}
            className={styles["gridRow"]}
            style={{ height: ROW_PX, gridTemplateColumns: template, minWidth }}
          >
            <span role="cell" className={styles["quiet"]}>
              {index}
            </span>
            {table.columns.map((name, column) => {
              const cell = row?.cells[column];
              return (
                <span
                  role="cell"
                  key={name}
                  title={cell?.text}
                  className={cell?.kind === "number" ? styles["number"] : undefined}
                >
                  {cell?.text ?? ""}
                </span>
              );
            })}
          </div>
        );
      }}
    />
  );
}
