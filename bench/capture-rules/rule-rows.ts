import { mitmdumpWith, mockttpWith, startWeir, type Contender } from "../capture/proxies.ts";
import type { Row } from "../capture/rows.ts";

/** A kind of traffic and its contenders; the first one is the baseline. */
export interface RuleRow {
  readonly row: Row;
  readonly contenders: readonly [Contender, ...Contender[]];
}

type Rule = Readonly<Record<string, unknown>>;

/** The first word of each body of the origin, and a word of the same length. */
const EDIT = { from: '"items"', to: '"goods"' } as const;

function rule(name: string, condition: object, direction: string, ...rewrites: object[]): Rule {
  return { name, condition, direction, rewrites };
}

const all = { type: "all" };
const header = { type: "set_header", name: "X-Test", value: "1" };
const headerRule = rule("header", all, "both", header);
const bodyRule = rule("body", all, "response", { type: "body_rewrite", pattern: EDIT.from, replacement: EDIT.to });
const patternRule = rule("pattern", all, "response", {
  type: "body_rewrite",
  pattern: '"(i)tems"',
  replacement: '"goods"',
});

/** A realistic mix: mostly by URL, some by host, path, header or method; none matches a request of the run. */
const missingConditions: readonly object[] = Array.from({ length: 1000 }, (_, number) => {
  const conditions = [
    { type: "url_pattern", pattern: `^https://api${number}\\.example\\.com/v[0-9]+/` },
    { type: "host", pattern: `*.shop${number}.example` },
    { type: "path_pattern", pattern: `/orders/${number}/items$` },
    {
      type: "and",
      conditions: [
        { type: "method", method: "POST" },
        { type: "path_pattern", pattern: `^/p${number}` },
      ],
    },
    {
      type: "and",
      conditions: [
        { type: "host", pattern: `h${number}.test` },
        { type: "header", name: "X-Debug" },
      ],
    },
  ];
  return conditions[number % conditions.length] ?? all;
});

/** The same 1,000 conditions as rules of one kind. */
function missing(make: (condition: object, name: string) => object): readonly object[] {
  return missingConditions.map((condition, number) => make(condition, `rule ${number}`));
}

const missingRewrites = missing((condition, name) => rule(name, condition, "both", header));
const missingMocks = missing((condition, name) => ({ name, condition, response: { status_code: 200, body: "mock" } }));
const missingBreakpoints = missing((condition, name) => ({ name, condition, direction: "both" }));
const missingBlocks = missing((_condition, name) => ({ pattern: `*.${name.replace(" ", "-")}.example` }));

/** Rules by the operation that creates them. */
type RulesByPath = Readonly<Partial<Record<"rewrites" | "mocks" | "breakpoints" | "blocklist", readonly object[]>>>;

function weirWith(name: string, rules: RulesByPath, edit?: Contender["edit"]): Contender {
  return {
    name,
    stores: "every exchange, heads and bodies, in SQLite",
    version: () => "",
    ...(edit === undefined ? {} : { edit }),
    start: async (site) => {
      const weir = await startWeir(site);
      for (const [path, bodies] of Object.entries(rules)) {
        for (const body of bodies) await post(`${weir.api}/api/${path}`, body);
      }
      return weir;
    },
  };
}

async function post(url: string, body: object): Promise<void> {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  if (response.status !== 201) throw new Error(`POST ${url}: ${response.status} ${await response.text()}`);
}

const kept = { scheme: "https", isNewConnectionEach: false, targets: {} } as const;
const bodyContenders: readonly [Contender, ...Contender[]] = [
  weirWith("no rules", {}),
  weirWith("word", { rewrites: [bodyRule] }, EDIT),
  weirWith("pattern", { rewrites: [patternRule] }, EDIT),
  mitmdumpWith("mitmdump", ["--modify-body", `@~s@${EDIT.from}@${EDIT.to}`], EDIT),
  mockttpWith("mockttp", { replace: [EDIT.from, EDIT.to] }, EDIT),
];

/** 1,000 non-matching rules of one kind, and of all kinds together. */
const MISSING: Readonly<Record<string, RulesByPath>> = {
  rewrites: { rewrites: missingRewrites },
  mocks: { mocks: missingMocks },
  breakpoints: { breakpoints: missingBreakpoints },
  blocklist: { blocklist: missingBlocks },
  "all kinds": {
    rewrites: missingRewrites,
    mocks: missingMocks,
    breakpoints: missingBreakpoints,
    blocklist: missingBlocks,
  },
};

/** The measured differences are smaller than the machine's variations, so each pair runs concurrently on one core. */
export const SIDE_BY_SIDE: {
  readonly row: Row;
  readonly pairs: readonly (readonly [Contender, Contender])[];
} = {
  row: {
    ...kept,
    name: "side-by-side",
    title: "2 KB responses: 1,000 non-matching rules of a kind, compared to a concurrent Weir without rules",
    bodyBytes: 2048,
  },
  pairs: Object.entries({ "no rules": {}, ...MISSING }).map(([name, rules]) => [
    weirWith(`none beside ${name}`, {}),
    weirWith(name, rules),
  ]),
};

export const RULE_ROWS: readonly RuleRow[] = [
  {
    row: { ...kept, name: "missing", title: "2 KB responses: 1,000 non-matching rules of a kind", bodyBytes: 2048 },
    contenders: [
      weirWith("no rules", {}),
      ...Object.entries(MISSING).map(([name, rules]) => weirWith(name, rules)),
      mockttpWith("mockttp", { missing: 1000 }),
    ],
  },
  {
    row: { ...kept, name: "heads", title: "2 KB responses: a field set in both messages", bodyBytes: 2048 },
    contenders: [
      weirWith("no rules", {}),
      weirWith("header", { rewrites: [headerRule] }),
      mitmdumpWith("mitmdump", ["--modify-headers", "@~q@X-Test@1", "--modify-headers", "@~s@X-Test@1"]),
      mockttpWith("mockttp", { headers: { "X-Test": "1" } }),
    ],
  },
  {
    row: { ...kept, name: "body-10k", title: "10 KB responses, a word in the body replaced", bodyBytes: 10_240 },
    contenders: bodyContenders,
  },
  {
    row: { ...kept, name: "body-1m", title: "1 MB responses, a word in the body replaced", bodyBytes: 1_048_576 },
    contenders: bodyContenders,
  },
];
