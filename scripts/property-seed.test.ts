import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { propertySeed } from "./property-seed.ts";

const PRELOAD = fileURLToPath(new URL("property-seed.ts", import.meta.url));
const DRAW = `
  import fc from "fast-check";
  const drawn = [];
  fc.assert(fc.property(fc.nat(), (number) => void drawn.push(number)));
  console.log(drawn.join());
`;

function drawnWith(seed: string | undefined): string {
  const environment = { ...process.env };
  delete environment["PROPERTY_SEED"];
  if (seed !== undefined) environment["PROPERTY_SEED"] = seed;
  const args = ["--disable-warning=ExperimentalWarning", `--import=${PRELOAD}`, "--input-type=module", "--eval", DRAW];
  return execFileSync(process.execPath, args, {
    env: environment,
    encoding: "utf8",
    cwd: fileURLToPath(new URL("..", import.meta.url)),
  });
}

test("property tests draw the same values in each run, and others with another seed", () => {
  const first = drawnWith(undefined);
  assert.equal(drawnWith(undefined), first);
  assert.notEqual(drawnWith("7"), first);
  assert.equal(drawnWith("7"), drawnWith("7"));
  assert.notEqual(drawnWith("random"), drawnWith("random"));
});

test("a seed that is neither a number nor random is refused with the variable's name", () => {
  assert.throws(() => propertySeed("dice"), /PROPERTY_SEED is a whole number or "random", not "dice"/);
});
