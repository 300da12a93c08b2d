import { ADMINS, definePublicRoute, NO_INPUT, PUBLIC, type Route } from "../../extension/index.js";
import type { HttpContext } from "../context.js";

export function metricsRoutes(context: HttpContext): Route[] {
  const { server, metrics = server.dev ? "public" : "admin" } = context.options;
  if (metrics === false) return [];
  return [
    definePublicRoute({
      ...NO_INPUT,
      id: "getMetrics",
      method: "GET",
      path: "/metrics",
      tag: "administration",
      summary: "Return metrics for Prometheus",
      access: metrics === "public" ? PUBLIC : ADMINS,
      answers: { 200: { description: "Metrics in Prometheus' text format.", contentType: "text/plain" } },
      async handle() {
        const { text, contentType } = await context.metrics.text();
        return { status: 200, body: text, headers: { "content-type": contentType } };
      },
    }),
  ];
}
