import { useEffect, useRef } from "react";
import { BINDINGS, chordOf, meaningOf, shownKeys, type ActionId } from "./keyboard.ts";

type Handler = () => void;

/** Handlers by action; the last mounted one is called. */
const handlers = new Map<ActionId, Handler[]>();
/** Timeout of a key sequence (`G` …). */
const SEQUENCE_MS = 1200;

/** Registers `handler` for the action's keys and its palette command while the component is mounted. */
export function useAction(action: ActionId, handler: Handler | undefined): void {
  const latest = useRef(handler);
  useEffect(() => {
    latest.current = handler;
  });
  const enabled = handler !== undefined;
  useEffect(() => {
    if (!enabled) return undefined;
    const call: Handler = () => latest.current?.();
    handlers.set(action, [...(handlers.get(action) ?? []), call]);
    return () => {
      handlers.set(action, handlers.get(action)?.filter((other) => other !== call) ?? []);
    };
  }, [action, enabled]);
}

/** Runs an action. Returns whether a handler exists. */
export function runAction(action: ActionId): boolean {
  const handler = handlers.get(action)?.at(-1);
  handler?.();
  return handler !== undefined;
}

export function canRun(action: ActionId): boolean {
  return (handlers.get(action)?.length ?? 0) > 0;
}

const MAC = typeof navigator !== "undefined" && /Mac|iPhone|iPad/u.test(navigator.platform);

/** The first keys of an action, in this platform's notation. */
export function keysOf(action: ActionId): string {
  const keys = BINDINGS.find((binding) => binding.action === action)?.keys[0];
  return keys === undefined ? "" : shownKeys(keys, MAC);
}

/** All keys of a binding, in this platform's notation. */
export function allKeys(keys: readonly string[]): readonly string[] {
  return keys.map((one) => shownKeys(one, MAC));
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable) return true;
  if (target instanceof HTMLInputElement) return !["checkbox", "radio", "button", "range"].includes(target.type);
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}

/** Keys handled by a focused control: buttons take Space and Enter, menus and tabs take arrows. */
function belongsToControl(target: EventTarget | null, chord: string): boolean {
  if (!(target instanceof HTMLElement)) return false;
  const control = target.closest(
    "button, a, summary, [role=menu], [role=tab], [role=radio], [role=switch], [role=separator], [role=option]",
  );
  if (control === null) return false;
  if (chord === "Enter" || chord === "Space") return true;
  return (
    /Arrow|Home|End|Page/u.test(chord) &&
    control.matches("[role=menu], [role=tab], [role=radio], [role=separator], [role=option]")
  );
}

/** Handles the keyboard for the whole app. Called once by the shell. */
export function useKeyboard(): void {
  useEffect(() => {
    let prefix: string | undefined;
    let timer = 0;
    const onKeyDown = (event: KeyboardEvent): void => {
      if (event.defaultPrevented || event.isComposing) return;
      const chord = chordOf(event);
      if (chord === undefined) return;
      const begun = prefix;
      prefix = undefined;
      window.clearTimeout(timer);
      const meaning = meaningOf(chord, begun, isTyping(event.target), canRun);
      if (meaning.kind === "prefix") {
        prefix = meaning.chord;
        timer = window.setTimeout(() => (prefix = undefined), SEQUENCE_MS);
        return;
      }
      // A modal window or an open menu takes all keys.
      const modal = document.querySelector(
        "[role=dialog][data-open], [role=alertdialog][data-open], [role=menu][data-open]",
      );
      // Leaves a text field, so that single keys work again.
      if (chord === "Escape" && modal === null && isTyping(event.target) && event.target instanceof HTMLElement) {
        event.target.blur();
        return;
      }
      if (meaning.kind !== "action" || belongsToControl(event.target, chord)) return;
      if (modal !== null && meaning.binding.action !== "palette") return;
      if (runAction(meaning.binding.action)) event.preventDefault();
    };
    addEventListener("keydown", onKeyDown);
    return () => {
      window.clearTimeout(timer);
      removeEventListener("keydown", onKeyDown);
    };
  }, []);
}
