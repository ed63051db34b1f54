import { useEffect, useRef, type RefObject } from "react";

/**
 * Moves the focus to the first field of a new item's editor and restores it when the editor closes. Opening a stored
 * item leaves the focus in the list.
 */
export function useEditorFocus<Editor extends HTMLElement>(isNew: boolean): RefObject<Editor | null> {
  const editor = useRef<Editor>(null);
  useEffect(() => {
    const opener = document.activeElement;
    // Only form fields, and only on mount.
    if (isNew) editor.current?.querySelector<HTMLElement>("input, textarea")?.focus();
    return () => {
      if (document.activeElement !== document.body) return;
      if (opener instanceof HTMLElement && opener.isConnected) opener.focus();
    };
    // oxlint-disable-next-line react-hooks/exhaustive-deps -- what was new is stored later, in the same editor
  }, []);
  return editor;
}
