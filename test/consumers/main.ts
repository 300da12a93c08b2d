/** A program that uses every public entry point, compiled against the packed package. */
import { defineAction, defineAgent, defineSwarm, Mailroom } from "agent-mailroom";
import { MailClient } from "agent-mailroom/client";
import { buildRequest, createAgentAddress, createUserAddress, type MAILMessage } from "agent-mailroom/mail";
import { createServer, defineExtension } from "agent-mailroom/server";
import { openTestMailroom, VirtualClock } from "agent-mailroom/testing";
import { z } from "zod";

const add = defineAction({
  name: "add",
  description: "Adds two numbers",
  parameters: z.object({ a: z.number(), b: z.number() }),
  run: ({ a, b }) => String(a + b),
});

const swarm = defineSwarm({
  name: "consumer",
  agents: [
    defineAgent({
      name: "clerk",
      enableEntrypoint: true,
      canCompleteTasks: true,
      actions: [add],
      run: (mail) => {
        if (mail.result === undefined) mail.act(add, { a: 1, b: 2 });
        else mail.complete(mail.result.content);
      },
    }),
  ],
});

export async function ask(): Promise<string | null> {
  const mailroom = await Mailroom.open({ swarm });
  const { response } = await mailroom.user("ann").ask("Add 1 and 2");
  await mailroom.close();
  return response;
}

export async function askOverHttp(url: string): Promise<string | null> {
  return (await new MailClient(url).postMessage("Add 1 and 2")).response;
}

export async function serve(): Promise<string> {
  const silent = defineExtension({ name: "silent", create: () => ({ capabilities: ["silence"] }) });
  const server = await createServer({ swarm, dev: true, data: false, extensions: [silent] });
  return server.listen({ port: 0 });
}

export async function askInTest(): Promise<string | null> {
  const mailroom = await openTestMailroom(swarm, { clock: new VirtualClock() });
  return (await mailroom.user("ann").ask("Add 1 and 2")).response;
}

export const request: MAILMessage = buildRequest({
  id: "7f1c2c62-55c2-4d4f-a3f4-4f5d2b7d3c11",
  taskId: "7f1c2c62-55c2-4d4f-a3f4-4f5d2b7d3c12",
  timestamp: "2026-01-01T00:00:00.000Z",
  sender: createUserAddress("ann"),
  recipient: createAgentAddress("clerk"),
  subject: "Add",
  body: "Add 1 and 2",
});
