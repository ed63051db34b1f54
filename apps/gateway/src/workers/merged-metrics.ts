interface Family {
  readonly help: string;
  readonly type: string;
  readonly values: Map<string, number>;
}

type Families = Map<string, Family>;

/** How gauges of several processes are merged; others are summed. */
const GAUGES: Readonly<Record<string, (values: readonly number[]) => number>> = {
  // The highest: workers with an older generation do not hide the new one.
  config_generation: (values) => Math.max(...values),
  // 1 is open, 2 half-open, 0 closed: the worst of them.
  breaker_state: (values) => (values.includes(1) ? 1 : Math.max(...values)),
  endpoint_health: (values) => Math.min(...values),
};
/** Gauges that only grow, by name or specification. */
const GROWING = /_total$|^upstream_fail_open_picks$/;

/**
 * Sums the metrics of several processes in the Prometheus text format 0.0.4. Counters and histograms of ended
 * processes stay in the sums, so that no counter decreases.
 */
export class MergedMetrics {
  readonly #departed: Families = new Map();

  /** A process ended; these are its last metrics. */
  depart(text: string): void {
    for (const [name, family] of familiesOf(text)) {
      if (family.type !== "gauge" || GROWING.test(name)) merge(this.#departed, name, family);
    }
  }

  together(texts: readonly string[]): string {
    const all = new Map<string, { readonly family: Family; readonly values: Map<string, number[]> }>();
    for (const families of [...texts.map(familiesOf), this.#departed]) {
      for (const [name, family] of families) {
        const known = all.get(name) ?? { family, values: new Map<string, number[]>() };
        all.set(name, known);
        for (const [sample, value] of family.values) {
          const values = known.values.get(sample);
          if (values === undefined) known.values.set(sample, [value]);
          else values.push(value);
        }
      }
    }
    let merged = "";
    for (const [name, { family, values }] of all) {
      const combine = (family.type === "gauge" ? GAUGES[name] : undefined) ?? sum;
      merged += `${family.help}\n# TYPE ${name} ${family.type}\n`;
      for (const [sample, each] of values) merged += `${sample} ${combine(each)}\n`;
    }
    return merged;
  }
}

function merge(into: Families, name: string, family: Family): void {
  const known = into.get(name);
  if (known === undefined) {
    into.set(name, family);
    return;
  }
  for (const [sample, value] of family.values) known.values.set(sample, (known.values.get(sample) ?? 0) + value);
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

/** The gateway's own texts: every metric has its HELP line, then its TYPE line, then its samples. */
function familiesOf(text: string): Families {
  const families: Families = new Map();
  let help = "";
  let family: Family | undefined;
  for (const line of text.split("\n")) {
    if (line.startsWith("# HELP ")) help = line;
    else if (line.startsWith("# TYPE ")) {
      const [, , name = "", type = ""] = line.split(" ");
      families.set(name, (family = { help, type, values: new Map() }));
    } else if (line !== "" && !line.startsWith("#")) {
      const valueAt = line.lastIndexOf(" ");
      family?.values.set(line.slice(0, valueAt), Number(line.slice(valueAt + 1)));
    }
  }
  return families;
}
