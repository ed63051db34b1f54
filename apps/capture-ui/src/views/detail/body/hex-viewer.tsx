import { useCallback, useState } from "react";
import { Segmented } from "../../../ui/segmented.tsx";
import { EmptyState } from "../../../ui/states.tsx";
import styles from "./body.module.css";
import { useBlocks, WindowList } from "./window-list.tsx";
import { type HexRowBytes, hexRows, offsetDigits } from "./hex-rows.ts";

const ROW_PX = 19;
/** 64 KiB per request, or half of it. */
const BLOCK_ROWS = 4096;
/** Minimum width for rows of sixteen bytes. */
const WIDE_PX = 580;

type Coding = "decoded" | "received";

/** Bytes of a body, fetched by range on demand. */
export function HexViewer({
  bodyUrl,
  decodedBytes,
  storedBytes,
  isEncoded,
  label,
}: {
  /** URL of the body, decoded or as received. */
  readonly bodyUrl: (decoded: boolean) => string;
  /** Null if decoding failed. */
  readonly decodedBytes: number | null;
  readonly storedBytes: number;
  readonly isEncoded: boolean;
  readonly label: string;
}) {
  const [coding, setCoding] = useState<Coding>(decodedBytes === null ? "received" : "decoded");
  const decoded = coding === "decoded" && decodedBytes !== null;
  const size = decoded ? decodedBytes : storedBytes;
  const url = bodyUrl(decoded);
  const [rowBytes, setRowBytes] = useState<HexRowBytes>(16);
  const fit = useCallback((widthPx: number) => setRowBytes(widthPx < WIDE_PX ? 8 : 16), []);
  const [problem, setProblem] = useState<string | null>(null);
  const load = useCallback(
    async (from: number, to: number) => {
      const start = from * rowBytes;
      const end = to * rowBytes;
      const response = await fetch(url, { headers: { range: `bytes=${start}-${end - 1}` } });
      if (!response.ok) {
        setProblem(`Weir responded with ${response.status}`);
        throw new Error("No bytes");
      }
      setProblem(null);
      const bytes = new Uint8Array(await response.arrayBuffer());
      // A service without range support sends the whole body.
      return hexRows(response.status === 206 ? bytes : bytes.subarray(start, end), start, rowBytes);
    },
    [url, rowBytes],
  );
  const blocks = useBlocks(load, `${url} ${rowBytes}`, BLOCK_ROWS);
  const digits = offsetDigits(size);
  return (
    <div className={styles["stack"]}>
      {isEncoded && decodedBytes !== null && (
        <div className={styles["subbar"]}>
          <Segmented
            label="Bytes"
            value={coding}
            options={[
              { value: "decoded", label: "Decoded" },
              { value: "received", label: "As received" },
            ]}
            onChange={setCoding}
          />
        </div>
      )}
      {problem === null ? (
        <WindowList
          rows={Math.ceil(size / rowBytes)}
          rowPx={ROW_PX}
          label={label}
          className={styles["code"]}
          onVisible={blocks.want}
          onResize={fit}
          renderRow={(index) => {
            const known = blocks.row(index);
            // Rows of the previous width are kept until the new ones are loaded.
            const row = known?.offset === index * rowBytes ? known : undefined;
            return (
              <div key={index} className={styles["hexRow"]} style={{ height: ROW_PX }}>
                <span className={styles["quiet"]}>{(index * rowBytes).toString(16).padStart(digits, "0")}</span>
                {/** Pads the last row so that its text is aligned. */}
                <span style={{ width: `${rowBytes * 3}ch` }}>{row?.hex ?? ""}</span>
                <span className={styles["ascii"]}>{row?.ascii ?? ""}</span>
              </div>
            );
          }}
        />
      ) : (
        <EmptyState title="Could not show the bytes">{problem}</EmptyState>
      )}
    </div>
  );
}
