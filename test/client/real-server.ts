/** A real server in this process with a scripted swarm. */
import { devAuthenticator } from "../../src/auth/index.js";
import { defineAgent, defineSwarm, Mailroom } from "../../src/index.js";
import { createListener } from "../kit/listener.js";

const ASK_TOOL = "ask_human";

/** `count N` makes the two agents exchange N requests, `ask` calls a breakpoint tool, other text is echoed. */
function talkativeSwarm() {
  const ask = {
    name: ASK_TOOL,
    description: "Asks a person.",
    parameters: { type: "object", properties: { question: { type: "string" } } },
  } as const;
  const desk = defineAgent({
    name: "desk",
    commTargets: ["clerk"],
    enableEntrypoint: true,
    canCompleteTasks: true,
    actions: [{ ...ask, idempotent: false, check: (value: unknown) => ({ ok: true, value }), run: () => "" }],
    run: (mail) => {
      if (mail.result !== undefined) return mail.complete(`a person said: ${mail.result.content}`);
      const [, wanted] = /count (\d+)/.exec(mail.question?.message.body ?? mail.body) ?? [];
      if (wanted === undefined) {
        return mail.body === "ask"
          ? mail.act(ASK_TOOL, { question: "Well?" })
          : mail.complete(`echo: ${mail.body}`);
      }
      const done = mail.fromType === "agent" ? Number(mail.body.replace(/\D/g, "")) : 0;
      if (done < Number(wanted)) mail.request("clerk", "Next", `after ${done} – ünï ✓`);
      else mail.complete(`counted to ${done}`);
    },
  });
  const clerk = defineAgent({
    name: "clerk",
    commTargets: ["desk"],
    run: (mail) => mail.reply(String(Number(mail.body.replace(/\D/g, "")) + 1)),
  });
  return defineSwarm({ name: "talkative", agents: [desk, clerk], breakpointTools: [ASK_TOOL] });
}

export interface RealServer extends AsyncDisposable {
  readonly url: string;
  readonly mailroom: Mailroom;
}

export async function realServer(): Promise<RealServer> {
  const mailroom = await Mailroom.open({ swarm: talkativeSwarm(), data: false });
  const server = await createListener({
    mailroom,
    authenticator: devAuthenticator(),
    version: "0.0.0",
    dev: true,
  });
  const url = await server.listen();
  return {
    url,
    mailroom,
    [Symbol.asyncDispose]: async () => {
      await server.close();
      await mailroom.close({ grace: 0 });
    },
  };
}
