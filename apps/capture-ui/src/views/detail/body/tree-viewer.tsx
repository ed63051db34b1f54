import { ChevronDown, ChevronRight, Copy, Link2 } from "lucide-react";
import { useCallback, useEffect, useId, useRef, useState } from "react";
import type { KeyboardEvent } from "react";
import { errorText } from "../../../api.ts";
import { Button, IconButton } from "../../../ui/button.tsx";
import { classNames } from "../../../ui/class-names.ts";
import { copyText } from "../../../ui/copy.ts";
import { formatCount } from "../../../ui/format.ts";
import { EmptyState, Spinner } from "../../../ui/states.tsx";
import { toast } from "../../../ui/toast.tsx";
import styles from "./body.module.css";
import type { BodyClient } from "./body-client.ts";
import type { NodeKind } from "./json-tree.ts";
import type { TreeRow } from "./tree-rows.ts";
import { useBlocks, WindowList, type WindowListHandle } from "./window-list.tsx";

const ROW_PX = 22;
const TONES: Readonly<Record<NodeKind, string>> = {
  object: "plain",
  array: "plain",
  string: "string",
  number: "number",
  true: "word",
  false: "word",
  null: "word",
};

/** The lines of a tree held by the worker, and the actions on them. */
function useTree(client: BodyClient) {
  const [rows, setRows] = useState<number | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [change, setChange] = useState(0);

  useEffect(() => {
    let current = true;
    client.call("openTree", []).then(
      (count) => current && setRows(count),
      (error: unknown) => current && setProblem(errorText(error)),
    );
    return () => {
      current = false;
    };
  }, [client]);

  const load = useCallback((from: number, to: number) => client.call("treeRows", [from, to]), [client]);
  const blocks = useBlocks(load, String(change));
  const changed = (count: number): void => {
    setRows(count);
    setChange((old) => old + 1);
  };
  const toggle = async (row: TreeRow): Promise<void> => changed(await client.call("toggleNode", [row.node]));
  const copyPath = async (row: TreeRow): Promise<void> => copyText(await client.call("nodePath", [row.node]), "Path");
  const copyValue = async (row: TreeRow): Promise<void> => {
    const value = await client.call("nodeValue", [row.node]);
    if (value === null) {
      toast({ tone: "error", title: "Value too large for the clipboard", text: "Download the body instead." });
    } else await copyText(value, "Value");
  };
  const expandAll = async (): Promise<void> => {
    const result = await client.call("expandNode", [0]);
    changed(result.rows);
    if (!result.complete) toast({ title: "Expanded the first 100,000 lines", text: "Expand the rest node by node." });
  };
  const collapse = async (): Promise<void> => changed(await client.call("collapseTree", []));
  return { rows, problem, blocks, toggle, copyPath, copyValue, expandAll, collapse };
}

/** A JSON body as an expandable tree; copies paths and values. */
export function TreeViewer({ client, label }: { readonly client: BodyClient; readonly label: string }) {
  const id = useId();
  const list = useRef<WindowListHandle>(null);
  const [active, setActive] = useState(0);
  const { rows, problem, blocks, toggle, copyPath, copyValue, expandAll, collapse } = useTree(client);

  if (problem !== null) return <EmptyState title="No tree">{problem}</EmptyState>;
  if (rows === null) return <EmptyState title="Reading structure" icon={<Spinner />} />;

  const move = (to: number): void => {
    const next = Math.max(0, Math.min(rows - 1, to));
    setActive(next);
    list.current?.show(next);
  };
  const onKeyDown = (event: KeyboardEvent<HTMLDivElement>): void => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target !== event.currentTarget) return;
    const row = blocks.row(active);
    const isContainer = row !== undefined && (row.kind === "object" || row.kind === "array");
    const actions: Readonly<Record<string, () => void>> = {
      ArrowDown: () => move(active + 1),
      ArrowUp: () => move(active - 1),
      Home: () => move(0),
      End: () => move(rows - 1),
      ArrowRight: () => {
        if (row !== undefined && isContainer && !row.expanded) void toggle(row);
        else move(active + 1);
      },
      ArrowLeft: () => {
        if (row !== undefined && isContainer && row.expanded) void toggle(row);
        else move(parentLine(active, blocks.row));
      },
      Enter: () => row !== undefined && isContainer && void toggle(row),
      c: () => row !== undefined && void copyValue(row),
      p: () => row !== undefined && void copyPath(row),
    };
    const action = actions[event.key];
    if (action === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    action();
  };

  return (
    <div className={styles["stack"]}>
      <div className={styles["subbar"]}>
        <Button variant="ghost" onClick={() => void expandAll()}>
          Expand all
        </Button>
        <Button variant="ghost" onClick={() => void collapse()}>
          Collapse
        </Button>
        <span className={styles["grow"]} />
        <span className={styles["quiet"]}>{formatCount(rows)} lines</span>
      </div>
      <WindowList
        handle={list}
        rows={rows}
        rowPx={ROW_PX}
        label={label}
        role="tree"
        className={classNames(styles["code"], styles["tree"])}
        onVisible={blocks.want}
        onKeyDown={onKeyDown}
        activeId={(index) => (index === active && blocks.row(index) !== undefined ? `${id}-${index}` : undefined)}
        renderRow={(index) => {
          const row = blocks.row(index);
          if (row === undefined) return <div key={index} style={{ height: ROW_PX }} />;
          const isContainer = row.kind === "object" || row.kind === "array";
          return (
            <TreeLine
              key={index}
              id={`${id}-${index}`}
              row={row}
              isActive={index === active}
              onSelect={() => {
                setActive(index);
                if (isContainer) void toggle(row);
              }}
              onCopyPath={() => void copyPath(row)}
              onCopyValue={() => void copyValue(row)}
            />
          );
        }}
      />
    </div>
  );
}

