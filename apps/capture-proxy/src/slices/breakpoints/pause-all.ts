import type { Breakpoint, PauseAll } from "@headworks/capture-contract";
import type { PausingRule } from "./paused-exchanges.ts";

/** Rule id of pauses without a rule. */
export const PAUSE_ALL = "pause-all";

/** The switch that pauses all exchanges no rule matches; deliberately not persisted. */
export class PauseAllSwitch {
  readonly #onChange: () => void;
  #isOn = false;
  #direction: Breakpoint["direction"] = "request";
  #rule: PausingRule = { id: PAUSE_ALL, name: "Pause all", timeoutSecs: null };

  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  /** The pseudo-rule for messages of this side; undefined while off. */
  ruleFor(side: "request" | "response"): PausingRule | undefined {
    return this.#isOn && (this.#direction === "both" || this.#direction === side) ? this.#rule : undefined;
  }

  set(wanted: {
    readonly enabled?: boolean;
    readonly direction?: Breakpoint["direction"];
    readonly timeout_secs?: number | null;
  }): void {
    this.#isOn = wanted.enabled ?? true;
    if (this.#isOn) {
      this.#direction = wanted.direction ?? "request";
      this.#rule = { ...this.#rule, timeoutSecs: wanted.timeout_secs ?? null };
    }
    this.#onChange();
  }

  shown(): Omit<PauseAll, "paused_count"> {
    return { enabled: this.#isOn, direction: this.#direction, timeout_secs: this.#rule.timeoutSecs };
  }
}
