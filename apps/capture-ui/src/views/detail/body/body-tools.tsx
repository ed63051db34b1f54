import { Copy, Download, Search, WrapText } from "lucide-react";
import { IconButton } from "../../../ui/button.tsx";
import { Menu } from "../../../ui/menu.tsx";
import { Segmented } from "../../../ui/segmented.tsx";
import { useDetailMemory } from "../detail-memory.ts";
import styles from "./body.module.css";
import { VIEW_LABELS } from "./body-format.ts";
import type { BodyViewName } from "./body-format.ts";
import type { BodyOwner } from "./message-side.ts";

/** Choice of the view, search, wrapping, copy and download of a body. */
export function BodyTools({
  side,
  view,
  offered,
  coding,
  searching,
  onChoose,
  onSearch,
  onCopy,
  downloadUrl,
}: {
  readonly side: BodyOwner;
  readonly view: BodyViewName | null;
  readonly offered: readonly BodyViewName[];
  /** Content coding of the body; empty for none. */
  readonly coding: string;
  readonly searching: boolean;
  readonly onChoose: (view: BodyViewName) => void;
  readonly onSearch: () => void;
  readonly onCopy: () => void;
  readonly downloadUrl: (decoded: boolean) => string;
}) {
  const wrap = useDetailMemory((memory) => memory.wrap);
  const download = (decoded: boolean): void => {
    const link = document.createElement("a");
    link.href = downloadUrl(decoded);
    link.download = "";
    link.click();
  };
  return (
    <>
      {view !== null && (
        <div className={styles["views"]}>
          <Segmented
            label={`View of the ${side} body`}
            value={view}
            options={offered.map((name) => ({ value: name, label: VIEW_LABELS[name] }))}
            onChange={onChoose}
          />
        </div>
      )}
      <div className={styles["tools"]}>
        <IconButton
          label="Search in the body"
          keys="Ctrl F"
          icon={<Search size={14} />}
          pressed={searching}
          onClick={onSearch}
        />
        {(view === "pretty" || view === "raw") && (
          <IconButton
            label="Wrap long lines"
            icon={<WrapText size={14} />}
            pressed={wrap}
            onClick={() => useDetailMemory.setState({ wrap: !wrap })}
          />
        )}
        <IconButton label="Copy the body" icon={<Copy size={14} />} onClick={onCopy} />
        <Menu
          align="end"
          trigger={<IconButton label="Download the body" icon={<Download size={14} />} />}
          items={() => [
            { kind: "item", label: "Decoded", detail: "Content coding removed", onSelect: () => download(true) },
            {
              kind: "item",
              label: "As received",
              detail: coding === "" ? "The stored bytes" : `Still ${coding}`,
              onSelect: () => download(false),
            },
          ]}
        />
      </div>
    </>
  );
}
