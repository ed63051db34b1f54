import { mitmdumpWith, startWeir, type Contender } from "../capture/proxies.ts";
import type { Row } from "../capture/rows.ts";

/** A kind of traffic and those that serve it; the first is what the others are compared with. */
export interface RuleRow {
  readonly row: Row;
  readonly contenders: readonly [Contender, ...Contender[]];
}

type Rule = Readonly<Record<string, unknown>>;

/** The word that begins every body of the origin, and one as long. */
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

/** As people have them: mostly by URL, some by host, path, header or method; none holds for the requests of the run. */
const missing: readonly Rule[] = Array.from({ length: 1000 }, (_, number) => {
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
  return rule(`rule ${number}`, conditions[number % conditions.length] ?? all, "both", header);
});

function weirWith(name: string, rules: readonly Rule[], edit?: Contender["edit"]): Contender {
  return {
    name,
    stores: "every exchange, heads and bodies, in SQLite",
    version: () => "",
    ...(edit === undefined ? {} : { edit }),
    start: async (site) => {
      const weir = await startWeir(site);
      for (const body of rules) {
        const answer = await fetch(`${weir.api}/api/rewrites`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify(body),
        });
        if (answer.status !== 201) throw new Error(`POST /rewrites: ${answer.status} ${await answer.text()}`);
      }
      return weir;
    },
  };
}

const kept = { scheme: "https", isNewConnectionEach: false, targets: {} } as const;
const bodyContenders: readonly [Contender, ...Contender[]] = [
  weirWith("no rules", []),
  weirWith("word", [bodyRule], EDIT),
  weirWith("pattern", [patternRule], EDIT),
  mitmdumpWith("mitmdump", ["--modify-body", `@~s@${EDIT.from}@${EDIT.to}`], EDIT),
];

export const RULE_ROWS: readonly RuleRow[] = [
  {
    row: {
      ...kept,
      name: "heads",
      title: "2 KB answers: 1,000 rules that do not match, header rewrite",
      bodyBytes: 2048,
    },
    contenders: [
      weirWith("no rules", []),
      weirWith("1,000 rules", missing),
      weirWith("header", [headerRule]),
      mitmdumpWith("mitmdump", ["--modify-headers", "@~q@X-Test@1", "--modify-headers", "@~s@X-Test@1"]),
    ],
  },
  {
    row: { ...kept, name: "body-10k", title: "10 KB answers, a word in their body replaced", bodyBytes: 10_240 },
    contenders: bodyContenders,
  },
  {
    row: { ...kept, name: "body-1m", title: "1 MB answers, a word in their body replaced", bodyBytes: 1_048_576 },
    contenders: bodyContenders,
  },
];
