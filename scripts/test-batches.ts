import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

export interface TestBatch {
  /** Named after the folder of its files: `apps-gateway-src-3`. */
  readonly name: string;
  readonly files: readonly string[];
}

/** Small enough that all processes of the runner stay busy to the end. */
const MAX_FILES = 12;

/** Process-wide state: hooks outside of tests, clocks, settings, measurements of memory and time. */
const CONCERNS_THE_PROCESS = [
  /import \{[^}]*\b(?:before|after|beforeEach|afterEach|mock)\b[^}]*\} from "node:test"/u,
  /\bprocess\.(?:on|once|exitCode|chdir|umask|memoryUsage|cpuUsage|resourceUsage|getActiveResourcesInfo)\b/u,
  /\bprocess\.env(?:\[[^\]]*\]|\.\w+) =[^=]|\bdelete process\.env/u,
  /\bprocess\.std(?:out|err)\.write = /u,
  // V8 allocates objects in the old generation if earlier ones of that site lived long, which depends on other tests, too.
  /\b(?:oldSpace|heap)GrowthBytes\b/u,
  /\bglobalThis\b|\bgc\(|\bmonitorEventLoopDelay\b|\bsetFlagsFromString\b|\bsetDefaultResultOrder\b|\bsetServers\b/u,
];

export function canShareProcess(file: string, text: string): boolean {
  return !file.startsWith("e2e/") && !CONCERNS_THE_PROCESS.some((pattern) => pattern.test(text));
}

/**
 * Batches the test files of a folder, because each process loads its imports again. The order of the files is kept.
 */
export function batchTests(files: readonly string[], textOf: (file: string) => string): TestBatch[] {
  const batches: { name: string; files: string[] }[] = [];
  const open = new Map<string, { name: string; files: string[] }>();
  const counts = new Map<string, number>();
  for (const file of files) {
    const folder = file.startsWith("packages/") ? "packages" : file.split("/").slice(0, -1).slice(0, 3).join("-");
    if (!canShareProcess(file, textOf(file))) {
      batches.push({ name: file, files: [file] });
      continue;
    }
    let batch = open.get(folder);
    if (batch === undefined || batch.files.length === MAX_FILES) {
      const count = (counts.get(folder) ?? 0) + 1;
      counts.set(folder, count);
      batch = { name: `${folder}-${count}`, files: [] };
      open.set(folder, batch);
      batches.push(batch);
    }
    batch.files.push(file);
  }
  return batches;
}

/**
 * The same batches, with browser tests spread evenly among the others. A browser keeps more than one core busy, while tests of
 * the services mostly wait: two browsers side by side would slow each other down.
 */
export function spreadBrowsers(batches: readonly TestBatch[]): TestBatch[] {
  const browsers = batches.filter(({ name }) => name.startsWith("e2e/ui-"));
  const others = batches.filter((batch) => !browsers.includes(batch));
  const order: TestBatch[] = [];
  let placed = 0;
  for (const [at, other] of others.entries()) {
    const due = Math.floor(((at + 1) * browsers.length) / others.length);
    order.push(other, ...browsers.slice(placed, due));
    placed = due;
  }
  return others.length === 0 ? browsers : order;
}

/**
 * The file that the runner starts: the only file of a batch, or a module in `directory` that imports its files.
 */
export function writeBatches(root: string, directory: string, batches: readonly TestBatch[]): string[] {
  return batches.map(({ name, files }) => {
    const [first] = files;
    if (files.length === 1 && first !== undefined) return first;
    const path = join(directory, `${name}.mjs`);
    const imports = files.map((file) => `import ${JSON.stringify(pathToFileURL(join(root, file)).href)};\n`);
    writeFileSync(path, imports.join(""));
    return path;
  });
}
