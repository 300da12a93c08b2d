import { describe, expect, it } from "vitest";
import { buildBroadcast, buildComplete, buildInterrupt, buildRequest, buildResponse } from "./build.js";
import type { AddressType, MAILMessage, MessageType } from "./message.js";
import { MAIL_MESSAGE_TYPES } from "./names.js";
import { type Tier, tierOf } from "./priority.js";

describe("MAIL: Priority and Ordering", () => {
  const others = (tier: Tier) => MAIL_MESSAGE_TYPES.map((type): [MessageType, Tier] => [type, tier]);

  it.each(others(1))("system %s is tier %i", (type, tier) => {
    expect(tierOf(message(type, "system"))).toBe(tier);
  });
  it.each(others(2))("user and admin %s is tier %i", (type, tier) => {
    expect(tierOf(message(type, "user"))).toBe(tier);
    expect(tierOf(message(type, "admin"))).toBe(tier);
  });
  it.each<[MessageType, Tier]>([
    ["interrupt", 3],
    ["broadcast_complete", 3],
    ["broadcast", 4],
    ["request", 5],
    ["response", 5],
  ])("agent %s is tier %i", (type, tier) => {
    expect(tierOf(message(type, "agent"))).toBe(tier);
  });
});

function message(type: MessageType, sender: AddressType): MAILMessage {
  const recipient = { address_type: "agent", address: "librarian" } as const;
  const parts = {
    id: "b0a2d6cf-6f39-4d76-8a30-7d9c0e0ffb44",
    timestamp: "2026-03-02T08:15:30.120Z",
    taskId: "t",
    sender: { address_type: sender, address: "x" },
    subject: "",
    body: "",
  };
  switch (type) {
    case "request":
      return buildRequest({ ...parts, recipient });
    case "response":
      return buildResponse({ ...parts, recipient, requestId: "r" });
    case "broadcast":
      return buildBroadcast(parts);
    case "interrupt":
      return buildInterrupt({ ...parts, recipients: [recipient] });
    case "broadcast_complete":
      return buildComplete({ ...parts, swarm: "books", finishMessage: "" });
  }
}
