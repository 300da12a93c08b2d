import { expect, it } from "vitest";
import { buildRequest, createAgentAddress } from "../mail/index.js";
import { Traffic } from "./traffic.js";

const traffic = () => new Traffic({ now: () => 1_000_000, after: () => () => {} });

it("reports that failures were left out, also if no minute had too many", () => {
  let now = 0;
  const counted = new Traffic({ now: () => now, after: () => () => {} });
  for (let minute = 0; minute < 2; minute++) {
    now = minute * 60_000;
    for (let index = 0; index < 150; index++) {
      const message = `failure ${minute}.${index}`;
      counted.count(
        { t: "turn_failed", at: now, agent: "a", took: [], code: "agent_error", message },
        "k",
        1,
      );
    }
  }
  const { failures, partial } = counted.read(3_600_000, new Map());
  expect(failures).toHaveLength(200);
  expect(partial).toBe(true);
});

it("counts failed deliveries after many messages whose delivery was never settled", () => {
  const counted = traffic();
  const send = (id: string) => {
    const message = buildRequest({
      id,
      timestamp: "2026-03-02T08:15:30.120Z",
      taskId: "t",
      sender: createAgentAddress("boss"),
      recipient: createAgentAddress("x@north"),
      subject: "s",
      body: "b",
    });
    counted.count({ t: "sent", at: 1, message, to: [], remote: ["north"] }, "k", 1);
  };
  for (let index = 0; index < 2_500; index++) send(`lost-${index}`);
  send("last");
  counted.count({ t: "carried", at: 1, message: "last", swarm: "north", ok: false, reason: "cut" }, "k", 2);
  expect(counted.read(3_600_000, new Map()).edges).toMatchObject([
    { to: "x@north", messages: 2_501, failed: 1 },
  ]);
});
