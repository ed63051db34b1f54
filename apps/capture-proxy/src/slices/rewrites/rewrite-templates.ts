import type { RewriteAction, RewriteTemplate } from "@headworks/capture-contract";

const set = (name: string, value: string): RewriteAction => ({ type: "set_header", name, value });
const remove = (name: string): RewriteAction => ({ type: "remove_header", name });

/** Rules to begin with; each needs a name and a condition. */
export const REWRITE_TEMPLATES: readonly RewriteTemplate[] = [
  {
    name: "Add CORS Headers",
    description: "Lets pages of any origin use it: preflights are answered, requests with cookies included",
    template: { direction: "both", rewrites: [{ type: "allow_cors" }] },
  },
  {
    name: "HTTP to HTTPS",
    description: "Sends plain requests encrypted",
    template: {
      direction: "request",
      rewrites: [{ type: "url_rewrite", pattern: "^http://", replacement: "https://" }],
    },
  },
  {
    name: "Add Auth Header",
    description: "Sends a token of your own with every request",
    template: { direction: "request", rewrites: [set("Authorization", "Bearer YOUR_TOKEN")] },
  },
  {
    name: "Remove Security Headers",
    description: "Removes what keeps a page from being framed or from loading other scripts",
    template: { direction: "response", rewrites: [remove("Content-Security-Policy"), remove("X-Frame-Options")] },
  },
  {
    name: "No Caching",
    description: "Makes every request reach the origin and every answer be forgotten",
    template: {
      direction: "both",
      rewrites: [
        remove("If-Modified-Since"),
        remove("If-None-Match"),
        remove("ETag"),
        remove("Last-Modified"),
        remove("Expires"),
        set("Cache-Control", "no-cache, no-store, must-revalidate"),
        set("Pragma", "no-cache"),
        set("Expires", "0"),
      ],
    },
  },
  {
    name: "Block Cookies",
    description: "Removes cookies both ways",
    template: { direction: "both", rewrites: [remove("Cookie"), remove("Set-Cookie")] },
  },
];
