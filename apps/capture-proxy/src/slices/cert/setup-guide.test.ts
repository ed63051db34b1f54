import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { platformGuides } from "./setup-guide.ts";

const facts = { proxyUrl: "http://127.0.0.1:8888", deviceHost: "192.168.1.2", devicePort: 8888 };

test("a path with spaces, quotes and dollars stays one word for a shell", () => {
  for (const caPath of [
    "/home/u/My Data/ca.pem",
    "/home/o'brien/$HOME/`id`/ca.pem",
    "/plain/ca.pem",
    '/a\\b"c/ca.pem',
  ]) {
    for (const { id, command } of platformGuides({ ...facts, caPath })) {
      if (command === undefined || id === "windows") continue;
      const separators = command.replaceAll("&&", ";").replaceAll("sudo ", "");
      const words = execFileSync(
        "sh",
        ["-c", `set -f; for word in ${separators.split(";").join(" ")}; do printf '%s\\n' "$word"; done`],
        { encoding: "utf8" },
      );
      assert.ok(
        words.split("\n").some((word) => word === caPath || word.endsWith(`=${caPath}`)),
        `${id}: ${command}`,
      );
    }
  }
});

test("every platform has a name of its own and something to do", () => {
  const guides = platformGuides({ ...facts, caPath: "/ca.pem" });
  assert.equal(new Set(guides.map(({ id }) => id)).size, guides.length);
  for (const { name, steps } of guides) {
    assert.ok(name.length > 0);
    assert.ok(steps.length > 0);
  }
});
