import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

/** A small repository in a temporary directory, removed when the `using` scope ends. */
export interface FixtureTree extends Disposable {
  readonly root: string;
  /** Adds or replaces files. */
  readonly write: (files: Readonly<Record<string, string>>) => void;
}

/** Creates a tree from paths and contents. */
export function fixtureTree(files: Readonly<Record<string, string>>): FixtureTree {
  const root = mkdtempSync(join(tmpdir(), "headworks-fixture-"));
  const write = (more: Readonly<Record<string, string>>): void => {
    for (const [path, content] of Object.entries(more)) {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), content);
    }
  };
  write(files);
  return { root, write, [Symbol.dispose]: () => rmSync(root, { recursive: true, force: true }) };
}
