import type { MockMiss } from "@headworks/capture-contract";
import type { SyntheticResponse } from "#exchange/phases.ts";

/** The answer to a request that a served session has nothing for. */
export function missPage(miss: MockMiss, isHtml: boolean): SyntheticResponse {
  const text = isHtml ? htmlPage(miss) : textPage(miss);
  const body = Buffer.from(text);
  return {
    status: 502,
    fields: [
      "Content-Type",
      isHtml ? "text/html; charset=utf-8" : "text/plain; charset=utf-8",
      "Content-Length",
      String(body.length),
      "Cache-Control",
      "no-store",
      "X-Weir-Mock-Error",
      "not-recorded",
    ],
    body,
  };
}

function textPage({ method, url, reason, near }: MockMiss): string {
  const lines = [
    `502 ${reason}`,
    "",
    `${method} ${url}`,
    "",
    "A recorded session is served; nothing was sent anywhere.",
  ];
  if (near.length > 0) lines.push("", "Recorded requests that come closest:");
  for (const each of near) {
    lines.push(`- ${each.method} ${each.url} (entry ${each.entry_id})`);
    for (const difference of each.differences) lines.push(`    ${difference}`);
  }
  return `${lines.join("\n")}\n`;
}

function htmlPage({ method, url, reason, near }: MockMiss): string {
  const items = near.map(({ method: nearMethod, url: nearUrl, entry_id: id, differences }) => {
    const details = differences.map((difference) => `<li>${escapeHtml(difference)}</li>`).join("");
    return `<li><code>${escapeHtml(`${nearMethod} ${nearUrl}`)}</code> (entry ${escapeHtml(id)})<ul>${details}</ul></li>`;
  });
  const nearest = near.length === 0 ? "" : `<p>Recorded requests that come closest:</p><ul>${items.join("")}</ul>`;
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Not recorded</title>
<style>:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:10vh auto;padding:0 1.5rem}
h1{font-size:1.25rem}code{font:13px ui-monospace,monospace;overflow-wrap:anywhere}</style></head>
<body><h1>${escapeHtml(reason)}</h1><p><code>${escapeHtml(`${method} ${url}`)}</code></p>
<p>Weir serves a recorded session; nothing was sent anywhere.</p>${nearest}</body></html>
`;
}

function escapeHtml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
