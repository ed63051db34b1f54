import { isNumeric, numberKey, type Json, type Numeric } from "@headworks/json";
import type { IgnoredPaths, JsonPlace } from "./ignored-paths.ts";

/** Assigns equal numbers to equal parts of JSON documents, so that comparing parts takes constant time. */
export class JsonTree {
  readonly #ignored: IgnoredPaths;
  readonly #numbers = new Map<string, number>();
  readonly #exact = new WeakMap<object, number>();

  constructor(ignored: IgnoredPaths) {
    this.#ignored = ignored;
  }

  /** Equal for equal values. */
  exactId(value: Json): number {
    if (typeof value !== "object" || value === null || isNumeric(value)) return this.#numbered(scalarKey(value));
    const known = this.#exact.get(value);
    if (known !== undefined) return known;
    const id = this.#containerId(value, (member) => this.exactId(member));
    this.#exact.set(value, id);
    return id;
  }

  /** Equal for values that differ only on ignored paths. */
  id(value: Json, place: JsonPlace): number {
    if (this.#ignored.isEmpty) return this.exactId(value);
    if (typeof value !== "object" || value === null || isNumeric(value)) return this.exactId(value);
    return this.#containerId(value, (member, key) => {
      const at = [...place, key];
      return this.#ignored.matches(at) ? undefined : this.id(member, at);
    });
  }

  #containerId(
    value: readonly Json[] | Members,
    idOf: (member: Json, key: string | number) => number | undefined,
  ): number {
    if (Array.isArray(value)) {
      return this.#numbered(`[${(value as readonly Json[]).map((member, index) => idOf(member, index) ?? "*").join()}`);
    }
    const members = Object.entries(value as Members)
      .map(([name, member]) => [name, idOf(member, name)] as const)
      .filter(([, id]) => id !== undefined)
      .map(([name, id]) => `${JSON.stringify(name)}${String(id)}`);
    return this.#numbered(`{${members.sort().join()}`);
  }

  #numbered(key: string): number {
    const known = this.#numbers.get(key);
    if (known !== undefined) return known;
    this.#numbers.set(key, this.#numbers.size);
    return this.#numbers.size - 1;
  }
}

type Members = { readonly [name: string]: Json };

function scalarKey(value: null | boolean | string | Numeric): string {
  if (typeof value === "string") return `"${value}`;
  return isNumeric(value) ? `#${numberKey(value)}` : String(value);
}
