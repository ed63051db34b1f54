/* oxlint-disable typescript/no-unsafe-argument, typescript/no-unsafe-assignment -- plain JavaScript of the page */
/* Runs inside the measured page; `ui.bench.ts` calls it by name. */
globalThis.measure = {
  /** Milliseconds since navigation, and since the rows were asked for, after the next frame was drawn. */
  painted: () =>
    new Promise((resolve) => {
      requestAnimationFrame(() =>
        requestAnimationFrame(() => {
          const rows = performance.getEntriesByType("resource").find((entry) => entry.name.includes("/traffic/rows"));
          const now = performance.now();
          resolve({ sinceNavigationMs: now, sinceRequestMs: now - (rows?.startTime ?? 0) });
        }),
      );
    }),

  /** Scrolls by a distance per frame for a time and tells how the frames were. */
  scroll: (pixelsPerFrame, durationMs) =>
    new Promise((resolve) => {
      const grid = document.querySelector("[role=grid]");
      const gaps = [];
      const start = performance.now();
      let last = start;
      const frame = (now) => {
        gaps.push(now - last);
        last = now;
        grid.scrollTop += pixelsPerFrame;
        if (now - start < durationMs) requestAnimationFrame(frame);
        else {
          const settled = gaps.slice(2);
          resolve({ fps: (gaps.length / (now - start)) * 1000, longestMs: Math.max(...settled) });
        }
      };
      requestAnimationFrame(frame);
    }),

  /** Goes to a filter as a link would, and tells when its first rows are drawn. */
  filter: (q) =>
    new Promise((resolve) => {
      const start = performance.now();
      const before = performance.getEntriesByType("resource").length;
      history.pushState(null, "", `/traffic?q=${encodeURIComponent(q)}`);
      dispatchEvent(new PopStateEvent("popstate"));
      const look = () => {
        const fetched = performance.getEntriesByType("resource").slice(before);
        const answered = fetched.some((entry) => entry.name.includes("/traffic/rows"));
        const grid = document.querySelector("[role=grid]");
        if (answered && grid.getAttribute("aria-busy") === "false") {
          requestAnimationFrame(() => resolve(performance.now() - start));
        } else requestAnimationFrame(look);
      };
      requestAnimationFrame(look);
    }),
};
