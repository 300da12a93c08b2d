/** GitHub events as notifications to a swarm. */
import { createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import { notificationFor, readNotification } from "../../src/doors/mesh/github.js";
import { alice, bob, forEachTest, mesh, operatorOf } from "./harness.js";

forEachTest();

const issue = { number: 7, title: "It is broken", html_url: "https://github.com/acme/shop/issues/7" };
const repository = { full_name: "acme/shop" };
const opened = { action: "opened", repository, issue };

describe("GitHub", () => {
  it.each([
    ["issues", opened, "issue_created", "github_issue"],
    ["issues", { ...opened, action: "assigned" }, "issue_assigned", "github_issue"],
    [
      "issue_comment",
      { ...opened, action: "created", comment: { html_url: "https://github.com/acme/shop/issues/7#c" } },
      "comment_added",
      "github_issue",
    ],
    ["pull_request", { action: "opened", repository, pull_request: issue }, "pr_opened", "github_pr"],
    [
      "pull_request",
      { action: "review_requested", repository, pull_request: issue },
      "review_requested",
      "github_pr",
    ],
  ])(
    "[ASP-GHUB-01] %s becomes a notification with metadata and a matching reference",
    (event, value, action, type) => {
      const { extras } = notificationFor(event, value) ?? {};
      expect(extras).toMatchObject({
        metadata: {
          github_url: expect.stringContaining("https://github.com/acme/shop/issues/7"),
          action,
          event: `github:${action}`,
        },
        references: [{ type, repo: "acme/shop", number: 7 }],
      });
      // Each of them alone is understood on receipt.
      const read = (fields: object) => readNotification({ type: "notification", ...fields });
      expect(read({ metadata: { action } })).toEqual({ action });
      expect(read({ metadata: { event: `github:${action}` } })).toEqual({ action });
      expect(read({ references: extras?.references })?.reference).toMatchObject({ type });
      expect(read({ metadata: extras?.metadata })?.url).toContain("github.com");
      expect(read({})).toBeUndefined();
    },
  );

  it("[ASP-GHUB-02, MESH-M-15] only events with GitHub's signature are accepted, once each, and other events are ignored", async () => {
    const swarm = await mesh.swarm(alice, bob);
    const operator = operatorOf(alice, { github: { secret: "hook", swarm } });
    const post = async (event: string, secret = "hook") => {
      const body = JSON.stringify(opened);
      const signature = `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`;
      const headers = { "x-github-event": event, "x-hub-signature-256": signature };
      return (await operator("POST", "/mesh/github", body, headers)).status;
    };
    expect(await post("issues", "wrong")).toBe(403);
    expect(await post("star")).toBe(204);
    expect(await post("issues")).toBe(202);
    await mesh.settle();
    // Repeated by GitHub, or by an attacker that has recorded it.
    expect(await post("issues")).toBe(202);
    await mesh.settle();
    const told = (await bob.store.mesh.inbox({ limit: 9 })).filter(({ type }) => type === "notification");
    expect(told).toMatchObject([{ content: "New issue: acme/shop#7 It is broken" }]);
  });
});
