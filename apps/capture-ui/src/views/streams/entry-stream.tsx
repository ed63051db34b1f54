import type { StreamDetail } from "@headworks/capture-contract";
import { useState } from "react";
import { Link } from "../../shell/link.tsx";
import { Messages } from "./stream-pane.tsx";
import styles from "./streams.module.css";

export function EntryStream({ stream }: { readonly stream: StreamDetail }) {
  const [frame, setFrame] = useState<number | null>(null);
  return (
    <div className={styles["pane"]}>
      <p className={styles["more"]}>
        <Link href={`/streams?id=${stream.id}`}>
          {stream.kind === "grpc" ? "Open in Streams" : "View assembled message"}
        </Link>
      </p>
      <div className={styles["rest"]}>
        <Messages stream={stream} frame={frame} hasKeys={false} onFrame={setFrame} />
      </div>
    </div>
  );
}
