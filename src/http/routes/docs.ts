/** The OpenAPI document, for programs and as a page. */

import type { ServerFacts } from "../../extension/index.js";
import {
  type DescribedRoute,
  definePublicRoute,
  NO_INPUT,
  PUBLIC,
  type Route,
} from "../../extension/index.js";
import { type DocsPage, docsPage } from "../docs-page.js";
import { type OpenApiDocument, openApiDocument } from "../openapi.js";

export function docsRoutes({ version, publicUrl }: ServerFacts, others: readonly DescribedRoute[]): Route[] {
  const json = definePublicRoute({
    ...NO_INPUT,
    id: "getOpenApi",
    method: "GET",
    path: "/openapi.json",
    tag: "server",
    summary: "Return the OpenAPI document",
    access: PUBLIC,
    answers: { 200: { description: "OpenAPI 3.1.", contentType: "application/json" } },
    handle: async () => ({ status: 200, body: document() }),
  });
  const html = definePublicRoute({
    ...NO_INPUT,
    id: "getDocs",
    method: "GET",
    path: "/docs",
    tag: "server",
    summary: "Show the OpenAPI document as a page",
    access: PUBLIC,
    answers: { 200: { description: "A page.", contentType: "text/html" } },
    handle: async () => {
      page ??= docsPage(document());
      return {
        status: 200,
        body: page.html,
        headers: {
          "content-type": "text/html; charset=utf-8",
          "content-security-policy": `default-src 'none'; style-src '${page.styleHash}'; frame-ancestors 'none'`,
        },
      };
    },
  });
  // Built on the first request, so that startup stays fast.
  let built: OpenApiDocument | undefined;
  const document = (): OpenApiDocument => {
    built ??= openApiDocument([...others, json, html], {
      version,
      ...(publicUrl !== undefined && { url: publicUrl }),
    });
    return built;
  };
  let page: DocsPage | undefined;
  return [json, html];
}
