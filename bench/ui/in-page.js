/* oxlint-disable typescript/no-unsafe-argument, typescript/no-unsafe-assignment, typescript/no-unsafe-call -- plain JavaScript of the page */
/* oxlint-disable typescript/no-unsafe-member-access, typescript/no-unsafe-return -- the same */
/* Runs inside the measured page; `ui.bench.ts` calls it by name. */
globalThis.measure = {
  /** Milliseconds since navigation, and since the request of the rows, after the next frame was drawn. */
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

  /** Scrolls by a distance per frame for a time and returns frame statistics. */
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

  /** Opens a filter like a link, and returns when its first rows are drawn. */
  filter: (q) =>
    new Promise((resolve) => {
      const start = performance.now();
      const before = performance.getEntriesByType("resource").length;
      history.pushState(null, "", `/traffic?q=${encodeURIComponent(q)}`);
      dispatchEvent(new PopStateEvent("popstate"));
      const look = () => {
        const fetched = performance.getEntriesByType("resource").slice(before);
        const responded = fetched.some((entry) => entry.name.includes("/traffic/rows"));
        const grid = document.querySelector("[role=grid]");
        if (responded && grid.getAttribute("aria-busy") === "false") {
          requestAnimationFrame(() => resolve(performance.now() - start));
        } else requestAnimationFrame(look);
      };
      requestAnimationFrame(look);
    }),

  /** Clicks the element of `selector` with `label`, and returns when the response's body shows `text`. */
  bodyShown: (selector, label, text) =>
    new Promise((resolve) => {
      const target = [...document.querySelectorAll(selector)].find((each) => each.textContent.includes(label));
      const start = performance.now();
      for (const type of ["mousedown", "mouseup", "click"]) {
        (target.firstElementChild ?? target).dispatchEvent(new MouseEvent(type, { bubbles: true, cancelable: true }));
      }
      const look = () => {
        const body = document.querySelector("[aria-label='Body of the response']");
        if (body === null || !body.textContent.includes(text)) requestAnimationFrame(look);
        // The next frame is the first to display it.
        else requestAnimationFrame(() => resolve(performance.now() - start));
      };
      requestAnimationFrame(look);
    }),

  /** Milliseconds until the visible body is fully loaded. */
  wholeBody: () =>
    new Promise((resolve) => {
      const start = performance.now();
      const look = () => {
        if (document.querySelector("[aria-label='Loading the body']")) requestAnimationFrame(look);
        else resolve(performance.now() - start);
      };
      requestAnimationFrame(look);
    }),

  /** Starts recording long tasks of the main thread. */
  watchTasks: () => {
    globalThis.tasks = new PerformanceObserver(() => {});
    globalThis.tasks.observe({ type: "longtask" });
  },

  /** The longest task in milliseconds; 0 if all were under 50 ms. */
  longestTask: () => Math.max(0, ...globalThis.tasks.takeRecords().map((task) => task.duration)),
};
