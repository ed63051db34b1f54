import { useQuery } from "@tanstack/react-query";
import { type KeyboardEvent, useEffect, useId, useRef, useState } from "react";
import { setPreferences } from "../preferences.ts";
import { queryClient, sessionsQuery } from "../queries.ts";
import { exportHar, exportSession } from "../transfer/export.ts";
import { chooseAndImport } from "../transfer/import.ts";
import { openSession } from "../transfer/open-session.ts";
import { Dialog } from "../ui/dialog.tsx";
import { KeyHint } from "../ui/tag.tsx";
import { canRun, keysOf, runAction } from "./actions.ts";
import styles from "./command-palette.module.css";
import { BINDINGS } from "./keyboard.ts";
import { navigate } from "./router.ts";
import { type Command, findCommands } from "./command-search.ts";

/** Movement actions are useful with keys only. */
const HIDDEN = /^(?:palette|list\.(?:next|previous|first|last|extend)|detail\.(?:next|previous))/u;

function commands(
  sessions: readonly { readonly id: string; readonly name: string | null; readonly is_current: boolean }[],
): readonly Command[] {
  const bound = BINDINGS.filter((binding) => !HIDDEN.test(binding.action) && canRun(binding.action)).map(
    (binding): Command => ({
      id: binding.action,
      label: binding.group === "Screens" ? `Go to ${binding.label.toLowerCase()}` : binding.label,
      keys: keysOf(binding.action),
      run: () => runAction(binding.action),
    }),
  );
  const others: readonly Command[] = [
    { id: "import", label: "Import HAR or session…", words: "open file upload", run: chooseAndImport },
    {
      id: "export-har",
      label: "Export all requests (HAR)",
      words: "save download",
      run: () => void exportHar({ q: "", session: null }),
    },
    {
      id: "export-session",
      label: "Export full session (Weir format)",
      words: "save download backup",
      run: () =>
        void exportSession(queryClient.getQueryData(sessionsQuery.queryKey)?.find((session) => session.is_current)?.id),
    },
    {
      id: "errors",
      label: "Show only errors",
      words: "filter failed 4xx 5xx",
      run: () => navigate("/traffic?show=errors"),
    },
    {
      id: "slow",
      label: "Show slow requests",
      words: "filter duration",
      run: () => navigate("/traffic?q=%40slow&sort=duration%3Adesc"),
    },
    { id: "everything", label: "Clear the filter", words: "reset filter", run: () => navigate("/traffic") },
    { id: "tree", label: "Show the host tree", words: "view", run: () => navigate("/traffic?mode=tree") },
    {
      id: "waterfall",
      label: "Show the waterfall",
      words: "view timeline",
      run: () => navigate("/traffic?mode=waterfall"),
    },
    { id: "light", label: "Light theme", words: "appearance display", run: () => setPreferences({ theme: "light" }) },
    {
      id: "dark",
      label: "Dark theme",
      words: "appearance display night",
      run: () => setPreferences({ theme: "dark" }),
    },
    {
      id: "system",
      label: "System theme",
      words: "appearance display",
      run: () => setPreferences({ theme: "system" }),
    },
  ];
  const switches = sessions
    .filter((session) => !session.is_current && session.name !== null)
    .slice(0, 20)
    .map((session): Command => ({
      id: `session-${session.id}`,
      label: `Switch to session ${session.name ?? ""}`,
      run: () => void openSession(session.id),
    }));
  return [...bound, ...others, ...switches];
}

/** Searchable list of all commands. Mounted on each opening, so that it offers the currently available ones. */
export function CommandPalette({ onClose }: { readonly onClose: () => void }) {
  const sessions = useQuery(sessionsQuery);
  const [typed, setTyped] = useState("");
  const [chosen, setChosen] = useState(0);
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const found = findCommands(typed, commands(sessions.data ?? []));
  const at = Math.min(chosen, found.length - 1);
  useEffect(() => {
    list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" });
  }, [at]);
  const run = (command: Command | undefined): void => {
    if (command === undefined) return;
    onClose();
    // Runs after the dialog closes, which would otherwise take the focus back.
    window.setTimeout(command.run, 0);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined && found.length > 0) {
      event.preventDefault();
      setChosen((at + step + found.length) % found.length);
    } else if (event.key === "Enter") {
      event.preventDefault();
      run(found[at]);
    }
  };
  return (
    <Dialog open onClose={onClose} title="Commands" size="bare">
      <input
        className={styles["input"]}
        value={typed}
        role="combobox"
        aria-label="Find a command"
        aria-expanded="true"
        aria-controls={`${id}-list`}
        aria-activedescendant={at >= 0 ? `${id}-${at}` : undefined}
        placeholder="Type a command"
        spellCheck={false}
        onChange={(event) => {
          setTyped(event.target.value);
          setChosen(0);
        }}
        onKeyDown={onKeyDown}
      />
      <div ref={list} id={`${id}-list`} role="listbox" aria-label="Commands" className={styles["list"]}>
        {found.map((command, index) => (
          <div
            key={command.id}
            id={`${id}-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === at}
            className={styles["option"]}
            onPointerMove={() => setChosen(index)}
            onPointerDown={(event) => {
              event.preventDefault();
              run(command);
            }}
          >
            <span>{command.label}</span>
            {command.keys !== undefined && <KeyHint keys={command.keys} />}
          </div>
        ))}
      </div>
      {found.length === 0 && <p className={styles["none"]}>No matching command.</p>}
    </Dialog>
  );
}
