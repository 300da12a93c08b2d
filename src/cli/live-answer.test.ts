import pico from "picocolors";
import { expect, it } from "vitest";
import type { TaskEvent } from "../client/index.js";
import { renderEvents } from "./repl/message-commands.js";

const answer = { agent: "desk", attempt: 1, tool: "task_complete", call_id: "c" };

function token(delta: string, offset: number, more: object = {}): TaskEvent {
  const data = { extra_data: {}, ...answer, delta, offset, ...more };
  return { event: "token", data };
}

function completed(response: string): TaskEvent {
  return { id: "9", event: "task_complete", data: { extra_data: {}, status: "completed", response } };
}

const failure: TaskEvent = {
  id: "5",
  event: "agent_error",
  data: { extra_data: {}, description: "clerk failed" },
};

/** What is on the terminal in the end. */
async function shown(events: readonly TaskEvent[], interactive = true): Promise<string> {
  let screen = "";
  const write = (text: string): void => {
    screen += text;
  };
  const out = (line = "") => write(`${line}\n`);
  const terminal = {
    env: {},
    stdin: process.stdin,
    colors: pico.createColors(false),
    interactive,
    columns: 80,
    out,
    write,
    note: out,
    json: () => {},
  };
  async function* stream() {
    yield* events;
  }
  await renderEvents({ terminal, json: false, verbose: false }, stream());
  return screen;
}

it("an answer grows on a terminal and is printed once", async () => {
  const events = [token("One,\ntw", 0), token("o.", 7), completed("One,\ntwo.")];
  expect(await shown(events)).toBe("    One,\n    two.\n✓ completed\n");
});

it("text of agents that is no answer to the user is not printed", async () => {
  const events = [token("Hm.", 0, { tool: undefined }), token("No.", 0, { tool: "send_response" })];
  expect(await shown([...events, completed("Yes.")])).toBe("✓ completed\n    Yes.\n");
});

it("an answer that begins again, or is interrupted by a line, is printed as a whole in the end", async () => {
  const again = [token("Wro", 0), token("Right", 0, { attempt: 2, reset: true }), completed("Right.")];
  expect(await shown(again)).toBe("    Wro\n  the answer begins again\n    Right\n✓ completed\n    Right.\n");
  const interrupted = [token("One ", 0), failure, token("two", 4), completed("One two")];
  expect(await shown(interrupted)).toBe("    One \n  error clerk failed\n    One two\n✓ completed\n");
});

it("an agent's text cannot control the terminal", async () => {
  expect(await shown([token("a\u001b[2Jb", 0), completed("x")])).not.toContain("\u001b");
});

it("pieces of an answer are not printed to a pipe", async () => {
  expect(await shown([token("One", 0), completed("One")], false)).toBe("✓ completed\n    One\n");
});
