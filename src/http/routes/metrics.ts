import type { Door } from "../door.js";
import { definePublicRoute, NOTHING, OUR_ADMINS, PUBLIC, type Route } from "../route.js";

export function metricsRoutes(door: Door): Route[] {
  const { metrics = door.options.dev === true ? "public" : "admin" } = door.options;
  if (metrics === false) return [];
  return [
    definePublicRoute({
      ...NOTHING,
      id: "getMetrics",
      method: "GET",
      path: "/metrics",
      tag: "administration",
      summary: "Figures for Prometheus",
      access: metrics === "public" ? PUBLIC : OUR_ADMINS,
      answers: { 200: { description: "Prometheus' text format.", contentType: "text/plain" } },
      async handle() {
        return {
          status: 200,
          body: await door.metrics.text(),
          headers: { "content-type": door.metrics.contentType },
        };
      },
    }),
  ];
}
