import { useEffect, useRef, type RefObject } from "react";

/**
 * Leads the keyboard into the editor of something new, to its first field, and back to where it came from when the editor
 * goes. Who opened something stored stays in the list and can go on to the next.
 */
export function useEditorFocus<Editor extends HTMLElement>(isNew: boolean): RefObject<Editor | null> {
  const editor = useRef<Editor>(null);
  useEffect(() => {
    const opener = document.activeElement;
    // Of the fields, not of what else the editor holds; only when it appears.
    if (isNew) editor.current?.querySelector<HTMLElement>("input, textarea")?.focus();
    return () => {
      if (document.activeElement !== document.body) return;
      if (opener instanceof HTMLElement && opener.isConnected) opener.focus();
    };
    // oxlint-disable-next-line react-hooks/exhaustive-deps -- what was new is stored later, in the same editor
  }, []);
  return editor;
}
