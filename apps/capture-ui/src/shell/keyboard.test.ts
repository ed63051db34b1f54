import assert from "node:assert/strict";
import { test } from "node:test";
import { type Binding, BINDINGS, chordOf, meaningOf, shownKeys, type KeyPress } from "./keyboard.ts";

const press = (key: string, modifiers: Partial<KeyPress> = {}): KeyPress => ({
  key,
  ctrlKey: false,
  metaKey: false,
  altKey: false,
  shiftKey: false,
  ...modifiers,
});

/** Groups whose keys work on one screen each. */
const OF_ONE_SCREEN: readonly Binding["group"][] = ["Request", "Paused"];

/** Keys bound twice on one screen, or unreachable because a prefix comes first. */
function conflicts(bindings: readonly Binding[]): readonly string[] {
  const claims = bindings.flatMap(({ keys, group }) => keys.map((one) => ({ keys: one, group })));
  const all = claims.map((claim) => claim.keys);
  const twice = claims
    .filter((claim, index) =>
      claims.some(
        (other, at) =>
          at < index &&
          other.keys === claim.keys &&
          (other.group === claim.group || !OF_ONE_SCREEN.includes(other.group) || !OF_ONE_SCREEN.includes(claim.group)),
      ),
    )
    .map((claim) => claim.keys);
  const prefixes = all.flatMap((keys) => (keys.includes(" ") ? (keys.split(" ")[0] ?? []) : []));
  return [...new Set([...twice, ...all.filter((keys) => prefixes.includes(keys))])];
}

test("no two actions share keys, and no key hides behind a prefix", () => {
  assert.deepEqual(conflicts(BINDINGS), []);
});

test("the same keys may have different actions on different screens", () => {
  const [first] = BINDINGS;
  assert.ok(first);
  const entry = { ...first, keys: ["E"], group: "Request" as const };
  const waiting = { ...first, keys: ["E"], group: "Paused" as const };
  assert.deepEqual(conflicts([entry, waiting]), []);
  assert.deepEqual(conflicts([entry, { ...waiting, group: "List" }]), ["E"]);
  assert.deepEqual(conflicts([entry, entry]), ["E"]);
});

test("of actions that share keys, the usable one wins", () => {
  for (const action of ["replay.edit", "paused.edit"] as const) {
    const meaning = meaningOf("E", undefined, false, (each) => each === action);
    assert.equal(meaning.kind === "action" && meaning.binding.action, action);
  }
});

test("a conflict is found", () => {
  const [first] = BINDINGS;
  assert.ok(first);
  assert.deepEqual(conflicts([first, { ...first, action: "theme" }]), ["Ctrl+K"]);
  assert.deepEqual(
    conflicts([
      { ...first, keys: ["G"] },
      { ...first, keys: ["G T"] },
    ]),
    ["G"],
  );
});

test("the keys of every binding can be typed", () => {
  for (const keys of BINDINGS.flatMap((binding) => binding.keys.flatMap((one) => one.split(" ")))) {
    const parts = keys.split("+");
    const key = parts.at(-1) ?? "";
    const typed = /^[A-Z]$/u.test(key) ? key.toLowerCase() : key;
    const chord = chordOf(
      press(typed, { ctrlKey: parts.includes("Ctrl"), shiftKey: parts.includes("Shift") || key === "?" }),
    );
    assert.equal(chord, keys);
  }
});

test("modifiers alone, dead keys and Alt are ignored", () => {
  for (const key of ["Control", "Shift", "Meta", "Dead", "Process"]) assert.equal(chordOf(press(key)), undefined);
  assert.equal(chordOf(press("k", { altKey: true })), undefined);
});

test("the command key counts as Ctrl", () => {
  assert.equal(chordOf(press("k", { metaKey: true })), "Ctrl+K");
});

test("in text fields only bindings marked for it are active", () => {
  assert.equal(meaningOf("J", undefined, true).kind, "none");
  assert.equal(meaningOf("G", undefined, true).kind, "none");
  assert.equal(meaningOf("Ctrl+K", undefined, true).kind, "action");
});

test("G starts a sequence whose second key selects the screen", () => {
  assert.deepEqual(meaningOf("G", undefined, false), { kind: "prefix", chord: "G" });
  const second = meaningOf("S", "G", false);
  assert.equal(second.kind === "action" && second.binding.action, "goSessions");
});

test("the second key of a sequence keeps its own action without the prefix", () => {
  const meaning = meaningOf("J", "G", false);
  assert.equal(meaning.kind === "action" && meaning.binding.action, "list.next");
});

test("keys are shown with the names of the platform", () => {
  assert.equal(shownKeys("Ctrl+K", false), "Ctrl K");
  assert.equal(shownKeys("Ctrl+K", true), "⌘ K");
  assert.equal(shownKeys("G T", false), "G then T");
});
