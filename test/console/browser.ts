/**
 * A real browser for the console's tests: Chromium or Chrome on the path, driven by playwright-core. In CI the
 * set-up installs one; a missing browser is a failure there, and elsewhere the tests are skipped and say so.
 */
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { type Browser, type BrowserContext, chromium, type Locator, type Page } from "playwright-core";
import { expect } from "vitest";
import { findBrowser } from "./find-programs.js";

export const BROWSER = findBrowser();
if (BROWSER === undefined) {
  const words = "there is no Chromium or Chrome on the path: the console's browser tests need one";
  if (process.env.CI === "true") throw new Error(words);
  console.warn(`skipped: ${words}`);
}

const FLAGS = [
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export async function openBrowser(): Promise<Browser> {
  return await chromium.launch({
    executablePath: BROWSER ?? "chromium",
    args: process.getuid?.() === 0 ? ["--no-sandbox", ...FLAGS] : FLAGS,
  });
}

/** A page that remembers everything that must not happen. */
export interface WatchedPage {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Requests beyond the server, dialogs, violations of the policy, errors of the page. */
  readonly wrong: string[];
}

export interface PageOptions {
  readonly theme?: "light" | "dark";
  readonly width?: number;
  readonly height?: number;
}

export async function openPage(
  browser: Browser,
  origin: string,
  options: PageOptions = {},
): Promise<WatchedPage> {
  const { theme = "light", width = 1440, height = 900 } = options;
  const context = await browser.newContext({
    viewport: { width, height },
    colorScheme: theme,
    reducedMotion: "reduce",
  });
  const page = await context.newPage();
  page.setDefaultTimeout(15_000);
  const wrong: string[] = [];
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(`${origin}/`) && !url.startsWith("blob:")) wrong.push(`request to ${url}`);
  });
  page.on("dialog", (dialog) => {
    wrong.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("pageerror", (error) => wrong.push(`error: ${error.message}`));
  page.on("console", (message) => {
    if (/content security policy|trusted ?types/i.test(message.text())) wrong.push(message.text());
  });
  return { page, context, wrong };
}

/** Types into the field that the page has focused by itself. */
export async function typeInto(field: Locator, text: string): Promise<void> {
  await field.and(field.page().locator(":focus")).waitFor();
  await field.pressSequentially(text);
}

/** A script that makes the page act as a principal, in development mode. */
export function actAs(name: string): string {
  return `sessionStorage.setItem("mailroom.identity:/console/", ${JSON.stringify(name)})`;
}

const axePath = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
let axeSource: string | undefined;

interface AxeResult {
  readonly violations: readonly {
    readonly id: string;
    readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[];
  }[];
}

/** No finding of axe, by the rules of WCAG 2.2 AA. */
export async function expectAccessible(page: Page, where: string): Promise<void> {
  axeSource ??= await readFile(axePath, "utf8");
  await page.evaluate(axeSource);
  const result = await page.evaluate<AxeResult>(
    `axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"], resultTypes: ["violations"] })`,
  );
  const found = result.violations.flatMap(({ id, nodes }) =>
    nodes
      .slice(0, 3)
      .map(({ html, failureSummary }) => `${where}: ${id}: ${html.slice(0, 160)} ${failureSummary ?? ""}`),
  );
  expect(found).toEqual([]);
}
