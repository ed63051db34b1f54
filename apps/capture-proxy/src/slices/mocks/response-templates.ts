import type { NewMockResponse } from "@headworks/capture-contract";

/** Answers to begin with. */
export const TEMPLATES: {
  name: string;
  description: string;
  template: NewMockResponse & { headers: Record<string, string> };
}[] = [
  {
    name: "JSON Response",
    description: "200 with a JSON body",
    template: {
      status_code: 200,
      headers: { "Content-Type": "application/json" },
      body: '{"success": true, "data": {}}',
    },
  },
  {
    name: "404 Not Found",
    description: "404 with a JSON error",
    template: {
      status_code: 404,
      headers: { "Content-Type": "application/json" },
      body: '{"error": "Not found"}',
    },
  },
  {
    name: "500 Server Error",
    description: "500 with a JSON error",
    template: {
      status_code: 500,
      headers: { "Content-Type": "application/json" },
      body: '{"error": "Internal server error"}',
    },
  },
  {
    name: "Slow Response",
    description: "200 after three seconds",
    template: {
      status_code: 200,
      headers: { "Content-Type": "application/json" },
      body: '{"success": true}',
      delay_ms: 3000,
    },
  },
];
