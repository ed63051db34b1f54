import { one } from "./script.ts";
import type { Group } from "./script.ts";

const PATHS = [
  "/",
  "/a%2Fb%2fc",
  "/%2e%2e/%2E/x",
  "/%00%01%7f%ff",
  "/%20+%2B",
  "/%7e~%7E",
  "/%E4%BD%A0%e5%a5%bd",
  "/%zz%%2",
  "//double//slash//",
  "/./a/../b/.",
  "/../../etc/passwd",
  "/a;v=1;w=2/b;x",
  "/a?",
  "/a??b?c",
  "/?a=b&&=c&d=&d&=",
  "/?a=%&b=%2",
  "/a?b/../c",
  "/a:b@c:d",
  "//evil.example/x",
  "/http://evil.example/",
  "/?u=http://user:pass@host/#",
  "/a'b(c)*!$,",
  '/a"b<c>d',
  "/a\\b^c`d{e|f}g",
  "/UPPER/lower",
  "/.",
  "/..",
  "/...",
  "/a%0d%0aX-Injected:%20yes",
  `/${"p".repeat(8000)}`,
  `/?${"q".repeat(30_000)}`,
  "/a[b]c",
  "/~user/*",
].map((path) => (path.includes("#") ? path.slice(0, -1) : path));

/** Targets that must reach the origin byte for byte. */
export const targetGroups: readonly Group[] = [
  {
    name: "targets",
    cases: [
      ...PATHS.map((path) => one(`path ${path.slice(0, 40)}`, { path })),
      one("OPTIONS with a path", { method: "OPTIONS", path: "/x" }),
    ],
  },
];
