import pico from "picocolors";
import { describe, expect, it } from "vitest";
import type { TaskSummary } from "../client/index.js";
import { taskTable } from "./tables.js";

const summary = (task_id: string, title: string): TaskSummary => ({
  task_id,
  key: "01900000-0000-7000-8000-000000000000",
  task_owner: "user:ann@desk",
  status: "completed",
  title,
  start_time: "2026-01-02T03:04:05.000Z",
  updated_time: "2026-01-02T03:04:05.000Z",
  is_running: false,
  completed: true,
});

describe("a list of tasks", () => {
  const colors = pico.createColors(false);

  it("aligns its columns, whatever the ids", () => {
    const tasks = [summary("t1", "first"), summary("01900000-0000-7000-8000-000000000001", "second")];
    const [first, second] = taskTable(tasks, { colors });
    expect(first?.indexOf("completed")).toBe(second?.indexOf("completed"));
    expect(first?.startsWith("t1 ")).toBe(true);
  });

  it("stays narrow despite one long id", () => {
    const [short] = taskTable([summary("t1", ""), summary("x".repeat(200), "")], { colors });
    expect(short?.indexOf("completed")).toBeLessThan(60);
  });

  it("of zero tasks says so", () => {
    expect(taskTable([], { colors })).toEqual(["no tasks"]);
  });
});
