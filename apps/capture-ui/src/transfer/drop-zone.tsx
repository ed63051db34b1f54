import { Upload } from "lucide-react";
import { useEffect, useState } from "react";
import { importFiles } from "./import.ts";
import styles from "./drop-zone.module.css";

function holdsFiles(event: DragEvent): boolean {
  return event.dataTransfer?.types.includes("Files") === true;
}

/** Imports files dropped anywhere on the page. */
export function DropZone() {
  const [over, setOver] = useState(false);
  useEffect(() => {
    let depth = 0;
    const onEnter = (event: DragEvent): void => {
      if (!holdsFiles(event)) return;
      event.preventDefault();
      depth += 1;
      setOver(true);
    };
    const onOver = (event: DragEvent): void => {
      if (holdsFiles(event)) event.preventDefault();
    };
    const onLeave = (event: DragEvent): void => {
      if (!holdsFiles(event)) return;
      depth = Math.max(0, depth - 1);
      if (depth === 0) setOver(false);
    };
    const onDrop = (event: DragEvent): void => {
      if (!holdsFiles(event)) return;
      event.preventDefault();
      depth = 0;
      setOver(false);
      void importFiles([...(event.dataTransfer?.files ?? [])]);
    };
    addEventListener("dragenter", onEnter);
    addEventListener("dragover", onOver);
    addEventListener("dragleave", onLeave);
    addEventListener("drop", onDrop);
    return () => {
      removeEventListener("dragenter", onEnter);
      removeEventListener("dragover", onOver);
      removeEventListener("dragleave", onLeave);
      removeEventListener("drop", onDrop);
    };
  }, []);
  if (!over) return null;
  return (
    <div className={styles["zone"]}>
      <div className={styles["box"]}>
        <Upload size={28} aria-hidden />
        <p>Drop HAR files or session exports to import them</p>
      </div>
    </div>
  );
}
