import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Condition, CONDITION_LIMITS, conditionShorthand } from "@headworks/capture-contract";
import { compileValueValidator } from "@headworks/contract-kit/server";
import { conditions } from "../test/random-conditions.ts";
import { compileCondition, parseCondition, parseRuleCondition } from "./index.ts";
import { FIELDS_OF_KIND, MAX_CONDITION_DEPTH, MAX_PARTS } from "./parse.ts";

/** The condition, or its issues as `path: message`. */
function read(input: unknown, at = ""): unknown {
  const result = parseCondition(input, at);
  return result.ok ? result.condition : result.issues.map(({ path, message }) => `${path}: ${message}`);
}

test("parsing is idempotent and yields canonical names", () => {
  fc.assert(
    fc.property(conditions, (condition) => {
      const once = read(condition);
      assert.ok(!Array.isArray(once), JSON.stringify(once));
      assert.deepEqual(read(once), once);
      assert.doesNotThrow(() => compileCondition(once as Condition));
      assert.doesNotMatch(JSON.stringify(once), /"graphql_/);
    }),
  );
});

test("null means the same as an absent member where members are optional", () => {
  assert.deepEqual(read({ type: "header", name: "a", value: null, side: null }), { type: "header", name: "a" });
  assert.deepEqual(read({ type: "query_param", name: "a", value: null }), { type: "query_param", name: "a" });
  assert.deepEqual(read({ type: "json_path", path: "$.a", value: null }), {
    type: "json_path",
    path: "$.a",
    value: null,
  });
  assert.deepEqual(read({ type: "host", pattern: null }), ["/pattern: must be a text"]);
});

test("all issues are reported with their path", () => {
  const deep = (depth: number): unknown =>
    depth === 1 ? { type: "all" } : { type: "not", condition: deep(depth - 1) };
  const cases: readonly (readonly [input: unknown, expected: readonly string[]])[] = [
    [null, [": must be an object with a type"]],
    [[], [": must be an object with a type"]],
    ["all", [": must be an object with a type"]],
    [{}, ["/type: is required and must be a text"]],
    [{ type: 1 }, ["/type: is required and must be a text"]],
    [{ type: "all", extra: 1, "a/b~c": 2 }, ["/extra: unknown property", "/a~1b~0c: unknown property"]],
    [JSON.parse('{"type":"all","__proto__":1}'), ["/__proto__: unknown property"]],
    [{ type: "host" }, ["/pattern: is required"]],
    [{ type: "host", pattern: 1 }, ["/pattern: must be a text"]],
    [{ type: "host", pattern: " " }, ["/pattern: must not be blank"]],
    [{ type: "host", pattern: "a".repeat(1001) }, ["/pattern: may have at most 1000 characters"]],
    [
      { type: "url_pattern", pattern: "/users/(\\d+" },
      ["/pattern: the group is not closed: `)` is missing (at character 8)"],
    ],
    [
      { type: "body_pattern", pattern: "(?i)a(?=b)" },
      ["/pattern: look-ahead is not supported: it cannot run in linear time (at character 6)"],
    ],
    [
      { type: "path_pattern", pattern: "(a)\\1" },
      ["/pattern: backreferences are not supported: they cannot run in linear time (at character 4)"],
    ],
    [{ type: "header", name: "a b" }, ["/name: is not a header field name"]],
    [{ type: "header", name: "\t" }, ["/name: must not be blank"]],
    [{ type: "header", name: "a", side: "answer" }, ["/side: must be one of request, response"]],
    [{ type: "header", name: "a", value: 1 }, ["/value: must be a text"]],
    [{ type: "port", port: 0 }, ["/port: must be an integer from 1 to 65535"]],
    [{ type: "port", port: "80" }, ["/port: must be an integer from 1 to 65535"]],
    [{ type: "path_segment", index: -1, value: "a" }, ["/index: must be an integer from 0 to 1000"]],
    [{ type: "json_path", path: "a.b" }, ["/path: a JSON path begins with `$` (at character 1)"]],
    [
      { type: "json_path", path: "$.a[?(@.b)]" },
      ["/path: expected `.name`, `['name']`, `[0]`, `[*]` or `..name` in the JSON path (at character 4)"],
    ],
    [
      { type: "graphql_type", operation_type: "fetch" },
      ["/operation_type: must be one of query, mutation, subscription"],
    ],
    [{ type: "graphql_variable", name: "a" }, ["/value: is required"]],
    [{ type: "status_code", range: "6" }, ["/range: must be such as 404, 5xx, 400-499 or 404,5xx"]],
    [{ type: "status_code", range: "500-400" }, ["/range: must be such as 404, 5xx, 400-499 or 404,5xx"]],
    [{ type: "and" }, ["/conditions: must be a list of conditions"]],
    [{ type: "or", conditions: [] }, ["/conditions: must have at least one condition"]],
    [{ type: "not" }, ["/condition: is required"]],
    [
      { type: "and", conditions: [{ type: "all" }, { type: "not", condition: { type: "hosts" } }, 5] },
      [
        `/conditions/1/condition/type: must be one of ${[...FIELDS_OF_KIND.keys()].join(", ")}`,
        "/conditions/2: must be an object with a type",
      ],
    ],
    [deep(MAX_CONDITION_DEPTH + 1), [`${"/condition".repeat(32)}: conditions may nest at most 32 deep`]],
  ];
  for (const [input, expected] of cases) assert.deepEqual(read(input), expected, JSON.stringify(input));
  assert.deepEqual(read(deep(MAX_CONDITION_DEPTH)), deep(MAX_CONDITION_DEPTH));
  assert.deepEqual(read({ type: "constructor" }), [`/type: must be one of ${[...FIELDS_OF_KIND.keys()].join(", ")}`]);
});

test("the number of parts is bounded over the whole condition", () => {
  const parts = (count: number) => ({ type: "or", conditions: Array.from({ length: count }, () => ({ type: "all" })) });
  assert.ok(parseCondition(parts(MAX_PARTS - 1)).ok);
  assert.deepEqual(read(parts(MAX_PARTS)), ["/conditions/999: a condition may have at most 1000 parts"]);
  const nested = { type: "and", conditions: Array.from({ length: 100 }, () => parts(20)) };
  assert.deepEqual((read(nested) as string[]).length, 1);
});

test("excessive nesting is rejected in every member", () => {
  let condition: unknown = { type: "all" };
  let value: unknown = 1;
  for (let depth = 0; depth < 200_000; depth += 1) {
    condition = { type: "not", condition };
    value = [value];
  }
  assert.equal((read(condition) as string[]).length, 1);
  assert.deepEqual(read({ type: "json_path", path: "$", value }), ["/value: may nest at most 64 deep"]);
  assert.match(JSON.stringify(compileValueValidator(Condition, "condition")(condition)), /is nested too deeply/);
});

test("the shorthand of command lines becomes a condition, and its issues keep their names", () => {
  assert.deepEqual(read({ url_pattern: "*/api/*" }), { type: "url_pattern", pattern: "*/api/*" });
  assert.deepEqual(read({ url_pattern: "/a", method: "GET", host_pattern: "*.test", path_pattern: "/a/*" }), {
    type: "and",
    conditions: [
      { type: "url_pattern", pattern: "/a" },
      { type: "host", pattern: "*.test" },
      { type: "path_pattern", pattern: "/a/*" },
      { type: "method", method: "GET" },
    ],
  });
  assert.deepEqual(read({ url_pattern: "(", status_code: 1 }, "body"), [
    "body/status_code: unknown property",
    "body/url_pattern: the group is not closed: `)` is missing (at character 1)",
  ]);
});

test("a rule's body has a condition or the shorthand, exactly one of them", () => {
  const rule = (body: object): unknown => {
    const result = parseRuleCondition(body, "body");
    return result.ok ? result.condition : result.issues.map(({ path, message }) => `${path}: ${message}`);
  };
  assert.deepEqual(rule({ name: "a", condition: { type: "all" } }), { type: "all" });
  assert.deepEqual(rule({ name: "a", url_pattern: "/x", status_code: 200 }), { type: "url_pattern", pattern: "/x" });
  assert.deepEqual(rule({ condition: { url_pattern: "/x" } }), { type: "url_pattern", pattern: "/x" });
  assert.deepEqual(rule({ name: "a" }), ["body/condition: is required"]);
  assert.deepEqual(rule({ condition: { type: "port" } }), ["body/condition/port: is required"]);
  assert.deepEqual(rule({ condition: { type: "all" }, method: "GET" }), [
    "body/method: cannot be combined with condition; move it inside",
  ]);
});

test("the contract's schema and the parser know the same kinds with the same members", () => {
  const { oneOf } = Condition as unknown as {
    oneOf: readonly {
      properties: { type: { enum: readonly string[] } };
      required: readonly string[];
    }[];
  };
  const inContract = oneOf.flatMap(({ properties, required }) =>
    properties.type.enum.map((type) => [
      type,
      Object.keys(properties)
        .filter((name) => name !== "type")
        .map((name) => `${name}${required.includes(name) ? "" : "?"}`),
    ]),
  );
  const inParser = [...FIELDS_OF_KIND].map(([type, { fields }]) => [
    type,
    Object.entries(fields).map(([name, field]) => `${name}${field.optional === true ? "?" : ""}`),
  ]);
  assert.deepEqual(Object.fromEntries(inParser), Object.fromEntries(inContract));
  assert.deepEqual(CONDITION_LIMITS, {
    depth: MAX_CONDITION_DEPTH,
    parts: MAX_PARTS,
    patternLength: 1000,
    valueLength: 65_536,
  });
  const validate = compileValueValidator(Condition, "");
  fc.assert(
    fc.property(conditions, (condition) => {
      assert.deepEqual(validate(condition), []);
    }),
  );
  const shorthand = parseCondition(Object.fromEntries(Object.keys(conditionShorthand).map((name) => [name, "a"])));
  assert.ok(shorthand.ok && shorthand.condition.type === "and");
  assert.equal(shorthand.condition.conditions.length, Object.keys(conditionShorthand).length);
});

test("parsing any input never throws", () => {
  const odd = fc.oneof(
    fc.jsonValue(),
    fc.record(
      {
        type: fc.constantFrom(...FIELDS_OF_KIND.keys(), "hasOwnProperty"),
        pattern: fc.anything(),
        name: fc.string(),
        value: fc.jsonValue(),
        path: fc.string(),
        conditions: fc.array(fc.jsonValue()),
        condition: fc.jsonValue(),
        range: fc.anything(),
      },
      { requiredKeys: ["type"] },
    ),
  );
  fc.assert(
    fc.property(odd, (input) => {
      const result = parseCondition(input);
      if (result.ok) compileCondition(result.condition);
      else assert.notEqual(result.issues.length, 0);
    }),
  );
});
