import assert from "node:assert/strict";
import { test } from "node:test";
import { hasPassed, newViaPseudonym, ourMembers, removeOurMembers, viaMember, viaOf } from "./via-pseudonym.ts";

const ONE = "h0123456789abcdef";
const OTHER = "hfedcba9876543210";

test("a pseudonym is another one for each process, and tells neither product nor machine", () => {
  const names = Array.from({ length: 100 }, newViaPseudonym);
  assert.equal(new Set(names).size, names.length);
  for (const name of names) assert.match(name, /^h[0-9a-f]{16}$/);
});

for (const [what, fields, hasCome] of [
  ["no Via", ["Host", "a"], false],
  ["a stranger's Via", ["Via", "1.1 squid (squid/6.1)"], false],
  ["another one's", ["Via", viaMember(OTHER)], false],
  ["its own", ["via", viaMember(ONE)], true],
  ["its own between others", ["VIA", `1.0 a, 1.1 ${ONE} , 1.1 b`], true],
  ["its own in a later line", ["Via", "1.1 a", "X", "y", "Via", viaMember(ONE)], true],
  ["its own with another version", ["Via", `HTTP/2.0 ${ONE}`], true],
] as const) {
  test(`a request with ${what} ${hasCome ? "was here before" : "is new"}`, () => {
    assert.equal(hasPassed(viaOf(fields), ONE), hasCome);
  });
}

for (const [what, sent, kept] of [
  ["no Via", ["Host", "a"], ["Host", "a"]],
  ["a client's own Via, blanks and all", ["Via", " 1.1  a ,1.0 b"], ["Via", " 1.1  a ,1.0 b"]],
  ["a name that only looks similar", ["Via", "1.1 h0123456789abcde"], ["Via", "1.1 h0123456789abcde"]],
  ["a comment behind such a name", ["Via", `1.1 ${ONE} (x)`], ["Via", `1.1 ${ONE} (x)`]],
  ["one of ours", ["A", "1", "Via", viaMember(ONE), "B", "2"], ["A", "1", "B", "2"]],
  ["several of ours in lines", ["Via", viaMember(ONE), "A", "1", "via", viaMember(OTHER)], ["A", "1"]],
  ["ours behind a client's", ["Via", `1.0 a (x, y), 1.1 ${ONE}`], ["Via", "1.0 a (x, y)"]],
  ["ours before a proxy's", ["Via", `1.1 ${ONE}, 1.1 squid`], ["Via", "1.1 squid"]],
  ["ours between both", ["Via", `1.1 a, 1.1 ${ONE},1.1 ${OTHER}, 1.1 b`], ["Via", "1.1 a, 1.1 b"]],
] as const) {
  test(`an origin sees of ${what} what is not ours`, () => {
    const fields: string[] = [...sent];
    removeOurMembers(fields);
    assert.deepEqual(fields, kept);
  });
}

test("what a tunnel passed is gathered from all lines, strangers left out", () => {
  assert.deepEqual(ourMembers([`1.1 a, 1.1 ${ONE}`, ` 1.1 ${OTHER}`]), [viaMember(ONE), viaMember(OTHER)]);
  assert.deepEqual(ourMembers(["1.1 a"]), []);
});
