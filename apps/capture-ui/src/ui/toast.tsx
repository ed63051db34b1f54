import { CircleAlert, CircleCheck, Info, X } from "lucide-react";
import { useEffect, useState } from "react";
import { create } from "zustand";
import { errorText } from "../api.ts";
import { Button, IconButton } from "./button.tsx";
import { classNames } from "./class-names.ts";
import styles from "./toast.module.css";

export interface ToastOptions {
  readonly title: string;
  readonly text?: string;
  readonly tone?: "success" | "error" | "info";
  readonly action?: { readonly label: string; readonly onSelect: () => void };
  /** Milliseconds on screen; errors stay 10 s, others 4 s. 0 stays until closed or replaced. */
  readonly durationMs?: number;
  /** A message with the same key replaces the earlier one (progress). */
  readonly key?: string;
}

interface ShownToast extends ToastOptions {
  readonly id: number;
  readonly version: number;
}

const MAX_SHOWN = 4;
let lastId = 0;
const useToasts = create<{ readonly list: readonly ShownToast[] }>(() => ({ list: [] }));

/** Shows a toast. Returns a function that removes it. */
export function toast(options: ToastOptions): () => void {
  const { list } = useToasts.getState();
  const same = options.key === undefined ? undefined : list.find((shown) => shown.key === options.key);
  lastId += 1;
  const id = same?.id ?? lastId;
  const shown: ShownToast = { ...options, id, version: lastId };
  const rest = list.filter((other) => other.id !== id);
  const next = same === undefined ? [...rest, shown] : list.map((other) => (other.id === id ? shown : other));
  useToasts.setState({ list: next.slice(-MAX_SHOWN) });
  return () => dismiss(id);
}

function dismiss(id: number): void {
  useToasts.setState(({ list }) => ({ list: list.filter((shown) => shown.id !== id) }));
}

const ICONS = { success: CircleCheck, error: CircleAlert, info: Info };

/** Container of toasts; mounted once by the shell. */
export function ToastHost() {
  const list = useToasts((state) => state.list);
  return (
    <section className={styles["region"]} aria-label="Notifications" aria-live="polite" aria-relevant="additions text">
      {list.map((shown) => (
        <ToastCard key={shown.id} toast={shown} />
      ))}
    </section>
  );
}

function ToastCard({ toast: shown }: { readonly toast: ShownToast }) {
  const [held, setHeld] = useState(false);
  const tone = shown.tone ?? "info";
  const durationMs = shown.durationMs ?? (tone === "error" ? 10_000 : 4000);
  useEffect(() => {
    if (held || durationMs === 0) return undefined;
    const timer = window.setTimeout(() => dismiss(shown.id), durationMs);
    return () => window.clearTimeout(timer);
  }, [held, durationMs, shown.id, shown.version]);
  const Icon = ICONS[tone];
  return (
    <div
      className={classNames(styles["toast"], styles[tone])}
      role={tone === "error" ? "alert" : undefined}
      onPointerEnter={() => setHeld(true)}
      onPointerLeave={() => setHeld(false)}
      onFocus={() => setHeld(true)}
      onBlur={() => setHeld(false)}
    >
      <Icon size={16} aria-hidden />
      <div>
        <div className={styles["title"]}>{shown.title}</div>
        {shown.text !== undefined && <div className={styles["text"]}>{shown.text}</div>}
        {shown.action !== undefined && (
          <div className={styles["actions"]}>
            <Button
              onClick={() => {
                shown.action?.onSelect();
                dismiss(shown.id);
              }}
            >
              {shown.action.label}
            </Button>
          </div>
        )}
      </div>
      <IconButton label="Dismiss" icon={<X size={14} />} onClick={() => dismiss(shown.id)} />
    </div>
  );
}

/** Runs an action and reports a failure as a toast; returns whether it succeeded. */
export async function attempt(what: string, action: () => Promise<unknown>): Promise<boolean> {
  try {
    await action();
    return true;
  } catch (error) {
    toast({ tone: "error", title: what, text: errorText(error) });
    return false;
  }
}