function TreeLine({
  id,
  row,
  isActive,
  onSelect,
  onCopyPath,
  onCopyValue,
}: {
  readonly id: string;
  readonly row: TreeRow;
  readonly isActive: boolean;
  readonly onSelect: () => void;
  readonly onCopyPath: () => void;
  readonly onCopyValue: () => void;
}) {
  const isContainer = row.kind === "object" || row.kind === "array";
  return (
    <div
      id={id}
      role="treeitem"
      tabIndex={-1}
      aria-level={row.depth + 1}
      aria-expanded={isContainer ? row.expanded : undefined}
      aria-selected={isActive}
      className={styles["node"]}
      style={{ height: ROW_PX, paddingLeft: 6 + row.depth * 16 }}
      onClick={onSelect}
      onKeyDown={() => undefined}
    >
      <span className={styles["twist"]}>
        {isContainer && row.count > 0 && (row.expanded ? <ChevronDown size={14} /> : <ChevronRight size={14} />)}
      </span>
      {row.label !== null && (
        <>
          <span className={row.inArray ? styles["quiet"] : styles["key"]}>{row.label}</span>
          <span className={styles["colon"]}>:</span>
        </>
      )}
      <TreeValue row={row} />
      <span className={styles["nodeActions"]}>
        <IconButton
          label="Copy path"
          keys="p"
          icon={<Link2 size={13} />}
          tabIndex={-1}
          onClick={(event) => (event.stopPropagation(), onCopyPath())}
        />
        <IconButton
          label="Copy value"
          keys="c"
          icon={<Copy size={13} />}
          tabIndex={-1}
          onClick={(event) => (event.stopPropagation(), onCopyValue())}
        />
      </span>
    </div>
  );
}

function TreeValue({ row }: { readonly row: TreeRow }) {
  if (row.kind === "object" || row.kind === "array") {
    const brackets = row.kind === "object" ? "{}" : "[]";
    const unit = row.kind === "object" ? (row.count === 1 ? "key" : "keys") : row.count === 1 ? "item" : "items";
    return (
      <>
        <span className={styles["quiet"]}>
          {brackets[0]}
          {row.count > 0 && ` ${formatCount(row.count)} ${unit} `}
          {brackets[1]}
        </span>
        {!row.expanded && row.count > 0 && <span className={styles["glance"]}>{row.preview}</span>}
      </>
    );
  }
  return (
    <span className={classNames(styles["value"], styles[TONES[row.kind]])}>
      {row.kind === "string" ? `"${row.preview}${row.cut ? "…" : ""}"` : row.preview}
    </span>
  );
}

/** The line of the parent node, if its block is loaded. */
function parentLine(active: number, rowAt: (index: number) => TreeRow | undefined): number {
  const depth = rowAt(active)?.depth ?? 0;
  for (let line = active - 1; line >= 0; line--) {
    const row = rowAt(line);
    if (row === undefined || row.depth < depth) return line;
  }
  return 0;
}
